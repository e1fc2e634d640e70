"""Views of a common commit are stored in it; others go through the queue."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.counting import keys
from chalicelib.counting.view import View
from chalicelib.counting.windows import marker_item
from chalicelib.limits import Room
from chalicelib.settings import Settings
from chalicelib.storage.errors import Unavailable
from chalicelib.storage.items import Key
from chalicelib.units import Seconds
from simulation.clocks import NOON, Clock
from simulation.logs import counting_metrics, logged_events
from simulation.standalone import standalone
from simulation.views import AT_NOON, BADGE, put_views, shown, summary, view
from vumi.storage.badges import count_seen
from vumi.storage.database import Database
from vumi.storage.queue import SqliteQueue
from vumi.storage.table import Change, SqliteTable
from vumi.workers.views import CommitViewQueue, ViewWorker

VISIBILITY = 30.0
OLD = 1_000.0
"""The age at which a view is counted at once."""
MARK = int(NOON) + 300
YOUNG = view()
WAITS = view(AT_NOON - 600_000, place=1)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def queue(database: Database, clock: Clock) -> CommitViewQueue:
    return CommitViewQueue(
        SqliteQueue(database, "views", clock, visibility_timeout=VISIBILITY, max_receives=1_000)
    )


@pytest.fixture
def worker(database: Database, queue: CommitViewQueue, clock: Clock) -> ViewWorker:
    return ViewWorker(queue, standalone(database, queue, clock, Settings()))


@pytest.fixture
def commit(database: Database, queue: CommitViewQueue, worker: ViewWorker) -> Callable[..., str]:
    """Return a function that sends views within a common commit."""

    def send(*views: View) -> str:
        for one in views:
            queue.send(one)
        return "answered"

    return lambda *views: database.in_one_commit(lambda: worker.commit(lambda: send(*views)))


def failing(worker: ViewWorker, error: Exception) -> None:
    """Let the worker fail after it has stored its views."""

    def fail(_: object, parts: Iterable[object], /) -> list[Any]:
        list(parts)
        raise error

    worker._resources = replace(worker._resources, map_parallel=fail)  # noqa: SLF001  no other way in


def test_the_views_of_a_commit_are_stored_in_it_and_never_sent(
    commit: Callable[..., str], queue: CommitViewQueue, table: SqliteTable
) -> None:
    assert commit(YOUNG, view(place=2)) == "answered"
    assert shown(table) == 2
    assert queue.queue.size() == 0
    queue.send(YOUNG)
    assert [message.id for message in queue.queue.receive(10)] == [1]


def test_a_commit_without_views_writes_nothing(
    commit: Callable[..., str], database: Database
) -> None:
    assert commit() == "answered"
    assert database.read("SELECT highest FROM clock") == [(0,)]


def test_the_time_of_a_commit_is_kept_in_the_file(
    commit: Callable[..., str], database: Database
) -> None:
    commit(YOUNG)
    assert database.read("SELECT highest FROM clock") == [(NOON,)]


def test_a_view_that_is_not_stored_becomes_a_message_that_was_received_once(
    commit: Callable[..., str], queue: CommitViewQueue, clock: Clock
) -> None:
    woken: list[bool] = []
    queue.queue.on_send = lambda: woken.append(True)

    assert commit(YOUNG, WAITS) == "answered"

    assert (queue.queue.size(), woken) == (1, [True])
    assert queue.queue.receive(10) == []
    clock.now += VISIBILITY
    [message] = queue.queue.receive(10)
    assert (View.from_message(message.body), message.receives) == (WAITS, 2)
    assert (message.sent_at, message.first_received_at) == (NOON, NOON)


def test_an_unexpected_error_fails_the_commit(
    commit: Callable[..., str],
    worker: ViewWorker,
    queue: CommitViewQueue,
    table: SqliteTable,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Then its requests are answered alone, and no view of it is stored in part."""
    failing(worker, ZeroDivisionError())

    with pytest.raises(Unavailable):
        commit(YOUNG, WAITS)

    assert logged_events(caplog)[0] == (logging.ERROR, "views_not_stored", {"views": 2})
    assert (queue.queue.size(), shown(table)) == (0, 0)


def stored_views(database: Database) -> int:
    [(views,)] = database.read("SELECT count(*) FROM views")
    return int(views)


def test_hot_views_of_a_commit_are_counted_without_a_row_for_each(
    commit: Callable[..., str], database: Database, table: SqliteTable, clock: Clock
) -> None:
    """No request comes again, so only a tally of the minute tells how many there were."""
    for minute in (0, 60):
        clock.now = NOON + minute
        commit(*(view(AT_NOON + minute * 1000, place, hot=True) for place in range(150)))
    assert (summary(table)["count"], stored_views(database)) == (300, 0)
    rows = database.read("SELECT attributes FROM items WHERE sk = 'SEEN' ORDER BY pk")
    assert [json.loads(one)["views"] for (one,) in rows] == [150, 150]
    assert count_seen(database.read, AT_NOON) == {BADGE: 300}


def test_without_room_views_of_a_commit_are_counted_and_leave_no_row(
    worker: ViewWorker, commit: Callable[..., str], database: Database, table: SqliteTable
) -> None:
    commit(YOUNG)
    worker._resources = replace(worker._resources, room=lambda: Room.COUNTS)  # noqa: SLF001  no other way in
    [(items,)] = database.read("SELECT count(*) FROM items")
    commit(*(view(place=place) for place in range(2, 102)))
    assert (shown(table), stored_views(database)) == (101, 1)
    assert summary(table)["count"] == 100
    assert database.read("SELECT count(*) FROM items") == [(items + 1,)]


