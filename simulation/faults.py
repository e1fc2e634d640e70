"""Faults of storage calls: throttled, answer lost, process ended, another process in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Any, TypeVar

from chalicelib.storage.errors import StorageError, Unavailable
from chalicelib.storage.items import Due, Item, Key
from chalicelib.storage.ports import Message, NotSent, NotStored, Queue, Table
from chalicelib.storage.writes import Put, Write
from chalicelib.units import Seconds

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

    def plan(self, faults: Sequence[Fault]) -> None:
        self._plan = list(faults)

    def put_aside(self) -> list[Fault]:
        """Return the rest of the plan and clear it, so that another process can run first."""
        rest, self._plan = self._plan, []
        return rest

    def take(self, fault: Fault) -> bool:
        """Return whether this fault is the next one, and remove it from the plan if it is."""
        return bool(self._plan[:1] == [fault] and self._plan.pop(0))

    def call(self, operation: Callable[[], Result]) -> Result:
        fault = self._plan.pop(0) if self._plan else Fault.NONE
        if fault is Fault.MEANWHILE:
            rest, self._plan = self._plan, []
            self.meanwhile()
            self._plan = rest
        if fault is Fault.THROTTLED:
            raise Unavailable("throttled")
        if fault is Fault.CRASH_BEFORE:
            raise Crash
        result = operation()
        if fault is Fault.ANSWER_LOST:
            raise Unavailable("the answer was lost")
        if fault is Fault.CRASH_AFTER:
            raise Crash
        return result


class FaultyTable:
    """A `Table` of which every call may fail; it reports writes to `on_written`."""

    def __init__(
        self, table: Table, faults: Faults, on_written: Callable[[Sequence[Write]], None]
    ) -> None:
        self._table = table
        self._faults = faults
        self._on_written = on_written

    def get(self, key: Key) -> Item | None:
        return self._faults.call(lambda: self._table.get(key))

    def get_all(self, keys: Sequence[Key]) -> list[Item]:
        return self._faults.call(lambda: self._table.get_all(keys))

    def query(self, partition: str, **how: Any) -> list[Item]:
        return self._faults.call(lambda: self._table.query(partition, **how))

    def query_due(self, batch: str, **how: Any) -> list[Due]:
        return self._faults.call(lambda: self._table.query_due(batch, **how))

    def count(self, partition: str, **how: Any) -> int:
        return self._faults.call(lambda: self._table.count(partition, **how))

    def write(self, *writes: Write) -> None:
        self._faults.call(lambda: self._write(writes))

    def put_all(self, items: Sequence[Item]) -> None:
        left = len(items) // 2 + 1 if self._faults.take(Fault.PARTLY) else 0
        self._faults.call(lambda: self._put(items[left:]))
        if items[:left]:
            raise NotStored(items[:left], "unprocessed")

    def _write(self, writes: Sequence[Write]) -> None:
        self._table.write(*writes)
        self._on_written(writes)

    def _put(self, items: Sequence[Item]) -> None:
        self._table.put_all(items)
        self._on_written([Put(item) for item in items])


class FaultyQueue:
    """A `Queue` of which every call may fail."""

    def __init__(self, queue: Queue, faults: Faults) -> None:
        self._queue = queue
        self._faults = faults

    def send(self, body: str, *, delay: Seconds = 0.0) -> None:
        self._faults.call(lambda: self._queue.send(body, delay=delay))

    def send_all(self, messages: Sequence[Message]) -> None:
        left = len(messages) // 2 + 1 if self._faults.take(Fault.PARTLY) else 0
        self._faults.call(lambda: self._queue.send_all(messages[left:]))
        if messages[:left]:
            raise NotSent(messages[:left], "unprocessed")


class Faulty:
    """A context in which a process may end or fail, if faults are planned."""

    def __init__(self, faults: Faults, plan: Sequence[Fault]) -> None:
        self._faults = faults
        self._plan = plan

    def __enter__(self) -> None:
        self._before = self._faults.put_aside()
        self._faults.plan(self._plan)

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> bool:
        self._faults.plan(self._before)
        if kind is not None and issubclass(kind, Crash | StorageError):
            assert self._plan, "nothing may fail without a fault"
            return True
        return False
