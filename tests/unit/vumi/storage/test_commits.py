"""The writer of the file: one transaction at a time, in turn, and none half done after a kill."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from chalicelib.storage.items import Key
from vumi.storage.commits import LOCKED_MILLISECONDS, FairLock, Job, Writer, nested
from vumi.storage.database import Database
from vumi.storage.table import SqliteTable

PATIENCE = 10.0
"""Seconds after which a thread counts as hung."""
SMALL, BIG = b"s", b"b" * 1_000_000


class OddError(Exception):
    """The error that jobs of these tests raise."""


class Bench:
    """A file with one table, its writer, and the statements of its connection."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.connection = sqlite3.connect(
            path, timeout=0.0, isolation_level=None, check_same_thread=False
        )
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("CREATE TABLE rows (name TEXT PRIMARY KEY, content BLOB)")
        self.statements: list[str] = []
        self.connection.set_trace_callback(self.statements.append)
        self.writer = Writer(self.connection)

    def committed(self) -> list[str]:
        """Return the names that another connection sees."""
        reader = sqlite3.connect(self.path)
        names = [name for (name,) in reader.execute("SELECT name FROM rows ORDER BY name")]
        reader.close()
        return names

    def fill_disk(self) -> None:
        """Limit the file to its present size."""
        [pages] = self.connection.execute("PRAGMA page_count").fetchone()
        self.connection.execute(f"PRAGMA max_page_count = {pages}").fetchall()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path / "rows.sqlite3")
    yield bench
    bench.connection.close()


def insert(name: str, content: bytes = SMALL) -> Job[str]:
    def job(connection: sqlite3.Connection) -> str:
        connection.execute("INSERT INTO rows (name, content) VALUES (?, ?)", (name, content))
        return name

    return job


def insert_then_raise(name: str) -> Job[str]:
    def job(connection: sqlite3.Connection) -> str:
        insert(name)(connection)
        raise OddError(name)

    return job


def test_waiters_get_the_lock_in_the_order_in_which_they_came() -> None:
    """The thread that has it can't take it again before them."""
    lock, order = FairLock(), list[int]()

    def work(place: int) -> None:
        with lock:
            order.append(place)

    threads = [threading.Thread(target=work, args=(place,)) for place in range(4)]
    with lock:
        for place, thread in enumerate(threads):
            thread.start()
            while len(lock._turns) <= place:  # noqa: SLF001  nothing else tells that it waits
                thread.join(0.001)
    work(4)
    for thread in threads:
        thread.join(PATIENCE)
    assert order == [0, 1, 2, 3, 4]


def insert_into_no_table(connection: sqlite3.Connection) -> None:
    insert("b")(connection)
    connection.execute("INSERT INTO no_such_table VALUES (1)")


def insert_orphan(connection: sqlite3.Connection) -> None:
    """Insert a row whose constraint fails at the commit."""
    connection.execute("INSERT INTO children VALUES ('nobody')")


@pytest.mark.parametrize(
    ("failing", "error"),
    [
        (insert_then_raise("b"), OddError),
        (insert_into_no_table, sqlite3.OperationalError),
        (insert_orphan, sqlite3.IntegrityError),
    ],
)
def test_a_job_that_fails_changes_nothing_and_disturbs_no_later_one(
    bench: Bench, failing: Job[object], error: type[Exception]
) -> None:
    bench.connection.execute("PRAGMA foreign_keys = ON")
    bench.connection.execute(
        "CREATE TABLE children (parent TEXT REFERENCES rows DEFERRABLE INITIALLY DEFERRED)"
    )

    with pytest.raises(error):
        bench.writer.run(failing)

    assert bench.writer.run(insert("c")) == "c"
    assert bench.committed() == ["c"]


