"""Signatures by which a receiver knows that a POST is ours (Standard Webhooks 1.0)."""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Sequence
from secrets import token_bytes

PREFIX = "whsec_"
LEAST_BYTES = 24
MOST_BYTES = 64
NEW_BYTES = 32

ID = re.compile(r"[!-\-/-~]{1,200}")
"""Visible ASCII without the full stop, which separates what is signed."""


class BadSecretError(ValueError):
    """A secret is wrong; the message says what is right, and never the secret."""


class BadWebhookIdError(ValueError):
    """The id of a webhook can't be signed; the message says what can."""


def new_secret() -> str:
    """A secret nobody can guess: `whsec_` and 32 random bytes in base64."""
    return PREFIX + base64.b64encode(token_bytes(NEW_BYTES)).decode()


class Signer:
    """Signs by one secret, or while it is changed by two: the present one, then the older.

    A secret is `whsec_` and 24 to 64 bytes in base64 with its padding, the form that every
    receiver's library reads alike. Raises `BadSecretError`.
    """

    __slots__ = ("_keys",)

    def __init__(self, secrets: Sequence[str]) -> None:
        if not secrets or isinstance(secrets, str):
            raise BadSecretError("give a list of secrets, the present one first")
        self._keys = tuple(_key(at, secret) for at, secret in enumerate(secrets, 1))

    def headers(self, webhook_id: str, timestamp: int, body: bytes) -> dict[str, str]:
        """`webhook-id`, `webhook-timestamp`, and `webhook-signature` with one part a secret.

        `timestamp` is in seconds since 1970. The id is the same whenever the same is sent again.
        Raises `BadWebhookIdError`.
        """
        if not ID.fullmatch(webhook_id):
            raise BadWebhookIdError(
                "the id of a webhook is 1 to 200 visible ASCII characters without a full stop"
            )
        signed = f"{webhook_id}.{timestamp}.".encode() + body
        return {
            "webhook-id": webhook_id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": " ".join(_signature(key, signed) for key in self._keys),
        }


def _signature(key: bytes, signed: bytes) -> str:
    return "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()


def _key(at: int, secret: str) -> bytes:
    encoded = secret.removeprefix(PREFIX)
    if encoded == secret:
        raise BadSecretError(f"secret {at} must begin with {PREFIX}")
    try:
        key = base64.b64decode(encoded)
    except ValueError:
        key = b""
    if base64.b64encode(key).decode() != encoded:
        raise BadSecretError(f"secret {at} must be {PREFIX} and base64 with its padding")
    if not LEAST_BYTES <= len(key) <= MOST_BYTES:
        raise BadSecretError(
            f"secret {at} must be {LEAST_BYTES} to {MOST_BYTES} bytes in base64, it has {len(key)}"
        )
    return key
