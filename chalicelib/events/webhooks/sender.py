"""The sender of webhooks, which posts an event to a user's URL if that may be called."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC
from typing import TYPE_CHECKING

from chalicelib.events.webhooks.signing import BadSecretError, Signer
from chalicelib.lazy import lazy
from chalicelib.outgoing.addresses import Allowed
from chalicelib.outgoing.http_client import CallError, HttpClient, describe_refusal
from chalicelib.settings import Settings, SettingsError
from chalicelib.units import Seconds

if TYPE_CHECKING:
    from email import utils as email_utils
else:
    email_utils = lazy("email.utils")

MAX_ERROR_CHARACTERS = 200
MAX_RETRY_AFTER_SECONDS = 86_400
MAX_DIGITS = 9
"""Longer numbers of seconds are replaced by the maximum."""


@dataclass(frozen=True, slots=True)
class PostOutcome:
    """The outcome of one POST: the status of the answer, or an error, or both.

    `error` has at most 200 characters and no text of the response; it is empty after a success.
    `retry_after` is in seconds, or None if the response has none.
    """

    status: int | None
    error: str = ""
    retry_after: Seconds | None = None

    @property
    def delivered(self) -> bool:
        """Return whether the status is 2xx, which is success (Standard Webhooks)."""
        return self.status is not None and 200 <= self.status <= 299  # noqa: PLR2004

    @property
    def gone(self) -> bool:
        """Return whether the status is 410, which ends all attempts (Standard Webhooks)."""
        return self.status == 410  # noqa: PLR2004


@dataclass(frozen=True, slots=True)
class Sender:
    """The sender of webhooks, which raises no errors of the network."""

    signer: Signer
    http: HttpClient
    clock: Callable[[], Seconds] = time.time

    def post(
        self, url: str, webhook_id: str, body: bytes, content_type: str = "application/json"
    ) -> PostOutcome:
        """Post a signed body to a URL. Each attempt of an event has the same id.

        Raises `BadWebhookIdError`, and `ValueError` if the content type is not printable ASCII.
        """
        if not (content_type.isascii() and content_type.isprintable()):
            raise ValueError(f"the content type must be printable ASCII, not {content_type!r}")
        headers = {
            "Content-Type": content_type,
            **self.signer.headers(webhook_id, int(self.clock()), body),
        }
        try:
            reply = self.http.call("POST", url, headers, body)
        except CallError as failure:
            return PostOutcome(None, str(failure)[:MAX_ERROR_CHARACTERS])
        wait = seconds_to_wait(reply.retry_after, self.clock())
        outcome = PostOutcome(reply.status, "", wait)
        if outcome.delivered:
            return outcome
        return replace(outcome, error=describe_refusal(reply.status))


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


def seconds_to_wait(retry_after: str, now: Seconds) -> Seconds | None:
    """Parse the header `Retry-After` as seconds from now, 0 to 86,400; None if it is malformed.

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
        return None
    return min(max(wait, 0.0), float(MAX_RETRY_AFTER_SECONDS))
