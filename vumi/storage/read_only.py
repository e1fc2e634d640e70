"""The file opened to be read, so that nothing is changed or made: neither it, nor beside it."""

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
"""How long to wait for another program that holds the file locked."""


def beside(path: Path, suffix: str) -> Path:
    """A file that SQLite keeps beside its file."""
    return path.with_name(path.name + suffix)


def has_wal(path: Path) -> bool:
    """Whether some of what was committed may be in the WAL alone: it runs, or it was killed."""
    wal = beside(path, WAL)
    return wal.exists() and wal.stat().st_size > 0


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """The file in one transaction that reads what is committed. Raises `sqlite3.Error`.

    Without a WAL all is in the file, and it is read as one that nobody changes; who reads for long
    looks whether it stayed so. With one SQLite reads both, by the index that the server shares or
    a killed one has left. Where there is none SQLite would make it, so then copies are read.
    Source: sqlite.org, "Write-Ahead Logging", "Read-Only Databases".
    """
    if not has_wal(path):
        with _opened(path, "immutable=1") as connection:
            yield connection
    elif beside(path, SHM).exists():
        with _opened(path, "mode=ro&readonly_shm=1") as connection:
            yield connection
    else:
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / path.name
            copyfile(path, copy)
            copyfile(beside(path, WAL), beside(copy, WAL))
            with _opened(copy, "mode=ro") as connection:
                yield connection


@contextmanager
def _opened(path: Path, how: str) -> Iterator[sqlite3.Connection]:
    """What is no UTF-8 is read too: it is for the reader to say so."""
    name = f"file:{quote(str(path.absolute()))}?{how}"
    connection = sqlite3.connect(name, uri=True, timeout=WAIT_SECONDS, isolation_level=None)
    with closing(connection):
        connection.text_factory = lambda text: str(text, "utf-8", "surrogateescape")
        connection.execute("PRAGMA query_only = ON")
        connection.execute("BEGIN")
        yield connection