def test_a_hot_view_that_can_not_be_counted_fails_the_commit(
    commit: Callable[..., str], queue: CommitViewQueue, table: SqliteTable
) -> None:
    """A message of it could not tell that it was counted before."""
    pk, sk = keys.summary("wrong")
    table.put_all([{"PK": pk, "SK": sk, "count": "a text"}])
    with pytest.raises(Unavailable):
        commit(view(hot=True), replace(view(place=1, hot=True), badge_id="wrong"))
    assert (queue.queue.size(), shown(table)) == (0, 0)


def test_a_commit_fails_if_its_storage_fails(
    commit: Callable[..., str], worker: ViewWorker, queue: CommitViewQueue, table: SqliteTable
) -> None:
    """Then its requests are answered alone."""
    failing(worker, Unavailable("the disk is full"))
    with pytest.raises(Unavailable):
        commit(YOUNG)
    assert (queue.queue.size(), shown(table)) == (0, 0)


@pytest.mark.parametrize("later", [VISIBILITY, OLD], ids=["young", "old"])
def test_views_that_were_stored_in_part_are_counted_once(  # noqa: PLR0913  the parts of a worker
    commit: Callable[..., str],
    *,
    worker: ViewWorker,
    queue: CommitViewQueue,
    database: Database,
    table: SqliteTable,
    clock: Clock,
    later: Seconds,
) -> None:
    """They are stored without a savepoint, and all of them become messages."""
    failing_view = view(place=2)
    trigger = f"t BEFORE INSERT ON views WHEN new.sk = '{keys.view(BADGE, failing_view.ulid).sk}'"
    sql = f"CREATE TRIGGER {trigger} BEGIN SELECT RAISE(ABORT, 'fails'); END"
    database.write(lambda connection: connection.execute(sql))

    assert commit(YOUNG, failing_view) == "answered"

    assert (shown(table), queue.queue.size()) == (1, 2)
    database.write(lambda connection: connection.execute("DROP TRIGGER t"))
    clock.now += later
    messages = {message.id: message.body for message in queue.queue.receive(10)}
    assert worker.store_messages(messages) == []
    assert shown(table) == 2


def test_a_function_that_fails_stores_nothing_and_keeps_no_more_views(
    worker: ViewWorker, queue: CommitViewQueue, table: SqliteTable
) -> None:
    def function() -> None:
        queue.send(YOUNG)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        worker.commit(function)
    queue.send(WAITS)

    assert shown(table) == 0
    [message] = queue.queue.receive(10)
    assert View.from_message(message.body) == WAITS


def test_a_view_of_another_thread_is_sent(worker: ViewWorker, queue: CommitViewQueue) -> None:
    def function() -> None:
        other = threading.Thread(target=queue.send, args=(YOUNG,))
        other.start()
        other.join()

    worker.commit(function)

    assert queue.queue.size() == 1


def test_the_views_of_messages_are_stored_and_the_others_are_redelivered(
    worker: ViewWorker, table: SqliteTable
) -> None:
    bodies = {1: YOUNG.to_message(), 2: "malformed", 3: WAITS.to_message(), 4: YOUNG.to_message()}
    assert worker.store_messages(bodies) == [2, 3]
    assert shown(table) == 1


def marker(sequence: int, badge_id: str = BADGE) -> Change:
    return Change(sequence, NOON + 900, marker_item(badge_id, MARK, MARK + 600))


def test_the_badge_of_a_removed_marker_is_folded_despite_a_malformed_one(
    worker: ViewWorker,
    table: SqliteTable,
    database: Database,
    clock: Clock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    put_views(table, AT_NOON)
    clock.now = NOON + 900
    malformed = Change(1, NOON, {"PK": "WINDOW#x", "SK": "WINDOW"})
    assert worker.fold([malformed, marker(2)]) == []
    assert summary(table)["count"] == 1
    assert database.read("SELECT highest FROM clock") == [(NOON + 900,)]
    assert logged_events(caplog) == [
        (logging.ERROR, "malformed_stream_record", {"record": malformed})
    ]


def test_the_changes_of_badges_that_can_not_be_folded_are_delivered_again(
    worker: ViewWorker, table: SqliteTable, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock.now = NOON + 900
    put_views(table, AT_NOON)
    put_views(table, AT_NOON, badge_id="hubot")
    whole = table.write

    def refuse(*writes: Any) -> None:
        refused = {keys.partition(BADGE), keys.marker(BADGE, MARK).pk}
        if {write.key.pk for write in writes} & refused:
            raise Unavailable("no room")
        whole(*writes)

    monkeypatch.setattr(SqliteTable, "write", lambda _, *writes: refuse(*writes))
    changes = [marker(1), marker(2, "hubot"), marker(3)]
    assert worker.fold(changes) == [changes[0], changes[2]]
    assert table.get(Key(keys.partition("hubot"), keys.SUMMARY)) is not None


def test_views_that_are_taken_are_counted_in_a_commit_and_outside(
    commit: Callable[..., str], queue: CommitViewQueue
) -> None:
    with counting_metrics() as sums:
        commit(YOUNG, view(place=2))
        queue.send(YOUNG)
    assert sums["vu-mi"]["views_taken"] == 3
