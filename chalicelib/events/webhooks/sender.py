"""The sender of webhooks, which posts an event to a user's URL if that may be called."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING

from chalicelib.events.event import DeliveryResult
from chalicelib.events.webhooks.signing import BadSecretError, Signer
from chalicelib.lazy import lazy
from chalicelib.outgoing.http_client import CallError, HttpClient, describe_refusal
from chalicelib.outgoing.urls import Allowed
from chalicelib.settings import Settings, SettingsError
from chalicelib.units import Seconds

if TYPE_CHECKING:
    from email import utils as email_utils
else:
    email_utils = lazy("email.utils")

DELIVERED, GONE = range(200, 300), 410
MAX_ERROR_CHARACTERS = 200
MAX_RETRY_AFTER_SECONDS = 86_400
MAX_DIGITS = 9
"""Longer numbers of seconds are replaced by the maximum."""


@dataclass(frozen=True, slots=True)
class Sender:
    """The sender of webhooks, which raises no errors of the network."""

    signer: Signer
    http: HttpClient
    clock: Callable[[], Seconds] = time.time

    def post(self, url: str, webhook_id: str, body: bytes) -> DeliveryResult:
        """Post a signed body of JSON to a URL. Each attempt of an event has the same id.

        Only a 2xx is a success, and 410 ends all attempts (Standard Webhooks, "Retries"). An error
        has at most 200 characters and no text of the response. Raises `BadWebhookIdError`.
        """
        signed = self.signer.headers(webhook_id, int(self.clock()), body)
        try:
            headers = {"Content-Type": "application/json", **signed}
            reply = self.http.call("POST", url, headers, body)
        except CallError as failure:
            return DeliveryResult(error=str(failure)[:MAX_ERROR_CHARACTERS])
        return DeliveryResult(
            reply.status,
            "" if reply.status in DELIVERED else describe_refusal(reply.status),
            is_final=reply.status == GONE,
            retry_after=seconds_to_wait(reply.retry_after, self.clock()),
        )


def sender_of(settings: Settings) -> Sender | None:
    """Return the sender of webhooks for the settings, or None without a secret.

    Raises `SettingsError` if a setting is malformed.
    """
    allowed = Allowed.parse(settings.webhook_allow)
    if not settings.webhook_secrets:
        return None
    try:
        return Sender(Signer(settings.webhook_secrets), HttpClient(allowed))
    except BadSecretError as error:
        raise SettingsError(f"WEBHOOK_SECRETS: {error}") from error


def seconds_to_wait(retry_after: str, now: Seconds) -> Seconds:
    """Parse the header `Retry-After` as seconds from now, 0 to 86,400; 0 if it is malformed.

    It has a number of seconds or an HTTP date (RFC 9110, 10.2.3 and 5.6.7).
    """
    given = retry_after.strip()
    if given.isascii() and given.isdecimal():
        seconds = int(given) if len(given) <= MAX_DIGITS else MAX_RETRY_AFTER_SECONDS
        return float(min(seconds, MAX_RETRY_AFTER_SECONDS))
    try:
        moment = email_utils.parsedate_to_datetime(given)
        wait = moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - now
    except (ValueError, OverflowError):
        return 0.0
    return min(max(wait, 0.0), float(MAX_RETRY_AFTER_SECONDS))
