"""The queue on SQLite: it has the behaviour of SQS that consumers rely on."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from chalicelib.storage import ports
from chalicelib.storage.errors import UnavailableError
from simulation.clocks import Clock
from vumi.storage.commits import Job
from vumi.storage.database import Database
from vumi.storage.queue import DEAD_LETTERS, Message, SqliteQueue

Result = TypeVar("Result")

START = 1_000_000.0
VISIBILITY = 30.0
MAX_RECEIVES = 3


@pytest.fixture
def clock() -> Clock:
    return Clock(START)


@pytest.fixture
def queue(database: Database, clock: Clock) -> SqliteQueue:
    return open_queue(database, clock)


def open_queue(database: Database, clock: Clock, name: str = "views") -> SqliteQueue:
    queue = SqliteQueue(
        database, name, clock, visibility_timeout=VISIBILITY, max_receives=MAX_RECEIVES
    )
    queue.release()
    return queue


@contextmanager
def process(path: Path, clock: Clock) -> Iterator[SqliteQueue]:
    """Open a file as a new process, and close it without any other write."""
    with closing(Database(path)) as database:
        yield open_queue(database, clock)


def bodies(messages: list[Message]) -> list[str]:
    return [message.body for message in messages]


def dead_letters(queue: SqliteQueue) -> int:
    return queue.sibling(queue.name + DEAD_LETTERS).size()


def give_up(queue: SqliteQueue, clock: Clock) -> None:
    """Receive a message as often as it may be, and once more."""
    for _ in range(MAX_RECEIVES + 1):
        queue.receive(10)
        clock.now += VISIBILITY


def test_a_received_message_is_invisible_for_its_visibility_timeout(
    queue: SqliteQueue, clock: Clock
) -> None:
    queue.send("a")
    assert bodies(queue.receive(10)) == ["a"]

    clock.now += VISIBILITY - 0.1
    assert queue.receive(10) == []
    assert queue.seconds_until_visible(0.0, 60.0) == pytest.approx(0.1)

    clock.now += 0.1
    assert bodies(queue.receive(10)) == ["a"]


def test_messages_come_in_the_order_in_which_they_became_visible(
    queue: SqliteQueue, clock: Clock
) -> None:
    queue.send("late", delay=10)
    queue.send("later", delay=20)
    assert queue.seconds_until_visible(0.0, 60.0) == 10
    queue.send("a")
    queue.send("b")
    clock.now += 5
    queue.send("c")
    clock.now += 10

    assert bodies(queue.receive(10)) == ["a", "b", "c", "late"]  # visible at +0, +0, +5, +10


def test_a_send_wakes_the_consumer_after_its_commit(queue: SqliteQueue) -> None:
    sizes: list[int] = []
    queue.on_send = lambda: sizes.append(queue.size())

    queue.send("a")
    queue.send("b")

    assert sizes == [1, 2]


def test_a_message_received_too_often_becomes_a_dead_letter(
    queue: SqliteQueue, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    queue.send("bad")
    for _ in range(MAX_RECEIVES):
        assert bodies(queue.receive(10)) == ["bad"]
        clock.now += VISIBILITY
    assert dead_letters(queue) == 0

    with caplog.at_level(logging.ERROR):
        assert queue.receive(10) == []

    assert (queue.size(), dead_letters(queue)) == (0, 1)
    assert [record.getMessage() for record in caplog.records] == ["dead_letters"]
    fields = {"function": "vu-mi", "queue": "views", "messages": 1}
    assert caplog.records[0].__dict__["fields"] == fields


def test_a_message_is_no_dead_letter_during_its_last_delivery(
    queue: SqliteQueue, clock: Clock
) -> None:
    queue.send("slow")
    for _ in range(MAX_RECEIVES - 1):
        queue.receive(10)
        clock.now += VISIBILITY
    last = queue.receive(10)
    clock.now += VISIBILITY - 1

    assert queue.receive(10) == []
    assert (queue.size(), dead_letters(queue)) == (1, 0)
    queue.delete(last)
    assert (queue.size(), dead_letters(queue)) == (0, 0)


def test_redriven_dead_letters_are_visible_immediately_and_have_all_deliveries(
    queue: SqliteQueue, clock: Clock
) -> None:
    queue.send("a")
    queue.send("b")
    give_up(queue, clock)
    assert dead_letters(queue) == 2

    assert queue.redrive() == 2

    assert (queue.size(), dead_letters(queue)) == (2, 0)
    assert bodies(queue.receive(10)) == ["a", "b"]
    clock.now += VISIBILITY
    assert bodies(queue.receive(10)) == ["a", "b"]


def test_a_clock_set_back_while_running_delays_no_message_and_shortens_no_wait(
    queue: SqliteQueue, clock: Clock
) -> None:
    """The clock goes an hour back. A message due in 30 s is still due in 30 s."""
    queue.send("in hand")
    queue.send("delayed", delay=60)
    assert bodies(queue.receive(10)) == ["in hand"]
    queue.send("waiting")

    clock.now -= 3600
    assert bodies(queue.receive(10)) == ["waiting"]
    clock.now += VISIBILITY - 0.1
    assert queue.receive(10) == []
    clock.now += 0.1
    assert bodies(queue.receive(1)) == ["in hand"]
    clock.now += 60 - VISIBILITY
    assert "delayed" in bodies(queue.receive(10))


def test_a_clock_set_back_between_two_runs_delays_no_message(path: Path, clock: Clock) -> None:
    with process(path, clock) as queue:
        queue.send("in hand")
        queue.receive(10)
        queue.send("waiting")
        queue.send("delayed", delay=60)
    clock.now -= 3600
    with process(path, clock) as queue:
        assert sorted(bodies(queue.receive(10))) == ["in hand", "waiting"]
        clock.now += 59.9
        assert "delayed" not in bodies(queue.receive(10))
        clock.now += 0.1
        assert "delayed" in bodies(queue.receive(10))


def test_messages_of_a_killed_process_are_visible_at_the_next_start(
    path: Path, clock: Clock
) -> None:
    """The interrupted deliveries count too."""
    with process(path, clock) as queue:
        queue.send("in hand")
        queue.send("delayed", delay=60)
    for _ in range(MAX_RECEIVES):
        with process(path, clock) as queue:
            assert bodies(queue.receive(10)) == ["in hand"]
    with process(path, clock) as queue:
        assert (queue.receive(10), dead_letters(queue)) == ([], 1)


def test_the_id_of_a_deleted_message_is_never_used_again(path: Path, clock: Clock) -> None:
    """An id names a message in a partial batch response, so no two may share one."""
    ids = []
    for body in "ab":
        with process(path, clock) as queue:
            queue.send(body)
            [message] = queue.receive(10)
            queue.delete([message])
            ids.append(message.id)
    assert ids[1] > ids[0]


class Undoing(Database):
    """A file that undoes its transactions while `undoes` is true."""

    undoes = False

    def write(self, job: Job[Result], *, savepoint: bool = True) -> Result:
        def undone(connection: sqlite3.Connection) -> Result:
            job(connection)
            raise UnavailableError("undone")

        return super().write(undone if self.undoes else job, savepoint=savepoint)


def test_a_clock_set_back_is_followed_though_the_first_receive_was_undone(
    path: Path, clock: Clock
) -> None:
    with closing(Undoing(path)) as database:
        queue = open_queue(database, clock)
        queue.send("x")
        assert bodies(queue.receive(9)) == ["x"]
        clock.now -= 500
        database.undoes = True
        with pytest.raises(UnavailableError):
            queue.receive(9)
        database.undoes = False
        assert queue.receive(9) == []
        clock.now += VISIBILITY
        assert bodies(queue.receive(9)) == ["x"]


def test_many_are_sent_in_one_commit(queue: SqliteQueue, statements: list[str]) -> None:
    statements.clear()
    queue.send_all([ports.Message("late", 2.5), ports.Message("now", 0)])
    assert statements.count("COMMIT") == 1
    assert queue.size() == 2


def test_if_several_messages_can_not_be_sent_none_is_stored(path: Path, clock: Clock) -> None:
    messages = [ports.Message("a"), ports.Message("b")]
    with closing(Undoing(path)) as database:
        queue = open_queue(database, clock)
        database.undoes = True
        with pytest.raises(ports.NotSentError, match="2 messages not sent: undone") as failed:
            queue.send_all(messages)
        assert (failed.value.messages, queue.size()) == (messages, 0)


def test_all_queues_of_a_file_use_the_same_clock(
    database: Database, queue: SqliteQueue, clock: Clock
) -> None:
    other = queue.sibling("deliveries")
    other.send("a", delay=1)
    assert queue.size() == 0
    clock.now += 1
    assert bodies(open_queue(database, clock, "deliveries").receive(10)) == ["a"]
