"""The size of the file: by day, for the operator, and the vacuum that shrinks it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from chalicelib.units import Seconds
from vumi.storage.badges import Read
from vumi.storage.database import Database
from vumi.storage.read_only import WAL, beside

KEPT_DAYS = 400
SAMPLE_SECONDS = 3_600.0
FREE_SHARE = 0.2
"""The share of free pages that stays in the file, because new views take them."""
FREE_PAGES = 1_000
VACUUM_PAGES = 20
"""Pages in one commit, because visitors wait for it."""
VACUUM_SECONDS = 0.05
IDLE_SECONDS = 60.0


def sample_size(database: Database, clock: Callable[[], Seconds]) -> Seconds:
    """Store the size of today, forget old days; return the time until the next sample.

    A day (UTC) keeps its last sample.
    """
    today = datetime.fromtimestamp(clock(), UTC)
    oldest = today - timedelta(days=KEPT_DAYS)
    size = measure(database.path)

    def store(connection: sqlite3.Connection) -> None:
        connection.execute(
            "INSERT INTO file_sizes (day, bytes) VALUES (?, ?)"
            " ON CONFLICT (day) DO UPDATE SET bytes = excluded.bytes",
            (f"{today:%Y-%m-%d}", size),
        )
        connection.execute("DELETE FROM file_sizes WHERE day < ?", (f"{oldest:%Y-%m-%d}",))

    database.write(store)
    return SAMPLE_SECONDS


def vacuum(database: Database) -> Seconds:
    """Release pages that removed items leave, if many are free; return the time until the next.

    Source: sqlite.org, "PRAGMA incremental_vacuum".
    """
    counts = "SELECT freelist_count, page_count FROM pragma_freelist_count, pragma_page_count"
    [(free, pages)] = database.read(counts)
    if free <= max(FREE_PAGES, pages * FREE_SHARE):
        return IDLE_SECONDS
    database.write(_release)
    return VACUUM_SECONDS


def _release(connection: sqlite3.Connection) -> None:
    for _ in range(VACUUM_PAGES):  # Python takes one step of a pragma without columns
        connection.execute("PRAGMA incremental_vacuum(1)")


def measure(path: Path) -> int:
    """Return the bytes of the file and of its WAL."""
    wal = beside(path, WAL)
    return path.stat().st_size + (wal.stat().st_size if wal.exists() else 0)


def read_sizes(read: Read, days: int) -> list[tuple[str, int]]:
    """Return the latest samples, each a day (yyyy-mm-dd) and its bytes, the oldest first."""
    rows = read("SELECT day, bytes FROM file_sizes ORDER BY day DESC LIMIT ?", (days,))
    return [(day, size) for day, size in reversed(rows)]
