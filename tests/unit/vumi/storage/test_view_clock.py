"""The clock of views: it never goes back, neither while a process runs nor across restarts."""

from __future__ import annotations

import pytest

from chalicelib.counting.view import View
from chalicelib.ulids import new_ulid
from simulation.clocks import NOON, Clock
from simulation.views import DAY
from vumi.engine import VIEWS_QUEUE
from vumi.storage.database import Database
from vumi.storage.queue import SqliteQueue
from vumi.storage.view_clock import ViewClock


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
