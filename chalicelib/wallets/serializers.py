"""The JSON that the routes of wallets take and return. All amounts are texts of millionths."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID

from chalicelib.badges.options import PLAIN, Badge, Look
from chalicelib.http.fields import Body, Field, boolean, schema, string, text_like
from chalicelib.units import Milliseconds, to_iso8601, to_milliseconds
from chalicelib.wallets.wallet import HOT_SECONDS, MAX_BALANCE, Entry, Posting, PostingKind, Wallet

LABEL = "balance"
COLOR = "blue"
MILLIONTHS = 1_000_000
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


def balance(wallet: Wallet) -> dict[str, Any]:
    """Return a wallet and its balance as JSON."""
    return {"id": wallet.wallet_id, "balance": str(wallet.balance)}


def to_json(wallet: Wallet) -> dict[str, Any]:
    """Return a wallet as its user sees it."""
    return {**balance(wallet), "user_id": wallet.user_id, "badge": wallet.is_public}


def transactions(
    page: tuple[list[Entry], str], wallet_id: str, now: Milliseconds
) -> dict[str, Any]:
    """Return a page of a journal, newest first; entries before `archived_before` are archived.

    TTL removes them some minutes later, so they may still be here, or in neither place.
    """
    entries, cursor = page
    journal = {
        "transactions": [_transaction(entry, wallet_id) for entry in entries],
        "archived_before": to_iso8601(now - to_milliseconds(HOT_SECONDS)),
    }
    return journal | ({"cursor": cursor} if cursor else {})


def _transaction(entry: Entry, wallet_id: str) -> dict[str, Any]:
    posting = entry.posting
    transaction = {
        "id": entry.entry_id,
        "kind": str(posting.kind),
        "amount": str(posting.amount),
        "at": to_iso8601(entry.at),
        "to": posting.target,
    }
    if posting.kind is PostingKind.TRANSFER:
        transaction["from"] = posting.source
    # Only the wallet that used a nonce sees it.
    return transaction | ({"nonce": posting.nonce} if wallet_id == posting.asker else {})


def badge(wallet: Wallet, options: Look = PLAIN) -> Badge:
    """Return the balance in units as a badge."""
    return options.badge(LABEL, units(wallet.balance), COLOR)


def units(amount: int) -> str:
    """Format an amount in units, for people: 12.5 for 12,500,000 millionths."""
    whole, rest = divmod(amount, MILLIONTHS)
    return f"{whole:,}" + f".{rest:06}".rstrip("0").rstrip(".")
