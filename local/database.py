"""The SQLite file: one writer shared by all threads, and readers that they take turns with.

A write is on the disk when `write` returns, and survives `kill -9` and a power cut: WAL with
`synchronous = FULL`. What makes that affordable is the group commit (`local.commits`).
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from chalicelib.ports import Refused, Unavailable
from local.commits import GroupCommit, Job, nested

Part = TypeVar("Part")
Result = TypeVar("Result")

VERSION = 3
"""The version of the file's format, kept in `PRAGMA user_version`."""
CHANGES = {
    1: (
        "ALTER TABLE items ADD COLUMN batch TEXT",
        "ALTER TABLE items ADD COLUMN due INTEGER",
        "CREATE INDEX due ON items (batch, due, pk, sk) WHERE batch IS NOT NULL",
    ),
    2: (
        "ALTER TABLE items ADD COLUMN one_partition TEXT",
        "CREATE INDEX one_partition ON items (pk, one_partition) WHERE one_partition IS NOT NULL",
    ),
}
"""What makes a file of each older version one of the next; `schema.sql` is the newest."""
FILE = "vu-mi.sqlite3"
TRANSIENT = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_READONLY,
}
"""Results after which the same statement may work (sqlite.org, "Result and Error Codes")."""
PRIMARY_CODE = 0xFF
"""The bits of an extended result code that name its kind."""
PARTS_AT_ONCE = 100
"""Parts in one commit of `each`: a few milliseconds in which no visitor's view can be taken."""
BUSY_SECONDS = 5.0
"""How long to wait for another program, such as a backup, that holds the file locked."""


class Database:
    """One open file. Its methods raise `Unavailable` or `Refused` for what SQLite raises."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._local = threading.local()
        self._readers: list[sqlite3.Connection] = []
        self._idle: list[sqlite3.Connection] = []
        with _translated():
            self._writer = self._open()
        self._commits = GroupCommit(self._writer)
        try:
            self._set_up()
        except BaseException:
            self.close()
            raise

    def _set_up(self) -> None:
        with _translated():
            self._writer.execute("PRAGMA journal_mode = WAL")
            self._writer.execute("PRAGMA synchronous = FULL")
        self.write(_prepare)
        [self.stream_label] = self.read("SELECT label FROM stream")[0]

    def write(self, job: Job[Result]) -> Result:
        """Do a job in a transaction, alone or together with those of other threads."""
        inside: sqlite3.Connection | None = getattr(self._local, "inside", None)
        with _translated():
            return self._commits.run(job) if inside is None else nested(inside, job)

    def in_one_commit(self, function: Callable[[], Result]) -> Result:
        """Call a function whose writes, and those of other such functions, share one commit.

        It sees what it wrote; it may be called more than once, until its writes are committed.
        """

        def job(connection: sqlite3.Connection) -> Result:
            outer = getattr(self._local, "inside", None)
            self._local.inside = connection
            try:
                return function()
            finally:
                self._local.inside = outer

        return self.write(job)

    def each(self, function: Callable[[Part], Result], parts: Iterable[Part], /) -> list[Result]:
        """Apply a function to every part, and commit what a hundred of them write at once.

        A `concurrency.Each`: on one disk one commit for many badges beats many threads.
        """
        parts = list(parts)
        chunks = (parts[at : at + PARTS_AT_ONCE] for at in range(0, len(parts), PARTS_AT_ONCE))
        return [
            result
            for chunk in chunks
            for result in self.in_one_commit(partial(_apply, function, chunk))
        ]

    def read(self, sql: str, arguments: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """The rows of a query over what is committed, and over its own writes in a commit."""
        inside: sqlite3.Connection | None = getattr(self._local, "inside", None)
        with _translated():
            if inside is not None:
                return inside.execute(sql, arguments).fetchall()
            with self._reader() as reader:
                return reader.execute(sql, arguments).fetchall()

    def close(self) -> None:
        """Close every connection; the last one folds the WAL back into the file."""
        for reader in self._readers:
            reader.close()
        self._writer.close()

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        """A reader that nobody else uses meanwhile: there are as many as ever read at once."""
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
            self._path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )


def _apply(function: Callable[[Part], Result], parts: Iterable[Part]) -> list[Result]:
    return [function(part) for part in parts]


def _prepare(connection: sqlite3.Connection) -> None:
    """Make the tables of a new file, or what an older one lacks.

    Raises `Refused` for a file of a newer version.
    """
    [version] = connection.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise Refused(
            f"the file has format {version}, this program knows {VERSION}: run a newer vu-mi"
        )
    if version == 0:
        _make(connection)
    for older in range(version or VERSION, VERSION):
        for statement in CHANGES[older]:
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {VERSION}")


def _make(connection: sqlite3.Connection) -> None:
    for statement in resources.files("local").joinpath("schema.sql").read_text().split(";\n"):
        connection.execute(statement)
    label = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
    connection.execute("INSERT INTO stream (label) VALUES (?)", (label,))


@contextmanager
def _translated() -> Iterator[None]:
    """A full or locked disk may recover, a broken file or statement will not."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & PRIMARY_CODE
        raise (Unavailable if code in TRANSIENT else Refused)(f"SQLite: {error}") from error
