"""The archive on one machine: it gets the journal entries that TTL removes from the table."""

from __future__ import annotations

import gzip
import json
import sqlite3
import time
from contextlib import closing
from functools import partial
from pathlib import Path

from chalicelib.storage.items import Item
from chalicelib.ulids import earliest, new_ulid
from chalicelib.wallets.wallet import HOT_SECONDS, Entry, Posting
from tests.processes.programs import until
from tests.processes.server import running
from vumi.storage.archive import FOLDER
from vumi.storage.database import FILE, Database
from vumi.storage.table import SqliteTable

ALICE, BOB = earliest(1), earliest(2)
KILLS = 4
LEFT = "SELECT (SELECT count(*) FROM items WHERE sk LIKE 'TX#%'), (SELECT count(*) FROM changes)"
"""The number of entries in the table, and of removals that wait for their consumer."""


def journal(count: int, age: float) -> list[Item]:
    """Return the entries of transfers in both wallets; the last has this age in seconds."""
    now = int((time.time() - age) * 1000)
    entries = [
        Entry(new_ulid(now), Posting(new_ulid(now), n + 1, BOB, ALICE), now - n)
        for n in range(count)
    ]
    return [entry.item(wallet) for entry in entries for wallet in (ALICE, BOB)]


def progress(folder: Path) -> tuple[int, int, int]:
    """Return the entries and the removals that are left, and the number of archived objects."""
    with closing(sqlite3.connect(folder / FILE)) as connection:
        entries, removals = connection.execute(LEFT).fetchone()
    return entries, removals, len(objects(folder))


def objects(folder: Path) -> list[Path]:
    return sorted((folder / FOLDER).glob("journal/????/??/??/*.jsonl.gz"))


def archived(folder: Path) -> set[tuple[str, str]]:
    """Return the keys of the entries in the archive."""
    texts = (gzip.decompress(path.read_bytes()).decode() for path in objects(folder))
    lines = (json.loads(line) for text in texts for line in text.splitlines())
    return {(f"WALLET#{line['wallet']}", f"TX#{line['id']}") for line in lines}


def test_killed_at_any_moment_it_archives_every_entry_at_least_once(tmp_path: Path) -> None:
    """It is killed as soon as more of 6,000 entries of both wallets are removed or archived."""
    items = journal(3_000, HOT_SECONDS + 5)
    with closing(Database(tmp_path / FILE)) as database:
        SqliteTable(database).put_all(items)
    for _ in range(KILLS):
        before = progress(tmp_path)
        with running(tmp_path) as server:
            until(partial(_has_changed, tmp_path, before))
            server.kill()
        entries, removals, _ = progress(tmp_path)
        assert len(archived(tmp_path)) + removals >= len(items) - entries
    with running(tmp_path):
        until(lambda: progress(tmp_path)[:2] == (0, 0), "all are archived")
    assert archived(tmp_path) == {(item["PK"], item["SK"]) for item in items}


def _has_changed(folder: Path, before: tuple[int, int, int]) -> bool:
    return progress(folder) != before
