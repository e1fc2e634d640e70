"""The JSON of wallets and journals. All amounts are texts of millionths."""

from __future__ import annotations

from typing import Any

from chalicelib.badges.badge import Badge
from chalicelib.badges.options import PLAIN, Look
from chalicelib.units import Milliseconds, to_iso8601, to_milliseconds
from chalicelib.wallets.journal import Page
from chalicelib.wallets.opening import Wallet
from chalicelib.wallets.wallet import HOT_SECONDS, Entry, PostingKind

LABEL = "balance"
COLOR = "blue"
MILLIONTHS = 1_000_000


def balance(wallet: Wallet) -> dict[str, Any]:
    """Return a wallet and its balance as JSON."""
    return {"id": wallet.wallet_id, "balance": str(wallet.balance)}


def to_json(wallet: Wallet) -> dict[str, Any]:
    """Return a wallet as its user sees it."""
    return {**balance(wallet), "user_id": wallet.user_id, "badge": wallet.is_public}


def transactions(page: Page, wallet_id: str, now: Milliseconds) -> dict[str, Any]:
    """Return a page of a journal, newest first; entries before `archived_before` are archived.

    TTL removes them some minutes later, so they may still be here, or in neither place.
    """
    journal = {
        "transactions": [_transaction(entry, wallet_id) for entry in page.entries],
        "archived_before": to_iso8601(now - to_milliseconds(HOT_SECONDS)),
    }
    return journal | ({"cursor": page.cursor} if page.cursor else {})


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
    return Badge.of(LABEL, units(wallet.balance), COLOR, options)


def units(amount: int) -> str:
    """Format an amount in units, for people: 12.5 for 12,500,000 millionths."""
    whole, rest = divmod(amount, MILLIONTHS)
    return f"{whole:,}" + f".{rest:06}".rstrip("0").rstrip(".")
