"""The journal of a wallet: what moved, newest first, a page at a time."""

from __future__ import annotations

import re
from dataclasses import dataclass

from chalicelib.ports import Table
from chalicelib.wallets.wallet import PARTITION, Entry

PAGE = 50
PLACE = re.compile("[0-9A-Z]{26}")


class BadCursorError(ValueError):
    """What was given is no cursor of a journal."""


@dataclass(frozen=True, slots=True)
class Page:
    """Some entries, and where the next ones are; an empty cursor is the end."""

    entries: list[Entry]
    cursor: str


def read(table: Table, wallet_id: str, cursor: str = "") -> Page:
    """A page of what moved. Raises `BadCursorError` and `StorageError`.

    A cursor is the id of the last entry before: what comes meanwhile is newer, and shifts nothing.
    """
    if cursor and PLACE.fullmatch(cursor) is None:
        raise BadCursorError("cursor: give the one that the page before answered")
    found = table.query_latest(PARTITION + wallet_id, limit=PAGE, before=cursor)
    items = table.get_all([one.key for one in found])
    return Page([Entry.of(item) for item in items], found[-1].place if len(found) == PAGE else "")
