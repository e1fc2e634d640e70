"""Writers of one item: their arrivals, the runs of a function that serve them, and the outcome."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from random import Random

from bench.scale.contention import ContendedTable, VirtualTime
from chalicelib.units import Seconds

IN_TIME: Seconds = 1.0
CARRIED = 0.99
"""A rate is carried if this share of the writers is done within `IN_TIME`."""


@dataclass(frozen=True, slots=True)
class Repetition:
    """The repetition of a failed run: how often, and after which time."""

    times: int
    after: Seconds


NO_REPETITION = Repetition(0, 0.0)


@dataclass
class Writer:
    """A batch of views or a posting: when it came, and when it was done."""

    work: Callable[[], bool]
    arrived: Seconds
    runs: int = 0
    done: Seconds = math.inf

    @property
    def took(self) -> Seconds:
        return self.done - self.arrived


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of all writers of a simulation; `table` has the number of its writes."""

    rate: float
    writers: Sequence[Writer]
    table: ContendedTable

    @property
    def is_carried(self) -> bool:
        return self.in_time >= CARRIED

    @property
    def in_time(self) -> float:
        """The share of the writers that were done within a second."""
        return self._share(lambda writer: writer.took <= IN_TIME)

    @property
    def at_first(self) -> float:
        """The share of the writers that were done by their first run."""
        return self._share(lambda writer: writer.runs == 1 and writer.done < math.inf)

    @property
    def done(self) -> float:
        """The share of the writers that were done at last."""
        return self._share(lambda writer: writer.done < math.inf)

    @property
    def attempts(self) -> float:
        """The writes that a writer sent, on average."""
        return self.table.attempts / len(self.writers)

    def slowest(self, share: float) -> Seconds:
        """Return the time in which this share of the writers were done."""
        took = sorted(writer.took for writer in self.writers)
        return took[min(len(took) - 1, math.ceil(share * len(took)) - 1)]

    def _share(self, has: Callable[[Writer], bool]) -> float:
        return sum(map(has, self.writers)) / len(self.writers)


@dataclass
class Runs:
    """The runs of a function, of which `at_once` are concurrent; other writers wait."""

    time: VirtualTime
    at_once: int
    repetition: Repetition
    running: int = 0
    waiting: deque[Writer] = field(default_factory=deque)

    def take(self, writer: Writer) -> None:
        """Run a writer, and afterwards those that waited for it."""
        self.waiting.append(writer)
        if self.running == self.at_once:
            return
        self.running += 1
        while self.waiting:
            self._run(self.waiting.popleft())
        self.running -= 1

    def _run(self, writer: Writer) -> None:
        writer.runs += 1
        if writer.work():
            writer.done = self.time.now
        elif writer.runs <= self.repetition.times:
            self.time.start(self.time.now + self.repetition.after, partial(self.take, writer))


def arrivals(random: Random, rate: float, writers: int, start: Seconds) -> list[Seconds]:
    """Return the random times of writers, with this many a second on average."""
    waits = (random.expovariate(rate) for _ in range(writers))
    return list(accumulate(waits, initial=start))[1:]
