"""Wallets and their journals as callers see them: all amounts are texts of millionths."""

from __future__ import annotations

from typing import Any

from chalicelib.badges import badge as badges
from chalicelib.badges.options import Options
from chalicelib.events.serializers import moment
from chalicelib.wallets import amounts
from chalicelib.wallets.journal import Page
from chalicelib.wallets.opening import Wallet
from chalicelib.wallets.wallet import HOT_SECONDS, Entry, Kind

LABEL = "balance"
COLOR = "blue"


def balance(wallet: Wallet) -> dict[str, Any]:
    """A wallet, and what it has."""
    return {"id": wallet.wallet_id, "balance": str(wallet.balance)}


def own(wallet: Wallet) -> dict[str, Any]:
    """A wallet as its user sees it."""
    return {**balance(wallet), "user_id": wallet.user_id, "badge": wallet.is_public}


def transactions(page: Page, wallet_id: str, now: int) -> dict[str, Any]:
    """What moved, newest first; what is older than `archived_before` goes to the archive.

    It may still be here, for TTL takes its time, or be on its way there for some minutes.
    """
    told = {
        "transactions": [_transaction(entry, wallet_id) for entry in page.entries],
        "archived_before": moment(now - HOT_SECONDS * 1000),
    }
    return told | ({"cursor": page.cursor} if page.cursor else {})


def _transaction(entry: Entry, wallet_id: str) -> dict[str, Any]:
    posting = entry.posting
    told = {
        "id": entry.entry_id,
        "kind": str(posting.kind),
        "amount": str(posting.amount),
        "at": moment(entry.at),
        "to": posting.target,
    }
    if posting.kind is Kind.TRANSFER:
        told["from"] = posting.source
    # A nonce is its wallet's own affair.
    return told | ({"nonce": posting.nonce} if wallet_id == posting.asker else {})


def badge(wallet: Wallet, options: Options = badges.PLAIN) -> dict[str, Any]:
    """The balance in units as shields.io's endpoint JSON, as it is wanted."""
    return badges.told(LABEL, amounts.units(wallet.balance), COLOR, options)


def error(reason: str) -> dict[str, Any]:
    """A badge that says what is wrong."""
    return badges.error(reason) | {"label": LABEL}
