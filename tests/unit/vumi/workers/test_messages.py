"""The delivery of messages: a handled message is deleted in the same commit."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from chalicelib.storage.items import Key
from simulation.clocks import Clock
from vumi.storage.database import Database
from vumi.storage.queue import SqliteQueue
from vumi.storage.table import SqliteTable
from vumi.workers.messages import (
    IDLE_SECONDS,
    LINGER_SECONDS,
    MessageDelivery,
)

START = 1_000_000.0
VISIBILITY = 30.0
QUEUE = "views"


class World:
    """A queue whose messages are delivered to a handler that keeps its batches.

    Each call does the next of `calls`, which returns the bodies that fail.
    """

    def __init__(self, database: Database, *calls: Callable[[], Collection[str]]) -> None:
        self.clock = Clock(START)
        self.queue = SqliteQueue(database, QUEUE, self.clock, visibility_timeout=VISIBILITY)
        self.calls = list(calls)
        self.batches: list[list[str]] = []
        self.step = MessageDelivery(
            self.queue, self.handle, self.clock, database.in_one_commit
        ).step

    def send(self, *bodies: str) -> None:
        for body in bodies:
            self.queue.send(body)

    def handle(self, bodies: Mapping[int, str]) -> Collection[int]:
        self.batches.append(list(bodies.values()))
        failed = self.calls.pop(0)() if self.calls else ()
        return [one for one, body in bodies.items() if body in failed]


def test_only_a_failed_message_is_redelivered_after_its_visibility_timeout(
    database: Database,
) -> None:
    world = World(database, lambda: ["bad"])
    world.send("a", "bad", "c")
    assert world.step() == IDLE_SECONDS
    world.clock.now += VISIBILITY - 1
    assert world.step() == 1.0
    assert (world.batches, world.queue.size()) == ([["a", "bad", "c"]], 1)
    world.clock.now += 1
    world.step()
    assert (world.batches, world.queue.size()) == ([["a", "bad", "c"], ["bad"]], 0)


def test_when_a_handler_raises_its_writes_are_undone_and_its_messages_redelivered(
    database: Database, table: SqliteTable
) -> None:
    def write() -> Collection[str]:
        table.put_all([{"PK": "p", "SK": "half"}])
        raise ZeroDivisionError

    world = World(database, write)
    world.send("a", "b")
    with pytest.raises(ZeroDivisionError):
        world.step()
    assert (world.queue.size(), table.get(Key("p", "half"))) == (2, None)
    world.clock.now += VISIBILITY
    world.step()
    assert (world.batches, world.queue.size()) == ([["a", "b"], ["a", "b"]], 0)


def test_a_message_that_comes_during_a_step_lingers(database: Database) -> None:
    def send_another() -> Collection[str]:
        world.send("b")
        world.clock.now += 5
        return ()

    world = World(database, send_another)
    world.send("a")
    assert world.step() == LINGER_SECONDS


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
        World(database).send("a", "b")
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
