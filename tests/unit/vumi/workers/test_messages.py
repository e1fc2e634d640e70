"""The delivery of messages: a handled message is deleted in the same commit."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest

from chalicelib.storage.items import Key
from simulation.clocks import Clock
from tests.unit.vumi.storage.test_queue import dead_letters
from vumi.storage.database import Database
from vumi.storage.queue import SqliteQueue
from vumi.storage.table import SqliteTable
from vumi.workers.messages import (
    BATCH_MESSAGES,
    IDLE_SECONDS,
    LINGER_SECONDS,
    HandleMessages,
    MessageDelivery,
)

START = 1_000_000.0
VISIBILITY = 30.0
MAX_RECEIVES = 3
QUEUE = "views"


def succeed(_: list[int]) -> Collection[int]:
    return ()


@dataclass
class Handler:
    """A handler that keeps its batches and fails at the given messages."""

    failed: Callable[[list[int]], Collection[int]] = succeed
    batches: list[list[str]] = field(default_factory=list)

    def __call__(self, bodies: Mapping[int, str]) -> Collection[int]:
        self.batches.append(list(bodies.values()))
        return self.failed(list(bodies))


@pytest.fixture
def clock() -> Clock:
    return Clock(START)


@pytest.fixture
def queue(database: Database, clock: Clock) -> SqliteQueue:
    return SqliteQueue(
        database, QUEUE, clock, visibility_timeout=VISIBILITY, max_receives=MAX_RECEIVES
    )


Delivering = Callable[[HandleMessages], MessageDelivery]


@pytest.fixture
def delivering(database: Database, queue: SqliteQueue, clock: Clock) -> Delivering:
    """Deliver the messages of the queue to a handler, as the engine does."""
    return lambda handle: MessageDelivery(queue, handle, clock, database.in_one_commit)


def send(queue: SqliteQueue, *bodies: str) -> None:
    for body in bodies:
        queue.send(body)


def test_messages_that_are_handled_are_deleted(queue: SqliteQueue, delivering: Delivering) -> None:
    send(queue, "a", "b")
    handler = Handler()

    delivering(handler).step()

    assert handler.batches == [["a", "b"]]
    assert (queue.size(), dead_letters(queue)) == (0, 0)


def test_only_a_failed_message_is_redelivered_after_its_visibility_timeout(
    queue: SqliteQueue, delivering: Delivering, clock: Clock
) -> None:
    send(queue, "a", "bad", "c")
    handler = Handler(lambda batch: [batch[1]])
    delivery = delivering(handler)

    delivery.step()
    assert queue.size() == 1
    delivery.step()
    assert handler.batches == [["a", "bad", "c"]]

    clock.now += VISIBILITY
    handler.failed = succeed
    delivery.step()
    assert handler.batches == [["a", "bad", "c"], ["bad"]]
    assert queue.size() == 0


def test_when_a_handler_raises_all_its_messages_are_redelivered(
    queue: SqliteQueue, delivering: Delivering, clock: Clock
) -> None:
    def fall(_: list[int]) -> Collection[int]:
        raise ZeroDivisionError

    send(queue, "a", "b")
    handler = Handler(fall)
    delivery = delivering(handler)
    with pytest.raises(ZeroDivisionError):
        delivery.step()
    assert queue.size() == 2

    clock.now += VISIBILITY
    handler.failed = succeed
    delivery.step()

    assert handler.batches == [["a", "b"], ["a", "b"]]
    assert queue.size() == 0


def test_a_message_that_always_fails_becomes_a_dead_letter_and_delays_nobody(
    queue: SqliteQueue, delivering: Delivering, clock: Clock
) -> None:
    send(queue, "bad")
    handler = Handler(lambda batch: [1] if 1 in batch else ())  # the first id is 1
    delivery = delivering(handler)
    for turn in range(MAX_RECEIVES + 2):
        send(queue, f"good {turn}")
        delivery.step()
        clock.now += VISIBILITY

    assert sum("bad" in batch for batch in handler.batches) == MAX_RECEIVES
    assert (queue.size(), dead_letters(queue)) == (0, 1)


def test_the_handler_is_not_called_without_messages(delivering: Delivering) -> None:
    handler = Handler()

    assert delivering(handler).step() == IDLE_SECONDS
    assert handler.batches == []


def test_a_full_batch_is_followed_by_the_next_immediately(
    queue: SqliteQueue, delivering: Delivering
) -> None:
    bodies = [str(number) for number in range(BATCH_MESSAGES + 1)]
    send(queue, *bodies)
    handler = Handler()
    delivery = delivering(handler)

    assert delivery.step() == 0.0
    assert delivery.step() == IDLE_SECONDS

    assert handler.batches == [bodies[:BATCH_MESSAGES], bodies[BATCH_MESSAGES:]]


def test_the_rest_ends_when_the_next_message_becomes_visible(
    queue: SqliteQueue, delivering: Delivering, clock: Clock
) -> None:
    send(queue, "bad")
    delivery = delivering(Handler(lambda batch: batch))

    assert delivery.step() == IDLE_SECONDS
    clock.now += VISIBILITY - 1
    assert delivery.step() == 1.0


def test_messages_of_another_program_are_found_soon(
    delivering: Delivering,
) -> None:
    """The command that redrives dead letters is such a program."""
    delivery = delivering(Handler())
    assert delivery.step() <= 5.0


def test_a_message_that_comes_during_a_step_lingers(
    queue: SqliteQueue, delivering: Delivering, clock: Clock
) -> None:
    send(queue, "a")

    def slow(_: list[int]) -> Collection[int]:
        send(queue, "b")
        clock.now += 5
        return ()

    assert delivering(Handler(slow)).step() == LINGER_SECONDS


def test_the_writes_of_a_handler_that_raises_are_undone(
    queue: SqliteQueue, delivering: Delivering, clock: Clock, table: SqliteTable
) -> None:
    def handler(_: object) -> Collection[int]:
        table.put_all([{"PK": "p", "SK": "half"}])
        raise ZeroDivisionError

    send(queue, "a")
    with pytest.raises(ZeroDivisionError):
        delivering(handler).step()

    assert table.get(Key("p", "half")) is None
    clock.now += VISIBILITY
    assert [message.body for message in queue.receive(10)] == ["a"]


DELIVER_UNTIL_KILLED = """
import os, signal, sys
from pathlib import Path
from chalicelib.storage.items import Key
from chalicelib.storage.writes import Update
from vumi.storage.database import Database
from vumi.workers.messages import MessageDelivery
from vumi.storage.queue import SqliteQueue
from vumi.storage.table import SqliteTable

