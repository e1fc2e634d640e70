"""Views of a common commit are stored in it; others go through the queue."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.counting import badge_count, keys
from chalicelib.counting.view import Counting, View, marker_item
from chalicelib.resources import Room
from chalicelib.settings import Settings
from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.items import Key
from chalicelib.storage.writes import Write
from chalicelib.units import Seconds
from simulation.clocks import NOON, Clock
from simulation.logs import counting_metrics, logged_events
from simulation.standalone import standalone
from simulation.views import (
    AT_NOON,
    BADGE,
    WINDOWS,
    put_summary,
    put_views,
    shown,
    summary,
    view,
)
from vumi.storage.badges import count_seen
from vumi.storage.database import Database
from vumi.storage.queue import SqliteQueue
from vumi.storage.table import SqliteTable
from vumi.workers.deliveries import Change
from vumi.workers.views import CommitBuffer, ViewWorker

VISIBILITY = 30.0
OLD = 1_000.0
"""The age at which a view is counted at once."""
MARK = int(NOON) + 300
YOUNG = view()
WAITS = view(AT_NOON - 600_000, place=1)


class World:
    """A worker over a file, whose resources a test may replace."""

    def __init__(self, database: Database) -> None:
        self.database, self.table, self.clock = database, SqliteTable(database), Clock()
        self.queue = SqliteQueue(
            database, "views", self.clock, visibility_timeout=VISIBILITY, max_receives=1_000
        )
        self.buffer = CommitBuffer(self.queue)
        self.resources = standalone(database, self.buffer, self.clock, Settings())

    @property
    def worker(self) -> ViewWorker:
        return ViewWorker(self.buffer, self.resources)

    def commit(self, *views: View) -> str:
        """Send views within a common commit."""

        def send() -> str:
            for one in views:
                self.buffer.send(one)
            return "answered"

        return self.database.in_one_commit(lambda: self.worker.commit(send))

    def failing(self, error: Exception) -> None:
        """Let the worker fail after it has stored its views."""

        def fail(_: object, parts: Iterable[object], /) -> list[Any]:
            list(parts)
            raise error

        self.resources = replace(self.resources, map_parallel=fail)

    def read(self, sql: str) -> list[Any]:
        """Return the first column of a query."""
        return [first for first, *_ in self.database.read(sql)]

    @property
    def counts(self) -> tuple[int, int]:
        """Return the number of messages, and the count that the badge shows."""
        return self.queue.size(), shown(self.table)


@pytest.fixture
def world(database: Database) -> World:
    return World(database)


def test_the_views_of_a_commit_are_stored_in_it_and_never_sent(world: World) -> None:
    with counting_metrics() as sums:
        assert world.commit() == "answered"
        assert world.read("SELECT highest FROM clock") == [0], "nothing is written without a view"
        assert world.commit(YOUNG, view(place=2)) == "answered"
        assert world.counts == (0, 2)
        assert world.read("SELECT highest FROM clock") == [NOON]
        world.buffer.send(YOUNG)
    assert [message.id for message in world.queue.receive(10)] == [1]
    assert sums["vu-mi"]["views_taken"] == 3


def test_a_view_that_is_not_stored_becomes_a_message_that_was_received_once(
    world: World,
) -> None:
    woken: list[bool] = []
    world.queue.on_send = lambda: woken.append(True)
    assert world.commit(YOUNG, WAITS) == "answered"
    assert (world.queue.size(), woken) == (1, [True])
    assert world.queue.receive(10) == []
    world.clock.now += VISIBILITY
    [message] = world.queue.receive(10)
    assert View.from_message(message.body) == WAITS
    assert world.read("SELECT receives FROM messages") == [2]


@pytest.mark.parametrize(
    ("error", "logged"),
    [
        (ZeroDivisionError(), [(logging.ERROR, "views_not_stored", {"views": 2})]),
        (UnavailableError("the disk is full"), []),
    ],
)
def test_a_commit_fails_if_its_views_can_not_be_stored(
    world: World,
    error: Exception,
    logged: list[tuple[int, str, dict[str, object]]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Then its requests are answered alone, and no view of it is stored in part."""
    world.failing(error)
    with pytest.raises(UnavailableError):
        world.commit(YOUNG, WAITS)
    assert [one for one in logged_events(caplog) if one[1] == "views_not_stored"] == logged
    assert world.counts == (0, 0)


def test_a_hot_view_is_told_before_it_is_kept(world: World) -> None:
    def refuse(badge_id: str) -> None:
        raise ZeroDivisionError(badge_id)

    world.buffer.on_hot = refuse
    with pytest.raises(ZeroDivisionError, match=BADGE):
        world.commit(YOUNG, YOUNG._replace(hot=True))
    assert world.counts == (0, 0)


def test_hot_views_of_a_commit_are_counted_without_a_row_for_each(world: World) -> None:
    """No request comes again, so only a tally of the minute tells how many there were."""
    for minute in (0, 60):
        world.clock.now = NOON + minute
        world.commit(*(view(AT_NOON + minute * 1000, place, hot=True) for place in range(150)))
    assert summary(world.table)["count"] == 300
    assert world.read("SELECT count(*) FROM views") == [0]
    rows = world.read("SELECT attributes FROM items WHERE sk = 'SEEN' ORDER BY pk")
    assert [json.loads(one)["views"] for one in rows] == [150, 150]
    assert count_seen(world.database.read, AT_NOON) == {BADGE: 300}


