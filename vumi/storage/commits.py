"""The writer of the file: all threads write through one connection, one transaction at a time.

A transaction waits for the disk. Visitors share that wait, because the server answers many requests
in one transaction (`vumi.server.common_commits`).
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Protocol, TypeAlias, TypeVar, cast

Result = TypeVar("Result")
Job: TypeAlias = Callable[[sqlite3.Connection], Result]

LOCKED_MILLISECONDS = 50
"""The wait for another program that still locks the file after a full wait."""


class InOneCommit(Protocol):
    """A function that calls another, whose writes share one commit. Raises `StorageError`."""

    def __call__(self, function: Callable[[], Result], /) -> Result: ...


class RolledBackError(sqlite3.OperationalError):
    """SQLite undid the transaction, as it does when the disk is full."""

    sqlite_errorcode = sqlite3.SQLITE_FULL


class FairLock:
    """A lock that its waiters get in the order in which they came.

    A thread that commits in a loop would get a `threading.Lock` again before any waiter wakes up.
    """

    def __init__(self) -> None:
        self._mutex = Lock()
        self._held = False
        self._turns: deque[Lock] = deque()

    def __enter__(self) -> None:
        with self._mutex:
            if not self._held:
                self._held = True
                return
            turn = Lock()
            turn.acquire()
            self._turns.append(turn)
        turn.acquire()

    def __exit__(self, *_: object) -> None:
        with self._mutex:
            if self._turns:
                self._turns.popleft().release()
            else:
                self._held = False


class Writer:
    """The one connection that all threads write through, by `run`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        [self._patience] = connection.execute("PRAGMA busy_timeout").fetchone()
        self._is_patient = True
        self._lock = FairLock()

    def run(self, job: Job[Result]) -> Result:
        """Do a job in a transaction of its own, which is committed on return.

        A cursor is not returned. Raises the error of the job, which then has changed nothing, or
        `sqlite3.Error`.
        """
        with self._lock:
            self._begin()
            try:
                result = job(self._connection)
                _check_open(self._connection)
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            # The connection has one statement for each text. A cursor that is freed later would
            # reset its statement while another thread uses it.
            return cast("Result", None) if isinstance(result, sqlite3.Cursor) else result

    def _begin(self) -> None:
        """Begin a transaction.

        If another program has locked the file, only the first thread waits for the whole time, and
        later ones briefly until it is unlocked. Otherwise visitors who wait one after the other
        would wait for minutes.
        """
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            self._set_busy_timeout(patient=error.sqlite_errorcode != sqlite3.SQLITE_BUSY)
            raise
        self._set_busy_timeout(patient=True)

    def _set_busy_timeout(self, *, patient: bool) -> None:
        if self._is_patient is not patient:
            self._is_patient = patient
            milliseconds = self._patience if patient else LOCKED_MILLISECONDS
            self._connection.execute(f"PRAGMA busy_timeout = {milliseconds}")


def nested(connection: sqlite3.Connection, job: Job[Result], *, savepoint: bool = True) -> Result:
    """Do a job within a transaction that has begun; if the job fails, only the job is undone.

    Without a savepoint, the job must undo itself.
    """
    _check_open(connection)
    if not savepoint:
        return job(connection)
    connection.execute("SAVEPOINT nested")
    try:
        return job(connection)
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK TO nested")
        raise
    finally:
        if connection.in_transaction:
            connection.execute("RELEASE nested")


def _check_open(connection: sqlite3.Connection) -> None:
    """Raise an error after a rollback: without a transaction, writes would commit immediately."""
    if not connection.in_transaction:
        raise RolledBackError("the transaction was rolled back under way")