database = Database(Path(sys.argv[1]))
table, queue = SqliteTable(database), SqliteQueue(database, "views", lambda: 1_000_000.0)
left = int(sys.argv[2])


def note(statement):
    global left
    if statement.startswith(("BEGIN", "UPDATE", "INSERT", "DELETE", "COMMIT")):
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)


def handler(bodies):
    for body in bodies.values():
        table.write(Update(Key("p", body), add={"handled": 1}))
    return ()


queue.release()
database.write(lambda connection: connection.set_trace_callback(note))
MessageDelivery(queue, handler, lambda: 1_000_000.0, database.in_one_commit).step()
"""


def test_a_kill_leaves_a_message_handled_and_deleted_or_neither(
    tmp_path: Path,
) -> None:
    """It is killed at its first statement, its second and so on, until a run completes."""
    path = tmp_path / "killed.sqlite3"
    with closing(Database(path)) as database:
        send(SqliteQueue(database, QUEUE, lambda: START), "a", "b")
    for statement in count(1):
        done = subprocess.run(  # noqa: S603  the text above
            [sys.executable, "-c", DELIVER_UNTIL_KILLED, path, str(statement)], check=False
        )
        with closing(Database(path)) as database:
            handled = SqliteTable(database).query("p", limit=9)
            left = SqliteQueue(database, QUEUE, lambda: START).size()
        assert (len(handled), left) in ((0, 2), (2, 0))
        assert all(item["handled"] == 1 for item in handled)
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL
    assert statement > 5
    assert len(handled) == 2
