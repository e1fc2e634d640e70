"""The format of the file, its migrations, and read-only access, which changes and creates no file.

The version of a file is the number of its last migration, in `PRAGMA user_version`.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from shutil import copyfile
from urllib.parse import quote

from chalicelib import telemetry
from chalicelib.storage.errors import StorageRefusedError, UnavailableError

TABLES = {"items", "changes", "checkpoints", "messages", "stream"}
"""The tables of a file of every version."""
WAL = "-wal"
SHM = "-shm"
WAIT_SECONDS = 5.0
"""The longest wait for a file that another program has locked."""


@dataclass(frozen=True, slots=True)
class FileFormat:
    """The migrations of a program, in their order: SQL scripts, by the names of their files."""

    migrations: tuple[tuple[str, str], ...]

    @classmethod
    def read(cls, folder: Traversable) -> FileFormat:
        """Read the migrations of a folder, in the order of their names."""
        found = (file for file in folder.iterdir() if file.name.endswith(".sql"))
        return cls(tuple(sorted((file.name, file.read_text()) for file in found)))

    @property
    def version(self) -> int:
        return len(self.migrations)

    def examine(self, connection: sqlite3.Connection, *, migrates: bool = False) -> int:
        """Return the version of a file. Raises `StorageRefusedError` if this program can't use it.

        An older file is refused too, unless the caller migrates it.
        """
        version = version_of(connection)
        if version > self.version:
            raise StorageRefusedError(
                f"the file has format {version}, this program knows {self.version}: run a newer"
                " vu-mi"
            )
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
        if not version or not tables >= TABLES:
            raise StorageRefusedError(
                "it is a SQLite file, but not one of vu-mi: set DATA to another folder"
            )
        if version < self.version and not migrates:
            raise StorageRefusedError(
                f"the file has format {version}, this program knows {self.version}: `vumi serve`"
                " migrates the file of DATA, and `vumi restore` that of a backup"
            )
        return version

    def migrate(self, connection: sqlite3.Connection) -> None:
        """Apply the missing migrations; all of them make a new file.

        Each is one transaction, so a program that is killed leaves the file in one version. Raises
        `sqlite3.Error`, and leaves the file in the version before the migration that fails.
        """
        is_new = not version_of(connection)
        for number, (_, script) in enumerate(self.migrations, 1):
            if _apply(connection, number, script) and not is_new:
                telemetry.event(
                    logging.INFO, "file_migrated", from_format=number - 1, to_format=number
                )


def version_of(connection: sqlite3.Connection) -> int:
    """Return the version of a file; 0 is that of a new file, and of other programs."""
    [version] = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def _apply(connection: sqlite3.Connection, number: int, script: str) -> bool:
    """Apply a migration; return False if it has been applied, by another process too."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        is_missing = version_of(connection) < number
        if is_missing:
            for statement in _split(script):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return is_missing


def _split(script: str) -> Iterator[str]:
    """Yield the statements of a script; each ends at the end of a line."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    yield statement


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


FORMAT = FileFormat.read(resources.files("vumi.storage.migrations"))
"""The format of the files of this program."""
VERSION = FORMAT.version
