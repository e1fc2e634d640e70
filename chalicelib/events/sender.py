"""The sender of webhooks: it posts an event to a user's URL if that may be called, and signs it.

The signature proves to the receiver who sent the webhook (Standard Webhooks 1.0).
"""

from __future__ import annotations

import base64
import hmac
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC
from secrets import token_bytes
from typing import TYPE_CHECKING

from chalicelib.events.event import DeliveryResult
from chalicelib.lazy import lazy
from chalicelib.outgoing.http_client import CallError, HttpClient, describe_refusal
from chalicelib.outgoing.urls import Allowed
from chalicelib.settings import Settings, SettingsError
from chalicelib.units import Seconds, WholeSeconds

if TYPE_CHECKING:
    from email import utils as email_utils
else:
    email_utils = lazy("email.utils")

DELIVERED, GONE = range(200, 300), 410
MAX_ERROR_CHARACTERS = 200
MAX_RETRY_AFTER_SECONDS = 86_400
MAX_DIGITS = 9
"""Longer numbers of seconds are replaced by the maximum."""
PREFIX = "whsec_"
MIN_BYTES = 24
MAX_BYTES = 64

ID = re.compile(r"[!-\-/-~]{1,200}")
"""Visible ASCII without the full stop, which separates the signed parts."""


def new_secret() -> str:
    """Generate a secret: `whsec_` and 32 random bytes in base64."""
    return PREFIX + base64.b64encode(token_bytes(32)).decode()


class Signer:
    """The signer, with one secret or, during a change, two: the current one first.

    A secret is `whsec_` and 24 to 64 bytes in base64 with padding, the form that every receiver's
    library accepts. Raises `SettingsError`, whose message never has the secret.
    """

    __slots__ = ("_keys",)

    def __init__(self, secrets: Sequence[str]) -> None:
        self._keys = tuple(
            _decode_secret(number, secret) for number, secret in enumerate(secrets, 1)
        )

    def headers(self, webhook_id: str, timestamp: WholeSeconds, body: bytes) -> dict[str, str]:
        """Return `webhook-id`, `webhook-timestamp`, and `webhook-signature`, one part per secret.

        Each attempt of an event has the same id. Raises `ValueError` for one that can't be signed.
        """
        if not ID.fullmatch(webhook_id):
            raise ValueError(
                "the id of a webhook must be 1 to 200 visible ASCII characters without a full stop"
            )
        signed = f"{webhook_id}.{timestamp}.".encode() + body
        return {
            "webhook-id": webhook_id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": " ".join(
                "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
                for key in self._keys
            ),
        }


def _decode_secret(number: int, secret: str) -> bytes:
    wanted = f"WEBHOOK_SECRETS: secret {number} must"
    encoded = secret.removeprefix(PREFIX)
    if encoded == secret:
        raise SettingsError(f"{wanted} begin with {PREFIX}")
    try:
        key = base64.b64decode(encoded)
    except ValueError:
        key = b""
    if base64.b64encode(key).decode() != encoded:
        raise SettingsError(f"{wanted} be {PREFIX} and base64 with padding")
    if not MIN_BYTES <= len(key) <= MAX_BYTES:
        raise SettingsError(
            f"{wanted} be {MIN_BYTES} to {MAX_BYTES} bytes in base64, not {len(key)}"
        )
    return key


@dataclass(frozen=True, slots=True)
class Sender:
    """The sender of webhooks, which raises no errors of the network."""

    signer: Signer
    http: HttpClient
    clock: Callable[[], Seconds] = time.time

    def post(self, url: str, webhook_id: str, body: bytes) -> DeliveryResult:
        """Post a signed body of JSON to a URL. Each attempt of an event has the same id.

        Only a 2xx is a success, and 410 ends all attempts (Standard Webhooks, "Retries"). An error
        has at most 200 characters and no text of the response. Raises `ValueError` as the signer.
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
            retry_after=seconds_to_wait(reply.headers.get("retry-after", ""), self.clock()),
        )


def sender_of(settings: Settings) -> Sender | None:
    """Return the sender of webhooks for the settings, or None without a secret.

    Raises `SettingsError` if a setting is malformed.
    """
    allowed = Allowed.parse(settings.webhook_allow)
    if not settings.webhook_secrets:
        return None
    return Sender(Signer(settings.webhook_secrets), HttpClient(allowed))


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
