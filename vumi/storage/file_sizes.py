"""The size of the file by day, which shows the operator how fast it grows."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from chalicelib.units import Seconds
from vumi.storage.badges import Read
from vumi.storage.database import Database
from vumi.storage.read_only import WAL, beside

KEPT_DAYS = 400
SAMPLE_SECONDS = 3_600.0


@dataclass(frozen=True, slots=True)
class FileSize:
    """The size of the file at the end of a day (UTC), or now."""

    day: str
    size: int


class FileSizes:
    """The samples of the file's size: one for each day, the last of the day."""

    def __init__(self, database: Database, clock: Callable[[], Seconds]) -> None:
        self._database = database
        self._clock = clock

    def step(self) -> Seconds:
        """Store the size, forget old days; return the time until the next sample."""
        today = datetime.fromtimestamp(self._clock(), UTC)
        oldest = today - timedelta(days=KEPT_DAYS)
        size = measure(self._database.path)

        def store(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT INTO file_sizes (day, bytes) VALUES (?, ?)"
                " ON CONFLICT (day) DO UPDATE SET bytes = excluded.bytes",
                (f"{today:%Y-%m-%d}", size),
            )
            connection.execute("DELETE FROM file_sizes WHERE day < ?", (f"{oldest:%Y-%m-%d}",))

        self._database.write(store)
        return SAMPLE_SECONDS


def measure(path: Path) -> int:
    """Return the bytes of the file and of its WAL."""
    wal = beside(path, WAL)
    return path.stat().st_size + (wal.stat().st_size if wal.exists() else 0)


def read_sizes(read: Read, days: int) -> list[FileSize]:
    """Return the latest samples, the oldest first."""
    rows = read("SELECT day, bytes FROM file_sizes ORDER BY day DESC LIMIT ?", (days,))
    return [FileSize(day, size) for day, size in reversed(rows)]
