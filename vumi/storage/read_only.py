"""Read-only access to the file, which changes and creates no file."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from shutil import copyfile
from urllib.parse import quote

from chalicelib.storage.errors import UnavailableError

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


def open_read_only(path: Path) -> AbstractContextManager[sqlite3.Connection]:
    """Open the file in one transaction that reads what is committed, while others write.

    SQLite's locks keep the moment of the first query. With a WAL, SQLite reads it through its index
    (`-shm`). Without one, SQLite makes both files and removes them again, so both the file and its
    folder must be writable. Otherwise nothing is locked.
    Raises `sqlite3.Error` and `UnavailableError`.
    Source: sqlite.org, "Write-Ahead Logging", "Read-Only Databases".
    """
    if beside(path, WAL).exists() and beside(path, SHM).exists():
        return _open(path, "mode=ro&readonly_shm=1")
    if not has_wal(path) and os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
        return _open(path, "mode=rw")
    return open_without_locks(path)


@contextmanager
def open_without_locks(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the file, or a copy. Raises `sqlite3.Error`; `UnavailableError` if the file changes."""
    before = _read_stamps(path)
    try:
        with _open_copy(path) if has_wal(path) else _open(path, "immutable=1") as connection:
            yield connection
    finally:
        if _read_stamps(path) != before:
            raise UnavailableError(f"{path} changed while it was read; try again")


@contextmanager
def _open_copy(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a copy of the file and its WAL, because SQLite would make an index beside them."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        copyfile(path, copy)
        copyfile(beside(path, WAL), beside(copy, WAL))
        with _open(copy, "mode=ro") as connection:
            yield connection


def _read_stamps(path: Path) -> list[tuple[int, int, int]]:
    """Return a value that differs after every change of the file and its WAL."""
    found = [one.stat() for one in (path, beside(path, WAL)) if one.exists()]
    return [(one.st_ino, one.st_size, one.st_mtime_ns) for one in found]


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