def test_after_one_timeout_no_job_waits_as_long_until_the_file_is_free(bench: Bench) -> None:
    def patience() -> int:
        [milliseconds] = bench.connection.execute("PRAGMA busy_timeout").fetchone()
        return int(milliseconds)

    bench.connection.execute("PRAGMA busy_timeout = 300")
    writer = Writer(bench.connection)
    other = sqlite3.connect(bench.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    for name in "ab":
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            writer.run(insert(name))
        assert patience() == LOCKED_MILLISECONDS
    other.execute("ROLLBACK")
    other.close()

    assert writer.run(insert("c")) == "c"
    assert patience() == 300


def swallowing_a_full_disk(then: Callable[[sqlite3.Connection], object]) -> Job[object]:
    """Return a job that continues after a full disk, when SQLite has undone its transaction."""

    def job(connection: sqlite3.Connection) -> object:
        insert("before")(connection)
        with pytest.raises(sqlite3.OperationalError, match="full"):
            nested(connection, insert("too big", BIG))
        assert not connection.in_transaction
        return then(connection)

    return job


@pytest.mark.parametrize(
    "then",
    [lambda connection: nested(connection, insert("after")), lambda _: "all is well"],
    ids=["written on", "acknowledged"],
)
def test_a_rolled_back_transaction_is_never_written_on_or_acknowledged(
    bench: Bench, then: Callable[[sqlite3.Connection], object]
) -> None:
    bench.fill_disk()
    with pytest.raises(sqlite3.OperationalError, match=r"^the transaction was rolled back"):
        bench.writer.run(swallowing_a_full_disk(then))
    assert bench.committed() == []


def test_no_cursor_leaves_the_lock(bench: Bench) -> None:
    assert bench.writer.run(lambda connection: connection.execute("SELECT 1")) is None


ROOT = Path(__file__).parents[4]

WRITE_UNTIL_KILLED = """
import os, sys, threading
from pathlib import Path
from chalicelib.storage.items import Item, Key
from chalicelib.storage.writes import Put, Update
from vumi.storage.database import Database
from vumi.storage.queue import SqliteQueue
from vumi.storage.table import SqliteTable

database = Database(Path(sys.argv[1]))
table, queue = SqliteTable(database), SqliteQueue(database, "killed", lambda: 0.0)

def item(worker, turn):
    put = Put({"PK": f"item {worker}", "SK": f"{turn:08}"})
    table.write(put, Update(Key("counters", f"{worker}"), add={"n": 1}))

def message(worker, turn):
    queue.send(f"{worker} {turn}")

def both(worker, turn):
    database.in_one_commit(lambda: (item(worker, turn), message(worker, turn)))

def work(worker, write):
    for turn in range(1_000_000):
        write(worker, turn)
        os.write(1, f"{worker} {turn}\\n".encode())

for worker, write in enumerate([item, item, message, message, both, both]):
    threading.Thread(target=work, args=(worker, write)).start()
"""
ITEM_WORKERS, MESSAGE_WORKERS, BOTH_WORKERS = {0, 1}, {2, 3}, {4, 5}
ACKNOWLEDGED = 500
"""Writes that are acknowledged before the process is killed."""


def write_until_killed(path: Path) -> dict[int, int]:
    """Kill a writing process; return the number of acknowledged writes of each thread."""
    process = subprocess.Popen(  # noqa: S603  this interpreter on the text above
        [sys.executable, "-c", WRITE_UNTIL_KILLED, str(path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(ACKNOWLEDGED)]
        process.kill()
        lines += process.stdout.readlines()
    assert process.returncode == -signal.SIGKILL
    acknowledged = Counter(int(line.split()[0]) for line in lines if line.endswith("\n"))
    assert acknowledged.total() >= ACKNOWLEDGED
    return dict(acknowledged)


def stored_items(database: Database) -> dict[int, list[int]]:
    rows = database.read("SELECT pk, sk FROM items WHERE pk LIKE 'item %' ORDER BY pk, sk")
    return grouped((int(pk.removeprefix("item ")), int(sk)) for pk, sk in rows)


def stored_messages(database: Database) -> dict[int, list[int]]:
    rows = database.read("SELECT body FROM messages WHERE queue = 'killed' ORDER BY id")
    return grouped((int(worker), int(turn)) for worker, turn in (body.split() for (body,) in rows))


def grouped(pairs: Iterator[tuple[int, int]]) -> dict[int, list[int]]:
    groups = defaultdict(list)
    for worker, turn in pairs:
        groups[worker].append(turn)
    return groups


def test_after_a_kill_all_acknowledged_writes_are_stored_and_none_is_half_done(path: Path) -> None:
    """Each thread writes 0, 1, 2 … and reports each; at most one write of each was unfinished."""
    acknowledged = write_until_killed(path)
    with closing(Database(path)) as database:
        items, messages = stored_items(database), stored_messages(database)
        table = SqliteTable(database)
        counters = {
            worker: (table.get(Key("counters", f"{worker}")) or {})["n"] for worker in items
        }
        assert database.read("PRAGMA integrity_check") == [("ok",)]
    for found, workers in ((items, ITEM_WORKERS), (messages, MESSAGE_WORKERS)):
        for worker in workers | BOTH_WORKERS:
            turns = found.get(worker, [])
            assert turns == list(range(len(turns)))
            assert 0 <= len(turns) - acknowledged.get(worker, 0) <= 1
    assert counters == {worker: len(turns) for worker, turns in items.items()}
    for worker in BOTH_WORKERS:
        assert items.get(worker) == messages.get(worker)
