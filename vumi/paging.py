"""A query of a whole partition, in pages."""

from __future__ import annotations

from collections.abc import Iterator

from chalicelib.storage.items import Item, text
from chalicelib.storage.ports import Table

PAGE = 1_000


def query_all(table: Table, partition: str, first: str, last: str) -> Iterator[Item]:
    """Yield all items of a partition with a sort key from `first` to `last`, in their order."""
    while page := table.query(partition, limit=PAGE, first=first, last=last):
        yield from page
        first = text(page[-1], "SK") + "\0"
