"""A simulation of writers that conflict over one item, on a clock that only the simulation moves.

The real handlers run with their own retries, each run in a process of its own (a greenlet). Only
the table is simulated: how long a request takes, and which requests DynamoDB refuses. A single
write and each half of a transaction reach the table in the middle of a round trip. A transaction
holds its items from its first round trip (prepare) to its second (commit). Any other write of a
held item is refused as a conflict, whereas reads are not (DynamoDB developer guide, "Amazon
DynamoDB Transactions: How it works").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import heappop, heappush, heappushpop
from itertools import count
from random import Random
from typing import Any, TypeVar

from greenlet import getcurrent, greenlet

from chalicelib.aws.dynamodb import RETRY
from chalicelib.storage.errors import Unavailable
from chalicelib.storage.items import Due, Item, Key
from chalicelib.storage.retry import Retry
from chalicelib.storage.writes import ConditionFailed, Write
from chalicelib.units import Seconds
from simulation.memory_table import MemoryTable

Result = TypeVar("Result")

LATENCY_SHAPE = 4
"""The shape of the gamma distribution of latencies; one in a hundred is 2.5 times the average."""


class VirtualTime:
    """The clock of the simulation, and its processes, each of which waits for a time."""

    def __init__(self, start: Seconds = 0.0) -> None:
        self.now = start
        self._waiting: list[tuple[Seconds, int, greenlet]] = []
        self._order = count()
        self._main = getcurrent()

    def __call__(self) -> Seconds:
        return self.now

    def start(self, at: Seconds, process: Callable[[], None]) -> None:
        """Run a function as a process from a time on."""
        heappush(self._waiting, (at, next(self._order), greenlet(process, self._main)))

    def sleep(self, seconds: Seconds) -> None:
        """Let other processes run; a process calls this, which switches to the next one."""
        own = getcurrent()
        waking = self.now + seconds, next(self._order), own
        self.now, _, process = heappushpop(self._waiting, waking)
        if process is not own:
            process.switch()

    def run(self) -> None:
        """Run all processes to their end."""
        while self._waiting:
            self.now, _, process = heappop(self._waiting)
            process.switch()


@dataclass(frozen=True, slots=True)
class Latency:
    """The average time of a round trip to the table, and the CPU time of a run.

    A run takes `each` for each of its writes, and `fixed`. All of it is taken to be between the
    read of an item and its write, in every attempt.
    """

    round_trip: Seconds
    fixed: Seconds
    each: Seconds

    def with_more(self, writes: int) -> Latency:
        """Return the latency of runs with this many more writes, which are not simulated."""
        return replace(self, fixed=self.fixed + self.each * writes)


@dataclass
class ContendedTable:
    """A `ports.Table` that processes use concurrently.

    `attempts` counts the writes that were sent, `conflicts` those that found an item held, and
    `stale` those whose condition failed.
    """

    time: VirtualTime
    random: Random
    latency: Latency
    stored: MemoryTable = field(default_factory=MemoryTable)
    attempts: int = 0
    conflicts: int = 0
    stale: int = 0
    held: set[Key] = field(default_factory=set)

    def get(self, key: Key) -> Item | None:
        return self._read(lambda: self.stored.get(key))

    def get_all(self, keys: Sequence[Key]) -> list[Item]:
        return self._read(lambda: self.stored.get_all(keys)) if keys else []

    def query(self, partition: str, **how: Any) -> list[Item]:
        return self._read(lambda: self.stored.query(partition, **how))

    def count(self, partition: str, **how: Any) -> int:
        return self._read(lambda: self.stored.count(partition, **how))

    def query_due(self, batch: str, **how: Any) -> list[Due]:
        return self._read(lambda: self.stored.query_due(batch, **how))

    def put_all(self, items: Sequence[Item]) -> None:
        self._read(lambda: self.stored.put_all(items))

    def write(self, *writes: Write) -> None:
        """Write as `DynamoTable` does, which tries again after a conflict."""
        self._retry.call(lambda: self._write_once(writes))

    @cached_property
    def _retry(self) -> Retry:
        return replace(RETRY, sleep=self.time.sleep, jitter=self.random.random, monotonic=self.time)

    def _read(self, read: Callable[[], Result]) -> Result:
        self._travel()
        result = read()
        self._travel()
        return result

    def _write_once(self, writes: Sequence[Write]) -> None:
        self.attempts += 1
        self.time.sleep(self.latency.fixed + self.latency.each * len(writes))
        self._travel()
        try:
            keys = {write.key for write in writes}
            self._prepare(writes, keys)
            if len(writes) > 1:
                self._hold(keys)
            self.stored.write(*writes)
        finally:
            self._travel()

    def _prepare(self, writes: Sequence[Write], keys: set[Key]) -> None:
        """Refuse writes of held items, and writes whose conditions do not hold."""
        if keys & self.held:
            self.conflicts += 1
            raise Unavailable("TransactionConflict")
        try:
            self.stored.check(writes)
        except ConditionFailed:
            self.stale += 1
            raise

    def _hold(self, keys: set[Key]) -> None:
        """Hold items until the second round trip of a transaction reaches the table."""
        self.held |= keys
        self._travel()
        self._travel()
        self.held -= keys

    def _travel(self) -> None:
        """Wait for one way between the function and the table."""
        mean = self.latency.round_trip / 2
        self.time.sleep(self.random.gammavariate(LATENCY_SHAPE, mean / LATENCY_SHAPE))
