"""The journal of a wallet: its entries, newest first, a page at a time."""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.http.errors import BadRequestError
from chalicelib.storage.ports import Table
from chalicelib.wallets.wallet import ENTRY, ID, PARTITION, Entry

PAGE = 50
AFTER_EVERY_ID = "~"


@dataclass(frozen=True, slots=True)
class Page:
    """Some entries and the cursor of the next page, empty at the end."""

    entries: list[Entry]
    cursor: str


def read(table: Table, wallet_id: str, cursor: str = "", *, size: int = PAGE) -> Page:
    """Read a page of up to `size` entries. Raises `BadRequestError` and `StorageError`.

    A cursor is the id of the last entry of the page before. New entries have higher ids than all
    that were read, so a reader misses no entry and sees none twice.
    """
    if cursor and ID.fullmatch(cursor) is None:
        raise BadRequestError("cursor: give the one of the page before")
    last = _before(cursor) if cursor else AFTER_EVERY_ID
    found = table.query(
        PARTITION + wallet_id, first=ENTRY, last=ENTRY + last, descending=True, limit=size
    )
    entries = [Entry.of(item) for item in found]
    return Page(entries, entries[-1].entry_id if len(entries) == size else "")


def _before(entry_id: str) -> str:
    """Return a text that sorts before an id and after every lower one: all have one length."""
    return entry_id[:-1] + chr(ord(entry_id[-1]) - 1)
