"""The removal of expired items, as DynamoDB's TTL does it, with the change log of its removals."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import cache
from itertools import islice

from chalicelib.counting import keys
from chalicelib.counting.view import ulid_in
from chalicelib.storage.items import Key, number
from chalicelib.ulids import milliseconds
from chalicelib.units import Milliseconds, Seconds
from chalicelib.wallets.wallet import ENTRY
from vumi.storage.database import Database
from vumi.storage.queue import SqliteQueue
from vumi.storage.table import DELETE, DELETE_VIEW, INTEGER_END, fetch

BATCH_REMOVALS = 100
"""Removals in one transaction, so that no visitor waits long for it."""
EXPIRY_SECONDS = 1.0
"""The interval between two searches for expired items."""
ANY_EXPIRED = (
    "SELECT 1 FROM items WHERE ttl < ?1 UNION ALL SELECT 1 FROM viewed WHERE expires < ?1 LIMIT 1"
)
EXPIRED = "SELECT pk, sk, attributes FROM items WHERE ttl < ? ORDER BY ttl, pk, sk"
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


def remove_expired(
    database: Database,
    queue: SqliteQueue,
    clock: Callable[[], Seconds],
    on_removal: Callable[[], None],
) -> Seconds:
    """Remove one batch of expired items; return the time that may pass until the next.

    The oldest are first, and views last. A view stays until it is in the count of its badge,
    however late its fold is. The items that show that it is counted stay while the `queue` of views
    has a message of it. The change log gets the removals that a consumer of the change log handles,
    in the same transaction. `on_removal` is called after it.
    """
    now = clock()
    if not database.read(ANY_EXPIRED, (now,)):
        return EXPIRY_SECONDS
    if not database.in_one_commit(lambda: _remove(database, queue, now)):
        return EXPIRY_SECONDS
    on_removal()
    return 0.0


def _remove(database: Database, queue: SqliteQueue, now: Seconds) -> int:
    waiting = set(map(ulid_in, queue.bodies()))

    def job(connection: sqlite3.Connection) -> int:
        may_go = _removable(connection, waiting)
        gone = _find(connection, EXPIRED, now, BATCH_REMOVALS, may_go)
        connection.executemany(
            "INSERT INTO changes (removed_at, pk, sk, attributes) VALUES (?, ?, ?, ?)",
            [(now, *row) for row in gone if row[1] == keys.WINDOW or row[1].startswith(ENTRY)],
        )
        connection.executemany(DELETE, [row[:2] for row in gone])
        left = BATCH_REMOVALS - len(gone)
        return len(gone) + (_remove_views(connection, now, left, may_go) if left else 0)

    return database.write(job)


def _removable(connection: sqlite3.Connection, waiting: set[str]) -> Callable[[Key], bool]:
    """Return a function that returns whether an expired item may go, in this transaction."""

    @cache
    def watermark(partition: str) -> Milliseconds:
        return number(fetch(connection, Key(partition, keys.SUMMARY)) or {}, "watermark")

    def is_removable(key: Key) -> bool:
        if key.sk == keys.SEEN:
            return key.pk.removeprefix(f"{keys.SEEN}#") not in waiting
        if not key.sk.startswith(keys.VIEW):
            return True
        ulid = key.sk.removeprefix(keys.VIEW)
        return milliseconds(ulid) <= watermark(key.pk) and ulid not in waiting

    return is_removable


def _find(
    connection: sqlite3.Connection,
    query: str,
    now: Seconds,
    limit: int,
    may_go: Callable[[Key], bool],
) -> list[tuple[str, ...]]:
    """Return the first rows of a query, which begin with a key, of items that may go."""
    rows = connection.execute(query, (now,))
    found = list(islice((row for row in rows if may_go(Key(*row[:2]))), limit))
    rows.close()
    return found


def _remove_views(
    connection: sqlite3.Connection, now: Seconds, limit: int, may_go: Callable[[Key], bool]
) -> int:
    """Remove expired views, badge by badge, and the numbers of badges that have none left."""
    gone = _find(connection, EXPIRED_VIEWS, now, limit, may_go)
    connection.executemany(DELETE_VIEW, [row[:2] for row in gone])
    looked_at = gone[-1][2:] if len(gone) == limit else (now, 0)
    connection.execute(DELETE_NUMBERS, looked_at)
    connection.execute(UPDATE_EXPIRES, looked_at)
    return len(gone)
