"""The limits that one machine keeps in memory, and the clock of views, which never goes back."""

from __future__ import annotations

import logging
from contextlib import closing

import pytest

from chalicelib.counting import bans
from chalicelib.counting.bans import Ban
from chalicelib.counting.view import View
from chalicelib.resources import Room
from chalicelib.ulids import new_ulid
from simulation.clocks import NOON, Clock
from simulation.logs import logged_events
from simulation.views import DAY, put_summary
from vumi.engine import VIEWS_QUEUE
from vumi.storage.badges import count_badges
from vumi.storage.database import Database
from vumi.storage.limits import (
    COUNT_SECONDS,
    FULL_SECONDS,
    BadgeQuota,
    DiskSpace,
    FileBans,
    ViewClock,
)
from vumi.storage.queue import SqliteQueue
from vumi.storage.table import SqliteTable

BAN = Ban("a/*", "spam", "a test", 0)


@pytest.fixture
def kept(database: Database, table: SqliteTable) -> FileBans:
    kept = FileBans(database, table)
    database.in_one_commit(kept.refresh)
    return kept


def covers(database: Database, kept: FileBans) -> bool:
    """Return whether a ban holds in the next commit."""
    database.in_one_commit(kept.refresh)
    return kept.cover("a/b")


def test_a_ban_of_another_process_holds_in_the_next_commit(
    database: Database, kept: FileBans
) -> None:
    with closing(Database(database.path)) as other:
        table = SqliteTable(other)
        bans.put(table, BAN)
        assert covers(database, kept)
        assert bans.lift(table, BAN.pattern)
        assert not covers(database, kept)


def test_a_ban_of_this_process_holds_once_it_is_committed(
    database: Database, table: SqliteTable, kept: FileBans
) -> None:
    def fail() -> None:
        bans.put(table, BAN)
        kept.forget()
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011  of the function above
        database.in_one_commit(fail)
    assert not covers(database, kept)
    bans.put(table, BAN)
    kept.forget()
    assert covers(database, kept)


def test_commits_of_this_process_read_no_bans(
    database: Database, table: SqliteTable, kept: FileBans
) -> None:
    """A ban that is not told of is not seen, so nothing was read."""
    bans.put(table, BAN)
    assert not covers(database, kept)


# ---- the most badges


class Counted:
    """A quota of three badges over a file, at a time that the test sets."""

    def __init__(self, database: Database) -> None:
        self.now, self.counts, self.refused = 5.0, 0, 0
        self.database = database
        self.quota = BadgeQuota(3, self.count, database.in_one_commit, lambda: self.now)
        self.quota.on_refusal = self.refuse

    def count(self, most: int) -> int:
        self.counts += 1
        self.now += 2
        return count_badges(self.database.read, most)

    def refuse(self) -> None:
        self.refused += 1


@pytest.fixture
def counted(database: Database, table: SqliteTable) -> Counted:
    put_summary(table, "a")
    counted = Counted(database)
    counted.quota.step()
    return counted


def test_new_badges_are_added_to_those_of_the_start(counted: Counted) -> None:
    assert counted.quota.left == 2
    assert [counted.quota.admit() for _ in range(3)] == [True, True, False]
    assert counted.quota.left == 0
    assert counted.counts == 1


def test_badges_are_counted_again_and_a_refusal_asks_for_that(
    counted: Counted, table: SqliteTable
) -> None:
    """The two that were admitted were never stored, as if their commit had failed."""
    for _ in range(4):
        counted.quota.admit()
    assert counted.refused == 0, "counted just now"
    assert counted.quota.step() == COUNT_SECONDS
    assert counted.counts == 1
    counted.now += 50 * 2
    assert FULL_SECONDS < 50 * 2
    counted.quota.admit()
    assert counted.refused == 1
    put_summary(table, "b")
    counted.quota.step()
    assert (counted.counts, counted.quota.badges) == (2, 2)


