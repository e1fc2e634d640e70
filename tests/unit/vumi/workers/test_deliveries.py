"""The delivery of messages and of changes: what is handled is done in the same commit, once."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.items import Key
from chalicelib.wallets.wallet import Entry, Posting
from simulation.clocks import NOON, Clock, ulid_of
from simulation.resources import GivenResources
from simulation.storage import FakeArchive
from vumi.storage.database import Database
from vumi.storage.queue import SqliteQueue
from vumi.storage.table import SqliteTable
from vumi.workers.deliveries import (
    IDLE_SECONDS,
    LINGER_SECONDS,
    MAX_BATCH_CHANGES,
    RETRY_SECONDS,
    STEP_SECONDS,
    Change,
    ChangeDelivery,
    archive_changes,
    deliver_messages,
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
        deliver = database.in_one_commit
        self.step = partial(deliver_messages, self.queue, self.handle, deliver)

    def send(self, *bodies: str) -> None:
        for body in bodies:
            self.queue.send(body)

    def handle(self, bodies: Mapping[int, str]) -> Collection[int]:
        self.batches.append(list(bodies.values()))
        failed = self.calls.pop(0)() if self.calls else ()
        return [one for one, body in bodies.items() if body in failed]


def test_only_a_failed_message_is_redelivered_after_its_timeout(database: Database) -> None:
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
from vumi.workers.deliveries import deliver_messages
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
deliver_messages(queue, handler, database.in_one_commit)
"""


def test_a_kill_leaves_a_message_handled_and_deleted_or_neither(path: Path) -> None:
    """It is killed at its first statement, its second and so on, until a run completes."""
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


# ---- changes


class Handler:
    """A handler that keeps its batches of sort keys; each call fails at those of one text."""

    def __init__(self, *fails: str) -> None:
        self.batches: list[str] = []
        self._fails = list(fails)

    def __call__(self, changes: Sequence[Change]) -> Collection[Change]:
        found = [str(change.item["SK"]) for change in changes]
        self.batches.append(" ".join(found))
        failed = self._fails.pop(0).split() if self._fails else []
        if failed == ["all"]:
            raise ZeroDivisionError
        return [changes[found.index(one)] for one in failed]


def remove(database: Database, sort_keys: Iterable[str]) -> None:
    """Write removals by TTL into the change log."""
    rows = [(START, "p", sort, "{}") for sort in sort_keys]
    insert = "INSERT INTO changes (removed_at, pk, sk, attributes) VALUES (?, ?, ?, ?)"
    database.write(lambda connection: connection.executemany(insert, rows))


def left(database: Database) -> list[int]:
    return [sequence for (sequence,) in database.read("SELECT sequence FROM changes")]


@dataclass
class Case:
    """Removed items, those at which each call fails, and what steps of a consumer then do."""

    removed: str
    fails: tuple[str, ...]
    rests: list[float]
    batches: list[str]
    left: list[int]
    sort: str = ""


