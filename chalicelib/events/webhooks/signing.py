"""The signatures that prove to a receiver who sent a webhook (Standard Webhooks 1.0)."""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Sequence
from secrets import token_bytes

from chalicelib.units import WholeSeconds

PREFIX = "whsec_"
MIN_BYTES = 24
MAX_BYTES = 64
NEW_BYTES = 32

ID = re.compile(r"[!-\-/-~]{1,200}")
"""Visible ASCII without the full stop, which separates the signed parts."""


class BadSecretError(ValueError):
    """A secret is malformed. The message says what is valid, and never has the secret."""


class BadWebhookIdError(ValueError):
    """The id of a webhook can't be signed. The message says what is valid."""


def new_secret() -> str:
    """Generate a secret: `whsec_` and 32 random bytes in base64."""
    return PREFIX + base64.b64encode(token_bytes(NEW_BYTES)).decode()


class Signer:
    """The signer, with one secret or, during a change, two: the current one first.

    A secret is `whsec_` and 24 to 64 bytes in base64 with padding, the form that every receiver's
    library accepts. Raises `BadSecretError`.
    """

    __slots__ = ("_keys",)

    def __init__(self, secrets: Sequence[str]) -> None:
        if not secrets or isinstance(secrets, str):
            raise BadSecretError("give a list of secrets, the current one first")
        self._keys = tuple(
            _decode_secret(number, secret) for number, secret in enumerate(secrets, 1)
        )

    def headers(self, webhook_id: str, timestamp: WholeSeconds, body: bytes) -> dict[str, str]:
        """Return `webhook-id`, `webhook-timestamp`, and `webhook-signature`, one part per secret.

        Each attempt of an event has the same id. Raises `BadWebhookIdError`.
        """
        if not ID.fullmatch(webhook_id):
            raise BadWebhookIdError(
                "the id of a webhook must be 1 to 200 visible ASCII characters without a full stop"
            )
        signed = f"{webhook_id}.{timestamp}.".encode() + body
        return {
            "webhook-id": webhook_id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": " ".join(_sign(key, signed) for key in self._keys),
        }


def _sign(key: bytes, signed: bytes) -> str:
    return "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()


def _decode_secret(number: int, secret: str) -> bytes:
    encoded = secret.removeprefix(PREFIX)
    if encoded == secret:
        raise BadSecretError(f"secret {number} must begin with {PREFIX}")
    try:
        key = base64.b64decode(encoded)
    except ValueError:
        key = b""
    if base64.b64encode(key).decode() != encoded:
        raise BadSecretError(f"secret {number} must be {PREFIX} and base64 with padding")
    if not MIN_BYTES <= len(key) <= MAX_BYTES:
        raise BadSecretError(
            f"secret {number} must be {MIN_BYTES} to {MAX_BYTES} bytes in base64, not {len(key)}"
        )
    return key
