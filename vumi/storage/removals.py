"""The TTL of the table on SQLite, and the change log of its removals, which consumers read."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

from chalicelib.counting import keys
from chalicelib.storage.items import Item, Key
from chalicelib.units import Seconds
from vumi.storage.database import Database
from vumi.storage.table import DELETE, DELETE_VIEW, INTEGER_END, item_of

FOLDS = "fold_views"
"""The consumer of the removals of windows' markers."""
MAX_LOOKED_AT = 10_000


@dataclass(frozen=True, slots=True)
class Change:
    """A removal by TTL, as it is stored in the change log."""

    sequence: int
    removed_at: Seconds
    item: Item


def any_expired(database: Database, now: Seconds) -> bool:
    """Return whether there is an expired item."""
    either = "SELECT 1 FROM items WHERE ttl < ?1 UNION ALL SELECT 1 FROM viewed WHERE expires < ?1"
    return bool(database.read(f"{either} LIMIT 1", (now,)))


def first_due_marker(database: Database, now: Seconds) -> Seconds | None:
    """Return when the oldest window's marker expired that is not folded, or None without one.

    It is an expired item, or a removal that the consumer of folds has not handled. Only the first
    10,000 are looked at, because markers are removed in the order of their expiry.
    """
    expired = database.read(
        "SELECT ttl FROM (SELECT sk, ttl FROM items WHERE ttl < ? ORDER BY ttl LIMIT ?)"
        " WHERE sk = ? LIMIT 1",
        (now, MAX_LOOKED_AT, keys.WINDOW),
    )
    removed = database.read(
        "SELECT attributes FROM (SELECT sk, attributes FROM changes WHERE sequence >"
        " (SELECT sequence FROM checkpoints WHERE consumer = ?) ORDER BY sequence LIMIT ?)"
        " WHERE sk = ? LIMIT 1",
        (FOLDS, MAX_LOOKED_AT, keys.WINDOW),
    )
    due = [*(ttl for (ttl,) in expired), *(json.loads(one)["ttl"] for (one,) in removed)]
    return min(due, default=None)


def remove_expired(
    connection: sqlite3.Connection,
    now: Seconds,
    limit: int,
    may_go: Callable[[Key], bool],
    is_consumed: Callable[[Key], bool],
) -> int:
    """Remove up to `limit` expired items that may go, oldest first; return their number.

    Each removal that has a consumer appends a change in the same transaction. Views come last.
    """
    rows = connection.execute(
        "SELECT pk, sk, attributes FROM items WHERE ttl < ? ORDER BY ttl, pk, sk", (now,)
    )
    gone = list(islice((row for row in rows if may_go(Key(*row[:2]))), limit))
    rows.close()
    connection.executemany(
        "INSERT INTO changes (removed_at, pk, sk, attributes) VALUES (?, ?, ?, ?)",
        [(now, *row) for row in gone if is_consumed(Key(*row[:2]))],
    )
    connection.executemany(DELETE, [(pk, sk) for pk, sk, _ in gone])
    left = limit - len(gone)
    return len(gone) + (_remove_expired_views(connection, now, left, may_go) if left else 0)


def _remove_expired_views(
    connection: sqlite3.Connection, now: Seconds, limit: int, may_go: Callable[[Key], bool]
) -> int:
    """Remove expired views, badge by badge, and the numbers of badges that have none left."""
    rows = connection.execute(EXPIRED_VIEWS, (now,))
    gone = list(islice((row for row in rows if may_go(Key(*row[:2]))), limit))
    rows.close()
    connection.executemany(DELETE_VIEW, [row[:2] for row in gone])
    looked_at = gone[-1][2:] if len(gone) == limit else (now, 0)
    connection.execute(DELETE_NUMBERS, looked_at)
    connection.execute(UPDATE_EXPIRES, looked_at)
    return len(gone)


EXPIRED_VIEWS = (
    "SELECT pk, sk, expires, number FROM viewed CROSS JOIN views ON badge = number"
    " WHERE expires < ?1 AND ttl < ?1 ORDER BY expires, number"
)
DELETE_NUMBERS = (
    "DELETE FROM viewed WHERE (expires, number) < (?, ?)"
    " AND NOT EXISTS (SELECT 1 FROM views WHERE badge = number)"
)
UPDATE_EXPIRES = (
    "UPDATE viewed SET expires ="  # noqa: S608  a fixed number
    f" (SELECT coalesce(min(ttl), {INTEGER_END - 1}) FROM views WHERE badge = number)"
    " WHERE (expires, number) < (?, ?)"
)


class ChangeLog:
    """The changes of the table, in order, for one consumer with a checkpoint."""

    def __init__(self, database: Database, consumer: str) -> None:
        self._database = database
        self._consumer = consumer
        database.write(
            lambda connection: connection.execute(
                "INSERT OR IGNORE INTO checkpoints (consumer, sequence) VALUES (?, 0)", (consumer,)
            )
        )

    def read(self, limit: int) -> list[Change]:
        """Return the next changes after the checkpoint: the same ones until it is moved."""
        rows = self._database.read(
            "SELECT sequence, removed_at, pk, sk, attributes FROM changes WHERE sequence >"
            " (SELECT sequence FROM checkpoints WHERE consumer = ?)"
            " ORDER BY sequence LIMIT ?",
            (self._consumer, limit),
        )
        return [Change(sequence, at, item_of(*row)) for sequence, at, *row in rows]

    def checkpoint(self, sequence: int) -> None:
        """Move the checkpoint to a change; delete the changes that all consumers have handled."""
        self._database.write(lambda connection: self._move(connection, sequence))

    def _move(self, connection: sqlite3.Connection, sequence: int) -> None:
        connection.execute(
            "UPDATE checkpoints SET sequence = ? WHERE consumer = ?", (sequence, self._consumer)
        )
        connection.execute(
            "DELETE FROM changes WHERE sequence <= (SELECT min(sequence) FROM checkpoints)"
        )
