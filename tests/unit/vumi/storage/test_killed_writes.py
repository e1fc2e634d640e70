"""The SQLite file after the process was killed during writes."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from chalicelib.storage.items import Key
from vumi.storage.database import Database
from vumi.storage.table import SqliteTable

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
