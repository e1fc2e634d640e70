"""The SQLite file: one writer that commits for many threads at once, a reader for each thread.

A write is on the disk when `write` returns, and survives `kill -9` and a power cut: WAL with
`synchronous = FULL`. What makes that affordable is that threads which write at the same time share
one commit.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

from chalicelib.ports import Refused, Unavailable

Result = TypeVar("Result")
Job: TypeAlias = Callable[[sqlite3.Connection], Result]

VERSION = 1
"""The version of the file's format, kept in `PRAGMA user_version`."""
FILE = "vu-mi.sqlite3"
TRANSIENT = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_READONLY,
}
"""Results after which the same statement may work (sqlite.org, "Result and Error Codes")."""
PRIMARY_CODE = 0xFF
"""The bits of an extended result code that name its kind."""
BUSY_SECONDS = 5.0
"""How long to wait for another program, such as a backup, that holds the file locked."""


class _Ticket(Generic[Result]):
    """A job and, once it is committed, its outcome."""

    def __init__(self, job: Job[Result]) -> None:
        self._job = job
        self._result: Result
        self._error: BaseException | None = None
        self.done = False

    def run(self, connection: sqlite3.Connection) -> None:
        """Do the job in a savepoint of its own, so that its failure undoes nobody else's."""
        self._error = None
        connection.execute("SAVEPOINT job")
        try:
            self._result = self._job(connection)
        except sqlite3.Error:
            raise
        except BaseException as error:  # noqa: BLE001  handed to the thread that asked
            connection.execute("ROLLBACK TO job")
            self._error = error
        connection.execute("RELEASE job")

    def fail(self, error: BaseException) -> None:
        self._error, self.done = error, True

    def result(self) -> Result:
        if self._error is not None:
            raise self._error
        return self._result


class Database:
    """One open file. Its methods raise `Unavailable` or `Refused` for what SQLite raises."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._waiting: list[_Ticket[Any]] = []
        self._waiting_lock = threading.Lock()
        self._commit_lock = threading.Lock()
        self._local = threading.local()
        self._readers: list[sqlite3.Connection] = []
        with _translated():
            self._writer = self._open()
            self._writer.execute("PRAGMA journal_mode = WAL")
            self._writer.execute("PRAGMA synchronous = FULL")
        self.write(_prepare)
        [self.stream_label] = self.read("SELECT label FROM stream")[0]

    def write(self, job: Job[Result]) -> Result:
        """Do a job in a transaction, alone or together with those of other threads.

        The thread that gets the lock commits for all that wait by then.
        """
        ticket = _Ticket(job)
        with self._waiting_lock:
            self._waiting.append(ticket)
        with self._commit_lock:
            if not ticket.done:
                self._commit_waiting()
        return ticket.result()

    def read(self, sql: str, arguments: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """The rows of a query over what is committed."""
        with _translated():
            return self._reader().execute(sql, arguments).fetchall()

    def close(self) -> None:
        """Close every connection; the last one folds the WAL back into the file."""
        for reader in self._readers:
            reader.close()
        self._writer.close()

    def _commit_waiting(self) -> None:
        with self._waiting_lock:
            tickets, self._waiting = self._waiting, []
        try:
            self._commit(tickets)
        except sqlite3.Error:
            for ticket in tickets:
                self._commit_alone(ticket)
        for ticket in tickets:
            ticket.done = True

    def _commit_alone(self, ticket: _Ticket[Any]) -> None:
        """Where a common transaction fails, only those may fail that fail alone too."""
        try:
            with _translated():
                self._commit([ticket])
        except (Unavailable, Refused) as failure:
            ticket.fail(failure)

    def _commit(self, tickets: Sequence[_Ticket[Any]]) -> None:
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            for ticket in tickets:
                ticket.run(self._writer)
            self._writer.execute("COMMIT")
        except sqlite3.Error:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            raise

    def _reader(self) -> sqlite3.Connection:
        reader: sqlite3.Connection | None = getattr(self._local, "reader", None)
        if reader is None:
            reader = self._local.reader = self._open()
            reader.execute("PRAGMA query_only = ON")
            self._readers.append(reader)
        return reader

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(
            self._path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )


def _prepare(connection: sqlite3.Connection) -> None:
    """Make the tables of a new file. Raises `Refused` for a file of a newer version."""
    [version] = connection.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise Refused(
            f"the file has format {version}, this program knows {VERSION}: run a newer vu-mi"
        )
    if version == VERSION:
        return
    for statement in resources.files("local").joinpath("schema.sql").read_text().split(";\n"):
        connection.execute(statement)
    label = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
    connection.execute("INSERT INTO stream (label) VALUES (?)", (label,))
    connection.execute(f"PRAGMA user_version = {VERSION}")


@contextmanager
def _translated() -> Iterator[None]:
    """A full or locked disk may recover, a broken file or statement will not."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & PRIMARY_CODE
        raise (Unavailable if code in TRANSIENT else Refused)(f"SQLite: {error}") from error
