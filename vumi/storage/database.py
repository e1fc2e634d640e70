"""The SQLite file: one writer that all threads share, and a pool of readers.

A write is on the disk when `write` returns, and survives `kill -9` and a power cut, because the
file uses a WAL with `synchronous = FULL`.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from chalicelib import telemetry
from chalicelib.storage.errors import StorageRefusedError, UnavailableError
from vumi.storage.archive import sync_folder
from vumi.storage.commits import Job, Writer, nested
from vumi.storage.file_format import (
    FORMAT,
    SHM,
    WAIT_SECONDS,
    WAL,
    FileFormat,
    beside,
    has_wal,
    open_read_only,
    version_of,
)

Part = TypeVar("Part")
Result = TypeVar("Result")

FILE = "vu-mi.sqlite3"
WAY_BACK = 'docs/backups.md, "The way back", says how to go on'
WAL_PAGES = 250
"""Pages of the write-ahead log after which a commit copies them to the file.

The commit and all visitors wait for that: for 7 ms after SQLite's own 1,000 pages.
"""
PARTS_AT_ONCE = 100
"""Parts in one commit of `map_in_commits`: a few milliseconds, because visitors wait for it."""


class CorruptFileError(StorageRefusedError):
    """The file is corrupt. The message names the document that says how to restore it."""


ERRORS: Mapping[int, tuple[type[UnavailableError | StorageRefusedError], str]] = {
    sqlite3.SQLITE_BUSY: (UnavailableError, "another program holds it locked; let that end"),
    sqlite3.SQLITE_CANTOPEN: (
        UnavailableError,
        "it must be a file, in a folder, that this user can write",
    ),
    sqlite3.SQLITE_CORRUPT: (CorruptFileError, WAY_BACK),
    sqlite3.SQLITE_FULL: (UnavailableError, "make room on the disk"),
    sqlite3.SQLITE_IOERR: (
        UnavailableError,
        "the disk is full or fails; make room on it, or look at its log",
    ),
    sqlite3.SQLITE_LOCKED: (UnavailableError, ""),
    sqlite3.SQLITE_NOTADB: (CorruptFileError, WAY_BACK),
    sqlite3.SQLITE_PROTOCOL: (UnavailableError, ""),
    sqlite3.SQLITE_READONLY: (UnavailableError, "let this user write the file and its folder"),
}
"""The error for a result, and the advice that it has after SQLite's own message.

