"""The ids of a file's badges, for the fold of all badges."""

from __future__ import annotations

from collections.abc import Iterator

from chalicelib.views import keys
from vumi.storage.database import Database

PAGE_IDS = 1_000


def badge_ids(database: Database, limit: int = PAGE_IDS) -> Iterator[str]:
    """Yield the ids that views are stored under; one query reads `limit` of them."""
    after = ""
    while rows := database.read(
        "SELECT DISTINCT pk FROM items WHERE pk > ? AND sk > ? AND sk < ? ORDER BY pk LIMIT ?",
        (keys.partition(after), keys.VIEW, keys.SUMMARY, limit),
    ):
        ids = [partition.removeprefix(keys.PARTITION) for (partition,) in rows]
        yield from ids
        after = ids[-1]