def test_without_room_views_of_a_commit_are_counted_and_leave_no_row(world: World) -> None:
    world.commit(YOUNG)
    world.resources = replace(world.resources, room=lambda: Room.COUNTS)
    [items] = world.read("SELECT count(*) FROM items")
    world.commit(*(view(place=place) for place in range(2, 102)))
    assert world.counts == (0, 101)
    assert summary(world.table)["count"] == 100
    assert world.read("SELECT count(*) FROM views") == [1]
    assert world.read("SELECT count(*) FROM items") == [items + 1]


def test_a_hot_view_that_can_not_be_counted_fails_the_commit(world: World) -> None:
    """A message of it could not tell that it was counted before."""
    pk, sk = keys.summary("wrong")
    world.table.put_all([{"PK": pk, "SK": sk, "count": "a text"}])
    with pytest.raises(UnavailableError):
        world.commit(view(hot=True), view(place=1, hot=True)._replace(badge_id="wrong"))
    assert world.counts == (0, 0)


def test_a_time_that_a_worker_reads_late_is_kept_by_it(world: World) -> None:
    """The clock jumps between two readings of one commit."""

    def jump(_: object, parts: Iterable[object], /) -> list[Any]:
        world.clock.now += 86_400
        world.resources.view_clock()
        return [0 for _ in parts]

    world.resources = replace(world.resources, map_parallel=jump)
    assert world.worker.store_messages({1: YOUNG._replace(fold=True).to_message()}) == []
    assert world.read("SELECT highest FROM clock") == [world.clock.now]


@pytest.mark.parametrize("later", [VISIBILITY, OLD], ids=["young", "old"])
def test_views_that_were_stored_in_part_are_counted_once(world: World, later: Seconds) -> None:
    """They are stored without a savepoint, and all of them become messages."""
    failing_view = view(place=2)
    trigger = f"t BEFORE INSERT ON views WHEN new.sk = '{keys.view(BADGE, failing_view.ulid).sk}'"
    sql = f"CREATE TRIGGER {trigger} BEGIN SELECT RAISE(ABORT, 'fails'); END"
    world.database.write(lambda connection: connection.execute(sql))
    assert world.commit(YOUNG, failing_view) == "answered"
    assert world.counts == (2, 1)
    world.database.write(lambda connection: connection.execute("DROP TRIGGER t"))
    world.clock.now += later
    messages = {message.id: message.body for message in world.queue.receive(10)}
    assert world.worker.store_messages(messages) == []
    assert shown(world.table) == 2


def test_a_function_that_fails_stores_nothing_and_keeps_no_more_views(world: World) -> None:
    def function() -> None:
        world.buffer.send(YOUNG)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        world.worker.commit(function)
    world.buffer.send(WAITS)
    assert shown(world.table) == 0
    [message] = world.queue.receive(10)
    assert View.from_message(message.body) == WAITS


def marker(sequence: int, badge_id: str = BADGE) -> Change:
    return Change(sequence, NOON + 900, marker_item(badge_id, MARK, MARK + 600))


def test_the_badge_of_a_removed_marker_is_folded_despite_a_malformed_one(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    put_views(world.table, AT_NOON)
    world.clock.now = NOON + 900
    malformed = Change(1, NOON, {"PK": "WINDOW#x", "SK": "WINDOW"})
    assert world.worker.fold([malformed, marker(2)]) == []
    assert summary(world.table)["count"] == 1
    assert world.read("SELECT highest FROM clock") == [NOON + 900]
    assert logged_events(caplog) == [
        (logging.ERROR, "malformed_stream_record", {"record": malformed})
    ]


def test_the_changes_of_badges_that_can_not_be_folded_are_delivered_again(world: World) -> None:
    class Refusing(SqliteTable):
        """A table that writes nothing of one badge."""

        def write(self, *writes: Write) -> None:
            if {write.key.pk for write in writes} & refused:
                raise UnavailableError("no room")
            super().write(*writes)

    refused = {keys.partition(BADGE), keys.marker(BADGE, MARK).pk}
    world.clock.now = NOON + 900
    put_views(world.table, AT_NOON)
    put_views(world.table, AT_NOON, badge_id="hubot")
    world.resources = replace(world.resources, table=Refusing(world.database))
    changes = [marker(1), marker(2, "hubot"), marker(3)]
    assert world.worker.fold(changes) == [changes[0], changes[2]]
    assert world.table.get(Key(keys.partition("hubot"), keys.SUMMARY)) is not None


class FullQueue:
    """A queue that takes no view."""

    def send(self, *_: View) -> None:
        raise UnavailableError("full")


def test_views_of_one_request_that_the_queue_refuses_are_all_stored_or_none(world: World) -> None:
    put_summary(world.table, "broken", count="no number")
    views = [YOUNG, view(badge_id="broken", hot=True)]

    def take(views: Sequence[View]) -> None:
        counting = Counting(world.table, WINDOWS, world.clock, world.database.map_in_commits)
        badge_count.take(views, FullQueue(), lambda: counting)

    with pytest.raises(TypeError):
        take(views)
    assert shown(world.table) == 0
    take([YOUNG, view(place=1)])
    assert shown(world.table) == 2
