"""Read-only access to the file, which changes and creates no file."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from shutil import copyfile
from urllib.parse import quote

WAL = "-wal"
SHM = "-shm"
WAIT_SECONDS = 5.0
"""The longest wait for a file that another program has locked."""


def beside(path: Path, suffix: str) -> Path:
    """Return the path of a file that SQLite keeps next to its database."""
    return path.with_name(path.name + suffix)


def has_wal(path: Path) -> bool:
    """Return whether commits may be only in the WAL: a server runs, or it was killed."""
    wal = beside(path, WAL)
    return wal.exists() and wal.stat().st_size > 0


@contextmanager
def open_read_only(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the file in one transaction that reads what is committed. Raises `sqlite3.Error`.

    Without a WAL, all commits are in the file, and SQLite reads it as immutable. A long reader must
    check afterwards that it did not change. With a WAL, SQLite reads both through the WAL's index
    (`-shm`). If the index is missing, SQLite would create it, so copies are read instead.
    Source: sqlite.org, "Write-Ahead Logging", "Read-Only Databases".
    """
    if not has_wal(path):
        with _open(path, "immutable=1") as connection:
            yield connection
    elif beside(path, SHM).exists():
        with _open(path, "mode=ro&readonly_shm=1") as connection:
            yield connection
    else:
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / path.name
            copyfile(path, copy)
            copyfile(beside(path, WAL), beside(copy, WAL))
            with _open(copy, "mode=ro") as connection:
                yield connection


@contextmanager
def _open(path: Path, parameters: str) -> Iterator[sqlite3.Connection]:
    """Open the file with URI parameters; text that is not UTF-8 is read too, to be reported."""
    name = f"file:{quote(str(path.absolute()))}?{parameters}"
    connection = sqlite3.connect(name, uri=True, timeout=WAIT_SECONDS, isolation_level=None)
    with closing(connection):
        connection.text_factory = lambda text: str(text, "utf-8", "surrogateescape")
        connection.execute("PRAGMA query_only = ON")
        connection.execute("BEGIN")
        yield connection