The same statement may work after those that are unavailable (sqlite.org, "Result and Error Codes").
"""
PRIMARY_CODE = 0xFF
"""The bits of an extended result code that name its kind."""


class Database:
    """One open file. Its methods raise errors of storage in place of SQLite's.

    After a read or a write has found the file corrupt, nothing is written, because that could
    spread the damage. Reads continue.
    """

    def __init__(
        self, path: Path, *, migrates: bool = False, file_format: FileFormat = FORMAT
    ) -> None:
        """Open the file, or make it. Only the holder of the folder's lock `migrates` an older one.

        A program that runs on the file meanwhile would write it in the older format.
        """
        self.path, self._format = path, file_format
        self._local = threading.local()
        self._readers: list[sqlite3.Connection] = []
        self._idle: list[sqlite3.Connection] = []
        self.corrupt = ""
        """The error of the read or the write that found the file corrupt."""
        with _translate_errors():
            _make_or_examine(path, file_format, migrates=migrates)
            self._connection = self._open()
        self._cursor = self._connection.cursor()  # of the reads in a commit, which end one by one
        self._writer = Writer(self._connection)
        try:
            self._set_up(migrates=migrates)
        except BaseException:
            self.close()
            raise

    def _set_up(self, *, migrates: bool) -> None:
        with _translate_errors():
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
            if migrates:
                self._migrate()
        self.write(self._format.examine)
        [self.stream_label] = self.read("SELECT label FROM stream")[0]

    def _migrate(self) -> None:
        """Migrate an older file, after a copy of it for those who want to go back."""
        version = self._format.examine(self._connection, migrates=True)
        if version == self._format.version:
            return
        copy = beside(self.path, f".format-{version}")
        try:
            with _replacing(copy) as kept_file:
                self._connection.backup(kept_file)
                kept_file.execute("PRAGMA journal_mode = DELETE")
            self._format.migrate(self._connection)
        except sqlite3.Error as error:
            stored, now = to_storage_error(error), version_of(self._connection)
            kept = f"; {copy.name} is its copy of before" if copy.exists() else ""
            raise type(stored)(
                f"it has format {now}, and can't be migrated to {now + 1}: {stored}{kept}"
            ) from error

    def write(self, job: Job[Result], *, savepoint: bool = True) -> Result:
        """Do a job in a transaction of its own, or in the one of the commit around it.

        Without a savepoint, a job that fails within a commit must undo itself, as one statement
        does, or may stay half-done.
        """
        inside: sqlite3.Connection | None = getattr(self._local, "inside", None)
        sound = partial(self._while_sound, job)
        try:
            if inside is None:
                return self._writer.run(sound)
            return nested(inside, sound, savepoint=savepoint)
        except sqlite3.Error as error:
            raise self._noted(error) from error

    def in_one_commit(self, function: Callable[[], Result]) -> Result:
        """Call a function whose writes share one commit. It sees its own writes.

        Its metrics and changes are written after the commit.
        """

        def job(connection: sqlite3.Connection) -> Result:
            outer = getattr(self._local, "inside", None)
            self._local.inside = connection
            try:
                return function()
            finally:
                self._local.inside = outer

        with telemetry.writing_on_success():
            return self.write(job)

    def map_in_commits(
        self, function: Callable[[Part], Result], parts: Iterable[Part], /
    ) -> list[Result]:
        """Apply a function to every part, with 100 parts in one commit.

        It is a `concurrency.MapParallel`: on one disk, one commit for many badges is faster than
        many threads.
        """

        def apply(chunk: Sequence[Part]) -> list[Result]:
            return [function(part) for part in chunk]

        parts = list(parts)
        chunks = (parts[at : at + PARTS_AT_ONCE] for at in range(0, len(parts), PARTS_AT_ONCE))
        return [result for chunk in chunks for result in self.in_one_commit(partial(apply, chunk))]

    def read(self, sql: str, arguments: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query, which sees committed writes, and in a commit its own."""
        inside: sqlite3.Connection | None = getattr(self._local, "inside", None)
        try:
            if inside is not None:
                return self._cursor.execute(sql, arguments).fetchall()
            with self._reader() as reader:
                return reader.execute(sql, arguments).fetchall()
        except sqlite3.Error as error:
            raise self._noted(error) from error

    def stream(self, sql: str, arguments: Sequence[object] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query, all of one moment, while others write.

        Until it ends, the WAL keeps every commit from then on.
        """
        with self.snapshot() as reader, closing(reader.execute(sql, arguments)) as rows:
            yield from rows

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """Lend a reader whose queries all see the moment of the first one, while others write.

        Until it ends, the WAL keeps every commit from then on.
        """
        try:
            with self._reader() as reader:
                reader.execute("BEGIN")
                try:
                    yield reader
                finally:
                    reader.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise self._noted(error) from error

    def close(self) -> None:
        """Close every connection; the last one writes the WAL to the file."""
        for reader in self._readers:
            reader.close()
        self._connection.close()

    def _while_sound(self, job: Job[Result], connection: sqlite3.Connection) -> Result:
        """Do a job; fail if the file is corrupt before or after it."""
        self._check_sound()
        try:
            result = job(connection)
        except sqlite3.Error as error:
            raise self._noted(error) from error
        self._check_sound()
        return result

    def _check_sound(self) -> None:
        if self.corrupt:
            raise CorruptFileError(self.corrupt)

    def _noted(self, error: sqlite3.Error) -> UnavailableError | StorageRefusedError:
        """Return the error of storage; no write begins or is committed after a corrupt file."""
        stored = to_storage_error(error)
        if isinstance(stored, CorruptFileError) and not self.corrupt:
            self.corrupt = str(stored)
            telemetry.event(logging.CRITICAL, "file_corrupt", file=str(self.path), fix=WAY_BACK)
        return stored

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        """Lend a reader to one thread; there are as many as threads that ever read concurrently."""
        try:
            reader = self._idle.pop()
        except IndexError:
            reader = self._open()
            reader.execute("PRAGMA query_only = ON")
            self._readers.append(reader)
        try:
            yield reader
        finally:
            self._idle.append(reader)

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(
            self.path, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False
        )


def _make_or_examine(path: Path, file_format: FileFormat, *, migrates: bool) -> None:
    """Make a new file, or examine the existing one, which does not change it.

    Raises `StorageRefusedError`, `UnavailableError` and `sqlite3.Error`.
    """
    if not path.exists():
        _make_file(path, file_format)
        return
    if path.is_file() and path.stat().st_size == 0:
        raise StorageRefusedError(
            "it is empty, and vu-mi never leaves it so: restore a backup, or remove it to"
            " begin at 0"
        )
    if not os.access(path, os.W_OK):
        raise UnavailableError("it can't be written; let this user write the file and its folder")
    if not has_wal(path) or beside(path, SHM).exists():
        with open_read_only(path) as connection:
            file_format.examine(connection, migrates=migrates)


def _make_file(path: Path, file_format: FileFormat) -> None:
    """Make a file that is complete or absent, even if the process is killed."""
    if has_wal(path):
        raise StorageRefusedError(
            f"{path.name}{WAL} is there without {path.name}: put that back beside it, or restore a"
            " backup"
        )
    with _replacing(path) as connection:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # before the first page
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        file_format.migrate(connection)


@contextmanager
def _replacing(path: Path) -> Iterator[sqlite3.Connection]:
    """Lend a connection to a new file, which gets the name `path` when the block ends."""
    begun = beside(path, ".new")
    try:
        for leftover in (begun, beside(begun, WAL), beside(begun, SHM)):
            leftover.unlink(missing_ok=True)
        with closing(sqlite3.connect(begun, isolation_level=None)) as connection:
            yield connection
        begun.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise UnavailableError(f"{path.name} can't be made: {error}") from error
    finally:
        begun.unlink(missing_ok=True)


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise to_storage_error(error) from error


def to_storage_error(error: sqlite3.Error) -> UnavailableError | StorageRefusedError:
    """Return the error for an error of SQLite, with the advice about it.

    A full disk or a locked file may recover; a corrupt file or a wrong statement will not.
    """
    code = getattr(error, "sqlite_errorcode", 0) & PRIMARY_CODE
    kind, advice = ERRORS.get(code, (StorageRefusedError, ""))
    return kind(f"SQLite: {error}; {advice}" if advice else f"SQLite: {error}")
