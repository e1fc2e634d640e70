"""The removal of expired items, as DynamoDB's TTL does it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import cache, partial

from chalicelib.counting import keys
from chalicelib.counting.view import ulid_in
from chalicelib.storage.items import Key, number
from chalicelib.ulids import milliseconds
from chalicelib.units import Milliseconds, Seconds
from chalicelib.wallets.wallet import ENTRY
from vumi.storage.database import Database
from vumi.storage.queue import SqliteQueue
from vumi.storage.removals import any_expired, remove_expired
from vumi.storage.table import fetch

BATCH_REMOVALS = 100
"""Removals in one transaction, so that no visitor waits long for it."""
EXPIRY_SECONDS = 1.0
"""The interval between two searches for expired items."""


class Expiry:
    """The removal of expired items.

    A view stays until it is in the count of its badge, however late its fold is. The items that
    show that it is counted stay while the queue of views has a message of it. The change log gets
    the removals that a consumer of the change log handles.
    """

    def __init__(
        self,
        database: Database,
        queue: SqliteQueue,
        clock: Callable[[], Seconds],
        on_removal: Callable[[], None],
    ) -> None:
        self._database = database
        self._queue = queue
        self._clock = clock
        self._on_removal = on_removal

    def step(self) -> Seconds:
        """Remove one batch; return the time that may pass until the next."""
        now = self._clock()
        if not any_expired(self._database, now):
            return EXPIRY_SECONDS
        removed = self._database.in_one_commit(partial(self._remove, now))
        if not removed:
            return EXPIRY_SECONDS
        self._on_removal()
        return 0.0

    def _remove(self, now: Seconds) -> int:
        return self._database.write(
            lambda connection: remove_expired(
                connection, now, BATCH_REMOVALS, self._removable(connection), _is_consumed
            )
        )

    def _removable(self, connection: sqlite3.Connection) -> Callable[[Key], bool]:
        """Return a function that returns whether an expired item may go, in this transaction."""
        waiting = set(map(ulid_in, self._queue.bodies()))

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


def _is_consumed(key: Key) -> bool:
    """Return whether a consumer of the change log handles the removal of an item."""
    return key.sk == keys.WINDOW or key.sk.startswith(ENTRY)
