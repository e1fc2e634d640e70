"""The archive on one machine: it gets the journal entries that TTL removes from the table."""

from __future__ import annotations

import gzip
import json
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from chalicelib.storage.items import Item
from chalicelib.ulids import earliest, new_ulid
from chalicelib.wallets.wallet import HOT_SECONDS, Entry, Posting
from tests.processes.programs import PATIENCE_SECONDS
from tests.processes.server import running
from vumi.storage.archive import FOLDER
from vumi.storage.database import FILE, Database
from vumi.storage.table import SqliteTable

ALICE, BOB = earliest(1), earliest(2)


def journal(count: int, age: float) -> list[Item]:
    """Return the entries of transfers in both wallets; the last has this age in seconds."""
    now = int((time.time() - age) * 1000)
    entries = [
        Entry(new_ulid(now), Posting(new_ulid(now), n + 1, BOB, ALICE), now - n)
        for n in range(count)
    ]
    return [entry.item(wallet) for entry in entries for wallet in (ALICE, BOB)]


def store(folder: Path, items: list[Item]) -> None:
    with closing(Database(folder / FILE)) as database:
        SqliteTable(database).put_all(items)


def hot(folder: Path) -> int:
    """Return the number of entries in the table."""
    return _number(folder, "SELECT count(*) FROM items WHERE sk LIKE 'TX#%'")


def changes(folder: Path) -> int:
    """Return the number of removals that wait for a consumer."""
    return _number(folder, "SELECT count(*) FROM changes")


def _number(folder: Path, query: str) -> int:
    with closing(sqlite3.connect(folder / FILE)) as connection:
        [found] = connection.execute(query).fetchone()
    return int(found)


def objects(folder: Path) -> list[Path]:
    return sorted((folder / FOLDER).glob("journal/????/??/??/*.jsonl.gz"))


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().splitlines()]


def archived(folder: Path) -> list[dict[str, Any]]:
    return [line for path in objects(folder) for line in lines(path)]


def times(folder: Path) -> Counter[tuple[str, str]]:
    """Count how often each entry of each wallet is in the archive."""
    return Counter((line["wallet"], line["id"]) for line in archived(folder))


def of(items: list[Item]) -> set[tuple[str, str]]:
    return {
        (str(item["PK"]).removeprefix("WALLET#"), str(item["SK"]).removeprefix("TX#"))
        for item in items
    }


def wait_until(true: Callable[[], bool], what: str, pause: float = 0.1) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(pause)


@pytest.mark.parametrize("kills", [4])
def test_killed_at_any_moment_it_archives_every_entry_at_least_once(
    tmp_path: Path, kills: int
) -> None:
    """It is killed as soon as more of 6,000 entries of both wallets are removed or archived."""
    items = journal(3_000, HOT_SECONDS + 5)
    store(tmp_path, items)

    def progress() -> tuple[int, int, int]:
        return hot(tmp_path), changes(tmp_path), len(objects(tmp_path))

    for _ in range(kills):
        before = progress()
        with running(tmp_path) as server:
            wait_until(lambda before=before: progress() != before, "something is done", 0.005)  # type: ignore[misc]
            server.process.kill()
            server.process.wait()
        gone = len(items) - hot(tmp_path)
        assert len({*times(tmp_path)}) + changes(tmp_path) >= gone
    with running(tmp_path):
        wait_until(lambda: (hot(tmp_path), changes(tmp_path)) == (0, 0), "all are archived")
    assert {*times(tmp_path)} == of(items)
