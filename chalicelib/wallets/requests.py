"""The readers of the bodies that the routes of wallets take."""

from __future__ import annotations

import re
from uuid import UUID

from chalicelib.http.bodies import read_fields
from chalicelib.http.errors import BadRequestError
from chalicelib.wallets import amounts
from chalicelib.wallets.wallet import Posting

NONCE = re.compile("[A-Za-z0-9_-]{8,64}")
UUID_TEXT = re.compile("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
FIELDS = {"amount", "nonce"}


def read_user(body: bytes) -> str:
    """Read a user's id, in lower case, from `POST /api/v1/wallets`. Raises `BadRequestError`."""
    given = read_fields(body, {"user_id"}).get("user_id")
    if not isinstance(given, str) or UUID_TEXT.fullmatch(given) is None:
        raise BadRequestError("user_id: give a UUID, such as 6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11")
    return str(UUID(given))


def read_posting(body: bytes, target: str, source: str = "") -> Posting:
    """Read `PUT …/deposit` or `PUT …/transfer/{target}`. Raises `BadRequestError`."""
    fields = read_fields(body, FIELDS)
    nonce = fields.get("nonce")
    if not isinstance(nonce, str) or NONCE.fullmatch(nonce) is None:
        raise BadRequestError("nonce: give 8 to 64 letters, digits, - or _, new for each movement")
    try:
        amount = amounts.parse(fields.get("amount"))
    except amounts.BadAmountError as wrong:
        raise BadRequestError(f"amount: {wrong}") from None
    return Posting(nonce, amount, target, source)


def read_publicity(body: bytes) -> bool:
    """Read `PATCH /api/v1/wallets/{id}`: whether it has a badge. Raises `BadRequestError`."""
    given = read_fields(body, {"badge"}).get("badge")
    if not isinstance(given, bool):
        raise BadRequestError("badge: give true or false")
    return given