def test_a_badge_that_comes_during_a_count_is_not_forgotten(
    counted: Counted, table: SqliteTable
) -> None:
    def count(most: int) -> int:
        found = count_badges(counted.database.read, most)
        assert quota.admit()
        put_summary(table, "b")
        return found

    quota = BadgeQuota(3, count, counted.database.in_one_commit, lambda: counted.now)
    quota.step()
    assert quota.badges == 2


# ---- the space on the disk

LEAST = 1_000


def test_new_ids_need_the_space_and_views_half_of_it() -> None:
    clock, free = Clock(0.0), [0]
    space = DiskSpace(lambda: free[0], LEAST, clock)
    rooms = {}
    for free[0] in (5_000, 1_000, 999, 500, 499, 0):
        clock.now += 1
        rooms[free[0]] = space()
    assert rooms == {
        **dict.fromkeys((5_000, 1_000), Room.ALL),
        **dict.fromkeys((999, 500), Room.VIEWS),
        **dict.fromkeys((499, 0), Room.COUNTS),
    }


def test_the_space_is_read_once_a_second_and_its_changes_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, reads, free = Clock(0.0), list[float](), [600]

    def read() -> int:
        reads.append(clock.now)
        return free[0]

    space = DiskSpace(read, LEAST, clock)
    for clock.now in (0.0, 0.5, 0.9, 1.0):
        assert space() is Room.VIEWS
    free[0] = 1_000
    clock.now = 2.0
    assert space() is Room.ALL
    assert reads == [0.0, 1.0, 2.0]
    assert logged_events(caplog) == [
        (logging.WARNING, "disk_room_changed", {"room": "views", "free_bytes": 600}),
        (logging.WARNING, "disk_room_changed", {"room": "all", "free_bytes": 1_000}),
    ]


def test_without_a_least_space_there_is_always_room() -> None:
    assert DiskSpace(lambda: 1, 0, Clock(0.0))() is Room.ALL


def view_clock_of(database: Database, clock: Clock) -> ViewClock:
    return ViewClock(database, SqliteQueue(database, VIEWS_QUEUE, clock), clock)


def test_it_follows_the_clock_of_the_machine_but_never_goes_back(database: Database) -> None:
    clock = Clock(NOON)
    view_clock = view_clock_of(database, clock)
    assert view_clock() == NOON
    clock.now += 5
    assert view_clock() == NOON + 5
    clock.now -= DAY
    assert view_clock() == NOON + 5
    clock.now += DAY + 1
    assert view_clock() == NOON + 6


def test_the_file_keeps_the_latest_time(database: Database) -> None:
    clock = Clock(NOON)
    ahead, right = view_clock_of(database, clock), view_clock_of(database, Clock(NOON - DAY))
    ahead.keep()
    right.keep()
    assert view_clock_of(database, Clock(0.0))() == NOON


def test_it_follows_a_later_time_that_another_process_has_kept(database: Database) -> None:
    """An import raises the clock of a server that runs."""
    server = view_clock_of(database, Clock(NOON))
    view_clock_of(database, Clock(NOON)).keep(NOON + DAY)
    assert server.keep() == server() == NOON + DAY


def test_a_time_is_kept_in_the_commit_that_used_it(database: Database) -> None:
    """A commit that fails did no work, so its time need not be kept."""
    clock = view_clock_of(database, Clock(NOON))

    def fail() -> None:
        clock.keep()
        raise InterruptedError

    with pytest.raises(InterruptedError):
        database.in_one_commit(fail)
    assert view_clock_of(database, Clock(0.0))() == 0.0


def test_a_view_that_waits_in_the_queue_is_not_later_than_the_clock(database: Database) -> None:
    """A clock that was ahead took it, and no commit has kept that time."""
    queue = SqliteQueue(database, VIEWS_QUEUE, Clock(NOON))
    for at in (NOON + DAY, NOON + 60):
        queue.send(View("a", new_ulid(int(at * 1000))).to_message())
    queue.send("malformed")
    assert ViewClock(database, queue, Clock(NOON))() == NOON + DAY
