"""The limits and the clock of views, which are kept in memory: ports of `chalicelib.resources`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Lock

from chalicelib import telemetry
from chalicelib.counting.bans import read_patterns
from chalicelib.counting.ids import Patterns
from chalicelib.counting.view import ulid_in
from chalicelib.resources import Room
from chalicelib.storage.ports import Table
from chalicelib.ulids import milliseconds
from chalicelib.units import Seconds
from vumi.storage.database import Database
from vumi.storage.queue import SqliteQueue

COUNT_SECONDS = 3_600.0
"""The time after which the badges are counted again."""
FULL_SECONDS = 60.0
"""The time in place of that while a new id is refused, because badges may be deleted."""
REST_FACTOR = 50.0
"""The count of many badges rests for so many times the time that it took."""
READ_SECONDS = 1.0
"""The time between two reads of the free space on the disk."""


class FileBans:
    """The `limits.Bans` of a file, which hold from the next request after one was set or lifted.

    Each common commit begins with `refresh`, which asks SQLite whether another process has changed
    the file since. A change of this process calls `forget`, and is read in the next commit.
    """

    def __init__(self, database: Database, table: Table) -> None:
        self._database, self._table = database, table
        self._patterns = Patterns()
        self._version: int | None = None

    def cover(self, badge_id: str) -> bool:
        """Return whether an id is banned."""
        return self._patterns.cover(badge_id)

    def forget(self) -> None:
        """Read the bans again in the next commit."""
        self._version = None

    def refresh(self) -> None:
        """Read the bans again, in the current commit, if they may have changed."""
        [(version,)] = self._database.read("PRAGMA data_version")
        if version != self._version:
            self._patterns, self._version = read_patterns(self._table), version


class BadgeQuota:
    """The `limits.Quota` of a file: the most badges (`MAX_BADGES`), and their number.

    `count(most)` returns the badges, up to `most`. They are counted at the start, and again from
    time to time in a thread, because badges are also deleted, imported and made by commands. In
    between, each new one adds to the number. So a request costs nothing, and after `kill -9` the
    number is right again.

    `settle` calls a function when no new badge waits for its commit. `monotonic` is a clock.
    """

    def __init__(
        self,
        most: int,
        count: Callable[[int], int],
        settle: Callable[[Callable[[], int]], int],
        monotonic: Callable[[], Seconds],
    ) -> None:
        self.most, self._count, self._settle, self._monotonic = most, count, settle, monotonic
        self._lock = Lock()
        self._counted = self._added = 0
        self._next_count = monotonic()
        self.on_refusal: Callable[[], None] = lambda: None

    @property
    def badges(self) -> int:
        """Return the number of badges. It may be too high until they are counted again."""
        return self._counted + self._added

    @property
    def left(self) -> int:
        """Return how many new badges there is place for."""
        return max(0, self.most - self.badges)

    def admit(self) -> bool:
        """Add a new badge, or refuse it, which counts the badges again soon."""
        with self._lock:
            is_admitted = self.badges < self.most
            self._added += is_admitted
        if not is_admitted and self._monotonic() >= self._next_count:
            self.on_refusal()
        return is_admitted

    def step(self) -> Seconds:
        """Count the badges if that is due; return the time until it is due again.

        A badge that is added during the count may be counted twice, until the next count.
        """
        if (began := self._monotonic()) >= self._next_count:
            before = self._settle(lambda: self._added)
            counted = self._count(self.most)
            with self._lock:
                self._counted, self._added = counted, self._added - before
            ended = self._monotonic()
            self._next_count = ended + max(FULL_SECONDS, REST_FACTOR * (ended - began))
        return COUNT_SECONDS


class DiskSpace:
    """The guard of the room on a disk, which stops what makes the file grow before it is full.

    New ids need `least` of the `free` bytes, and views half of them.
    """

    def __init__(
        self, free: Callable[[], int], least: int, monotonic: Callable[[], Seconds]
    ) -> None:
        self._free, self._least, self._monotonic = free, max(1, least), monotonic
        self._room, self._next_read = Room.ALL, monotonic()

    def __call__(self) -> Room:
        """Return the room, which is read once a second. Log its changes."""
        if (now := self._monotonic()) >= self._next_read:
            self._next_read, free = now + READ_SECONDS, self._free()
            before, self._room = self._room, Room(min(2 * free // self._least, Room.ALL))
            if self._room is not before:
                room = self._room.name.lower()
                telemetry.event(logging.WARNING, "disk_room_changed", room=room, free_bytes=free)
        return self._room


class ViewClock:
    """The machine's clock, but it never goes back: it is not earlier than the latest in the file.

    The file keeps the latest time at which a view was taken or a badge was folded, here or where it
    was imported from. So if a clock was a day ahead and is corrected, folds wait for a day, and no
    view is lost: no view is stored before a watermark, and no reset is earlier than a view before
    it. `queue` has the views that were taken and are not stored yet.
    """

    def __init__(
        self, database: Database, queue: SqliteQueue, clock: Callable[[], Seconds]
    ) -> None:
        self._database = database
        self._clock = clock
        [(highest,)] = database.read("SELECT highest FROM clock")
        waiting = filter(None, map(ulid_in, queue.bodies()))
        self._highest = max([float(highest), *(milliseconds(ulid) / 1000 for ulid in waiting)])

    def __call__(self) -> Seconds:
        self._highest = max(self._highest, self._clock())
        return self._highest

    def keep(self, at: Seconds = 0.0) -> Seconds:
        """Write the time to the file, in the current commit if there is one, and return it.

        Neither a time that the commit has used, nor `at`, nor what another process kept is later.
        """
        [(self._highest,)] = self._database.write(
            lambda connection: connection.execute(
                "UPDATE clock SET highest = max(highest, ?) RETURNING highest", (max(self(), at),)
            ).fetchall(),
            savepoint=False,
        )
        return self._highest
