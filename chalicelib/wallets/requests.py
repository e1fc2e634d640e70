"""The bodies that the routes of wallets take."""

from __future__ import annotations

import re
from uuid import UUID

from chalicelib.http.fields import Body, Field, boolean, schema, string, text_like
from chalicelib.wallets.wallet import MAX_BALANCE, Posting

AMOUNT_TEXT = re.compile("[1-9][0-9]{0,18}")
NONCE = re.compile("[A-Za-z0-9_-]{8,64}")
UUID_TEXT = re.compile("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
USER_ID = schema("UserId", string(UUID_TEXT), "A UUID. It is stored in lower case.")
UP_TO_MAX = f"Millionths of the unit, at most {MAX_BALANCE}."
AMOUNT = schema("Amount", string(AMOUNT_TEXT), UP_TO_MAX)
NONCE_TEXT = schema("Nonce", string(NONCE), "A new one for each posting of the wallet.")


_uuid = text_like(UUID_TEXT, "give a UUID, such as 6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11")
_nonce = text_like(NONCE, "give 8 to 64 letters, digits, - or _, new for each movement")


def parse_amount(given: object) -> int:
    """Parse an amount from 1 to 2^63 - 1: only digits, no leading 0. Raises `ValueError`.

    A JSON number is refused, because many readers of JSON round large numbers.
    """
    if isinstance(given, str) and AMOUNT_TEXT.fullmatch(given) and int(given) <= MAX_BALANCE:
        return int(given)
    raise ValueError(
        f'give millionths of the unit as a text of digits, "1" to "{MAX_BALANCE}", no sign,'
        " no point"
    )


class WalletBody(Body):
    """The user of a new wallet."""

    user_id = Field(lambda given: str(UUID(_uuid(given))), USER_ID)


class PostingBody(Body):
    """A deposit or a transfer."""

    amount = Field(parse_amount, AMOUNT)
    nonce = Field(_nonce, NONCE_TEXT)

    def posting(self, target: str, source: str = "") -> Posting:
        """Return the posting between two wallets."""
        return Posting(self.nonce, self.amount, target, source)


class WalletChangeBody(Body):
    """A change of a wallet."""

    badge = Field(boolean, {"type": "boolean"}, "Whether everybody may see the balance as a badge.")