CASES = {
    "nothing": Case("", (), [IDLE_SECONDS], [], []),
    "handled once": Case("a b", (), [0.0, IDLE_SECONDS], ["a b"], []),
    "again from the lowest failed one": Case(
        "a b c d e", ("d b",), [RETRY_SECONDS, 0.0, IDLE_SECONDS], ["a b c d e", "b c d e"], []
    ),
    "while the first one fails": Case(
        "a b", ("a", "a", "a"), [RETRY_SECONDS] * 3, ["a b"] * 3, [1, 2]
    ),
    "some items": Case("V1 T1 V2 T2 V3", (), [0.0, IDLE_SECONDS], ["T1 T2"], [], "T"),
    "none of its items": Case("V1 V2", (), [0.0, IDLE_SECONDS], [], [], "T"),
    "after a failed one": Case("V1 T2 V3 T4 V5", ("T4",), [RETRY_SECONDS], ["T2 T4"], [4, 5], "T"),
    "with a failed one": Case(
        "V1 T2 V3 T4 V5", ("T4",), [RETRY_SECONDS, 0.0], ["T2 T4", "T4"], [], "T"
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_changes_are_delivered_in_order_until_they_are_handled(
    database: Database, case: Case
) -> None:
    handler = Handler(*case.fails)
    delivery = ChangeDelivery(database, "consumer", handler, sort=case.sort)
    remove(database, case.removed.split())
    assert [delivery.step() for _ in case.rests] == case.rests
    assert handler.batches == case.batches
    assert left(database) == case.left


def test_when_a_handler_raises_all_its_changes_are_delivered_again(database: Database) -> None:
    handler = Handler("all")
    delivery = ChangeDelivery(database, "fold", handler)
    remove(database, "ab")
    with pytest.raises(ZeroDivisionError):
        delivery.step()
    delivery.step()
    assert handler.batches == ["a b", "a b"]


def test_changes_are_deleted_only_after_every_consumer(database: Database) -> None:
    slow, fast = (
        ChangeDelivery(database, name, handler)
        for name, handler in (("slow", Handler("b")), ("fast", Handler()))
    )
    remove(database, "abc")
    found = []
    for delivery in (fast, slow, slow):
        delivery.step()
        found.append(left(database))
    assert found == [[1, 2, 3], [2, 3], []]


def test_a_sequence_is_never_used_again_after_deletion_and_reopening(path: Path) -> None:
    """A consumer continues after its checkpoint, so it would skip a reused number."""
    for sequence in (1, 2):
        with closing(Database(path)) as database:
            remove(database, "a")
            assert left(database) == [sequence]
            ChangeDelivery(database, "fold", Handler()).step()
            assert left(database) == []


class Stopwatch:
    """A clock that reports a duration for each batch; the last one is for all later ones."""

    def __init__(self, *seconds: float) -> None:
        self._seconds = list(seconds)
        self._now = 1_000.0  # a stopwatch may begin anywhere
        self._begun = False

    def __call__(self) -> float:
        if self._begun:
            self._now += self._seconds[0]
            del self._seconds[: len(self._seconds) > 1]
        self._begun = not self._begun
        return self._now


@pytest.mark.parametrize(
    ("seconds", "sizes"),
    [
        ((0.0,), [50, 100, 200, 400, 800, 1_000, 1_000]),
        ((0.008, 0.02, 0.01), [50, 62, 50, 50]),
    ],
    ids=["quick ones double up to the limit of Lambda", "the minimum is 50"],
)
def test_a_batch_of_changes_is_as_large_as_fits_into_a_step(
    database: Database, seconds: tuple[float, ...], sizes: list[int]
) -> None:
    """If 50 take 8 ms, 62 fit into 10 ms."""
    assert STEP_SECONDS == 0.01
    handler = Handler()
    delivery = ChangeDelivery(database, "fold", handler, stopwatch=Stopwatch(*seconds))
    remove(database, (f"{place:05}" for place in range(4 * MAX_BATCH_CHANGES)))
    assert {delivery.step() for _ in sizes} == {0.0}
    assert [len(batch.split()) for batch in handler.batches] == sizes


ALICE = ulid_of(NOON, "A" * 16)


def change(sequence: int, days: int = 0) -> Change:
    """Return the removal of an entry that was made some days before noon."""
    at = int(NOON - days * 86_400) * 1000
    entry = Entry(ulid_of(NOON, f"{sequence:016}"), Posting(f"n{sequence}", 1, ALICE), at)
    return Change(sequence, NOON, entry.item(ALICE))


def test_entries_are_archived_by_their_sequence_and_failed_ones_are_delivered_again() -> None:
    archive = FakeArchive(UnavailableError("no room"), "/13/")
    changes = [change(8), change(9, days=1), change(10)]
    assert archive_changes(changes, GivenResources(archive=archive)) == [changes[1]]
    assert [line["nonce"] for line in archive.lines()] == ["n8", "n10"]
    [name] = archive.objects
    assert name.startswith(f"journal/2026/03/14/{8:040}-")


def test_a_malformed_change_is_archived_completely() -> None:
    archive = FakeArchive()
    malformed = Change(1, NOON, {"PK": f"WALLET#{ALICE}", "SK": "TX#1"})
    assert archive_changes([malformed], GivenResources(archive=archive)) == []
    [(name, body)] = archive.objects.items()
    assert name.startswith("journal/malformed/")
    assert json.loads(gzip.decompress(body)) == {
        "sequence": 1,
        "removed_at": NOON,
        "item": malformed.item,
    }
