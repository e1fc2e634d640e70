"""The badges of a file that have views, for the fold of all."""

from __future__ import annotations

from collections.abc import Iterator

from chalicelib.views import keys
from vumi.storage.database import Database

IDS_AT_ONCE = 1_000


def badge_ids(database: Database, at_once: int = IDS_AT_ONCE) -> Iterator[str]:
    """Return the ids that views are stored under, each once; `at_once` are read by one query."""
    after = ""
    while rows := database.read(
        "SELECT DISTINCT pk FROM items WHERE pk > ? AND sk > ? AND sk < ? ORDER BY pk LIMIT ?",
        (keys.partition(after), keys.VIEW, keys.SUMMARY, at_once),
    ):
        ids = [partition.removeprefix(keys.PARTITION) for (partition,) in rows]
        yield from ids
        after = ids[-1]
