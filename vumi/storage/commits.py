"""The group commit: the jobs of many threads share one transaction and one wait for the disk.

The first thread leads: it does all waiting jobs and commits them, while the next jobs arrive. Then
it hands the lead to one of their threads. A thread that does not lead sleeps until its job is
committed, so that threads do not compete for the interpreter.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, cast

Result = TypeVar("Result")
Job: TypeAlias = Callable[[sqlite3.Connection], Result]

LOCKED_MILLISECONDS = 100
"""The wait for another program that still locks the file after a full wait."""


class InOneCommit(Protocol):
    """A function that calls another, whose writes share one commit. Raises `StorageError`."""

    def __call__(self, function: Callable[[], Result], /) -> Result: ...


class Ticket(Generic[Result]):
    """A job and, once it is committed or has failed, its outcome."""

    def __init__(self, job: Job[Result]) -> None:
        self._job = job
        self._result: Result
        self._error: BaseException | None = None
        self._asleep = threading.Lock()
        self._asleep.acquire()
        self.done = False

    def run(self, connection: sqlite3.Connection) -> None:
        """Do the job. Raises `_HalfDoneError` if it failed after it had changed the file."""
        before = connection.total_changes
        try:
            self._result, self._error = _without_cursor(self._job(connection)), None
        except sqlite3.Error:
            raise
        except BaseException as error:
            self._error = error
            if connection.total_changes != before or not connection.in_transaction:
                raise _HalfDoneError from error

    def fail(self, error: BaseException) -> None:
        self._error = error

    def result(self) -> Result:
        if self._error is not None:
            raise self._error
        return self._result

    def sleep(self) -> None:
        """Sleep until the ticket is done, or its thread is to lead."""
        self._asleep.acquire()

    def wake(self) -> None:
        self._asleep.release()


def _without_cursor(result: Result) -> Result:
    """Return a result, or None for a cursor, which must stay on the thread that leads.

    If another thread freed it, that would reset its statement while the next job uses it, because
    the connection has one statement for each text.
    """
    return cast("Result", None) if isinstance(result, sqlite3.Cursor) else result


class RolledBackError(sqlite3.OperationalError):
    """SQLite undid the transaction, as it does when the disk is full."""

    sqlite_errorcode = sqlite3.SQLITE_FULL


class _NotBegunError(Exception):
    """No transaction could begin, for any job; the cause says why."""

    def __init__(self, cause: sqlite3.Error) -> None:
        super().__init__(str(cause))
        self.cause = cause


class _HalfDoneError(Exception):
    """A job failed after it had changed the file, so its transaction must be undone."""


class GroupCommit:
    """The one connection that all threads write through, by `run`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        [self._patience] = connection.execute("PRAGMA busy_timeout").fetchone()
        self._locked = False
        self._lock = threading.Lock()
        self._waiting: list[Ticket[Any]] = []
        self._led = False

    def run(self, job: Job[Result]) -> Result:
        """Do a job in a transaction, alone or with others; it is committed on return.

        Raises the error of the job, which then has changed nothing, or `sqlite3.Error`. A job may
        run more than once until it is committed.
        """
        ticket = Ticket(job)
        if not self._leads(ticket):
            ticket.sleep()
        if not ticket.done:
            self._lead()
        return ticket.result()

    def _leads(self, ticket: Ticket[Any]) -> bool:
        with self._lock:
            self._waiting.append(ticket)
            leads, self._led = not self._led, True
        return leads

    def _lead(self) -> None:
        with self._lock:
            tickets, self._waiting = self._waiting, []
        try:
            self._commit_together(tickets)
        finally:
            self._hand_on()
            for ticket in tickets:
                ticket.done = True
                ticket.wake()

    def _hand_on(self) -> None:
        with self._lock:
            self._led = bool(self._waiting)
            if self._led:
                self._waiting[0].wake()

    def _commit_together(self, tickets: Sequence[Ticket[Any]]) -> None:
        """Commit jobs in one transaction; if that fails, each alone, so that only bad jobs fail."""
        try:
            self._commit(tickets)
        except _NotBegunError as error:
            for ticket in tickets:
                ticket.fail(error.cause)
        except (sqlite3.Error, MemoryError, _HalfDoneError):
            for ticket in tickets:
                self._commit_alone(ticket)

    def _commit_alone(self, ticket: Ticket[Any]) -> None:
        try:
            self._commit([ticket])
        except _NotBegunError as error:
            ticket.fail(error.cause)
        except (sqlite3.Error, MemoryError) as error:
            ticket.fail(error)
        except _HalfDoneError:
            pass

    def _commit(self, tickets: Sequence[Ticket[Any]]) -> None:
        self._begin()
        try:
            for ticket in tickets:
                ticket.run(self._connection)
                _check_open(self._connection)
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def _begin(self) -> None:
        """Begin a transaction. Raises `_NotBegunError`.

        If another program has locked the file, only the first thread waits for the whole time, and
        later ones briefly until it is unlocked. Otherwise visitors who wait one after the other
        would wait for minutes.
        """
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            self._be_patient(for_long=error.sqlite_errorcode != sqlite3.SQLITE_BUSY)
            raise _NotBegunError(error) from error
        self._be_patient(for_long=True)

    def _be_patient(self, *, for_long: bool) -> None:
        if self._locked is for_long:
            self._locked = not for_long
            wait = self._patience if for_long else LOCKED_MILLISECONDS
            self._connection.execute(f"PRAGMA busy_timeout = {wait}")


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
