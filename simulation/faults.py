"""Faults of storage calls: throttled, answer lost, process ended, another process in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum, auto
from typing import TypeVar

from chalicelib.storage.errors import StorageError, UnavailableError
from chalicelib.storage.items import Item
from chalicelib.storage.ports import Message, NotSentError, NotStoredError, Queue, Table
from chalicelib.storage.writes import Write
from chalicelib.units import Seconds
from simulation.storage import InterceptedTable

Result = TypeVar("Result")


class Crash(BaseException):
    """The end of the process: none of its code runs after this."""


class Fault(Enum):
    """A fault of one storage call."""

    NONE = auto()
    THROTTLED = auto()
    ANSWER_LOST = auto()
    CRASH_BEFORE = auto()
    CRASH_AFTER = auto()
    MEANWHILE = auto()
    PARTLY = auto()


class Faults:
    """A plan with one fault for each of the next storage calls; later calls have none."""

    def __init__(self) -> None:
        self._plan: list[Fault] = []
        self.meanwhile: Callable[[], None] = lambda: None

    def plan(self, faults: Sequence[Fault]) -> list[Fault]:
        """Replace the plan; return the rest of it, which another process may go on with."""
        rest, self._plan = self._plan, list(faults)
        return rest

    def leave(self, number: int) -> int:
        """Return how many of the parts of a call are left undone, and remove that fault."""
        is_partly = self._plan[:1] == [Fault.PARTLY] and self._plan.pop(0)
        return number // 2 + 1 if is_partly else 0

    def call(self, operation: Callable[[], Result]) -> Result:
        fault = self._plan.pop(0) if self._plan else Fault.NONE
        if fault is Fault.MEANWHILE:
            rest = self.plan([])
            self.meanwhile()
            self.plan(rest)
        if fault is Fault.THROTTLED:
            raise UnavailableError("throttled")
        if fault is Fault.CRASH_BEFORE:
            raise Crash
        result = operation()
        if fault is Fault.ANSWER_LOST:
            raise UnavailableError("the answer was lost")
        if fault is Fault.CRASH_AFTER:
            raise Crash
        return result


class FaultyTable(InterceptedTable):
    """A `Table` of which every call may fail."""

    def __init__(self, table: Table, faults: Faults) -> None:
        self._table, self._faults = table, faults

    @property
    def engine(self) -> Table:
        return self._table

    def read(self, _: str, operation: Callable[[], Result]) -> Result:
        return self._faults.call(operation)

    def write(self, *writes: Write) -> None:
        self._faults.call(lambda: self._table.write(*writes))

    def put_all(self, items: Sequence[Item]) -> None:
        left = self._faults.leave(len(items))
        self._faults.call(lambda: self._table.put_all(items[left:]))
        if items[:left]:
            raise NotStoredError(items[:left], "unprocessed")


class FaultyQueue:
    """A `Queue` of which every call may fail."""

    def __init__(self, queue: Queue, faults: Faults) -> None:
        self._queue, self._faults = queue, faults

    def send(self, body: str, *, delay: Seconds = 0.0) -> None:
        self._faults.call(lambda: self._queue.send(body, delay=delay))

    def send_all(self, messages: Sequence[Message]) -> None:
        left = self._faults.leave(len(messages))
        self._faults.call(lambda: self._queue.send_all(messages[left:]))
        if messages[:left]:
            raise NotSentError(messages[:left], "unprocessed")


@contextmanager
def under(faults: Faults, plan: Sequence[Fault]) -> Iterator[None]:
    """Run a process that may end or fail, if faults are planned."""
    before = faults.plan(plan)
    try:
        yield
    except (Crash, StorageError):
        assert plan, "nothing may fail without a fault"
    finally:
        faults.plan(before)
