"""The faults of one machine and their times, all from the seed.

The clock may be set forward permanently, also to just before a midnight, over which the server
stands still, so that it stores after midnight what it took before. After a clock that was ahead is
set right, folds wait until it reaches the same time again. So it is ahead by less than the usual
length of a run, or by less than the next permanent change.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from chaos.driver.server import MAX_TRANSACTIONS, THREADS, Server
from chaos.faults import Disk, OffsetClock, limit, unlimit

SPARE_BYTES = 400_000
"""The most bytes that a full disk has left, so that different writes fail."""
TIMES = 12
"""The number of times that writes begin to fail; each time another write is the first."""
LOG_BYTES = 4_200_000
"""SQLite starts the write-ahead log again after a thousand pages, and keeps the space of its file
when the disk gets full. So more writes fail with a limit within that space."""


class Fault(StrEnum):
    """A fault of a machine."""

    KILLED = "killed with SIGKILL and started again"
    KILLED_BETWEEN = "killed between two commits of one step"
    KILLED_FULL = "killed while the disk was full"
    KILLED_TWICE = "killed again while it started"
    DISK_FULL = "disk full"
    WRITES_FAIL = "writes failed now and again"
    FORWARD = "clock set forward"
    AHEAD = "clock ahead, then set right"
    BACK = "clock set back, then set right"
    PAUSED = "stood still over a midnight"


WEIGHTS = {
    Fault.KILLED: 5,
    Fault.KILLED_BETWEEN: 9,
    Fault.KILLED_FULL: 2,
    Fault.KILLED_TWICE: 2,
    Fault.DISK_FULL: 2,
    Fault.WRITES_FAIL: 4,
    Fault.FORWARD: 4,
    Fault.AHEAD: 3,
    Fault.BACK: 3,
    Fault.PAUSED: 4,
}
SIZES: Mapping[Fault, Sequence[float]] = {
    Fault.KILLED_BETWEEN: range(len(THREADS) * MAX_TRANSACTIONS),
    Fault.KILLED_FULL: range(SPARE_BYTES),
    Fault.DISK_FULL: range(SPARE_BYTES),
    Fault.WRITES_FAIL: range(SPARE_BYTES),
    Fault.FORWARD: (1.5, 31.0, 61.0, 3_700.0, 90_000.0),
    Fault.AHEAD: (1.5, 4.0, 31.0, 3_600.0),
    Fault.BACK: (0.4, 2.0, 45.0, 3_700.0, 90_000.0),
}
"""What `Planned.size` may be; 0 for the others."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A fault that begins `after` seconds after the previous one, and lasts `lasts` seconds.

    `size` is the change of the clock in seconds, the bytes left on a full disk, a seed for the
    writes that fail, or the number of a thread and of its transactions.
    """

    fault: Fault
    after: float
    lasts: float
    size: float = 0.0


def plan(seed: object) -> Iterator[Planned]:
    """Yield faults without end: first each kind once, in any order, then by their weights."""
    chance = random.Random(f"{seed}/faults")
    kinds = chance.sample(list(Fault), len(Fault))
    while True:
        for fault in kinds:
            yield Planned(
                fault, chance.uniform(0.3, 3.0), chance.uniform(0.5, 3.0), _size(fault, chance)
            )
        kinds = chance.choices(list(WEIGHTS), list(WEIGHTS.values()), k=10)


def _size(fault: Fault, chance: random.Random) -> float:
    return chance.choice(SIZES[fault]) if fault in SIZES else 0.0


class Faults:
    """An injector of planned faults, one after another; it counts those the machine survived."""

    def __init__(self, server: Server, disk: Disk, clock: OffsetClock) -> None:
        self.survived: Counter[Fault] = Counter()
        self._server, self._disk, self._clock = server, disk, clock

    def run(self, planned: Iterator[Planned], deadline: float) -> None:
        """Inject faults until a time. Raises `DiedError` if the machine does not survive one."""
        for one in planned:
            time.sleep(max(0.0, min(one.after, deadline - time.monotonic())))
            if time.monotonic() >= deadline:
                return
            self._server.check()
            self._do(one)
            self.survived[one.fault] += 1

    def _do(self, one: Planned) -> None:
        match one.fault:
            case Fault.KILLED | Fault.KILLED_BETWEEN | Fault.KILLED_TWICE | Fault.KILLED_FULL:
                self._kill(one)
                self._server.start()
            case Fault.DISK_FULL:
                self._disk.fill(self._server.pid, int(one.size))
                time.sleep(one.lasts)
                self._disk.free(self._server.pid)
            case Fault.WRITES_FAIL:
                for size in random.Random(one.size).choices(range(LOG_BYTES), k=TIMES):
                    limit(self._server.pid, size)
                    time.sleep(one.lasts / TIMES)
                    unlimit(self._server.pid)
                    time.sleep(one.lasts / TIMES)
            case Fault.FORWARD:
                self._clock.jump(one.size)
            case Fault.AHEAD:
                self._jump_and_return(one.size, one.lasts)
            case Fault.BACK:
                self._jump_and_return(-one.size, one.lasts)
            case Fault.PAUSED:
                self._clock.jump_before_midnight(one.lasts)
                time.sleep(one.lasts / 2)
                self._server.pause(one.lasts)

    def _jump_and_return(self, size: float, lasts: float) -> None:
        self._clock.jump(size)
        time.sleep(lasts)
        self._clock.jump(-size)

    def _kill(self, one: Planned) -> None:
        match one.fault:
            case Fault.KILLED_BETWEEN:
                thread, begins = divmod(int(one.size), MAX_TRANSACTIONS)
                self._server.kill_between(THREADS[thread], begins + 1)
            case Fault.KILLED_FULL:
                pid = self._server.pid
                self._disk.fill(pid, int(one.size))
                time.sleep(one.lasts)
                self._server.kill()
                self._disk.free(pid)
            case Fault.KILLED_TWICE:
                self._server.kill()
                self._server.start_and_kill(one.lasts / 3)
            case _:
                self._server.kill()
