"""An attacker beside the visitors: attacks of `simulation.attacks` in turn, with rests.

They count nothing, so the checker expects of the counts what it expects without them.
"""

from __future__ import annotations

import random
import threading
import time
from bisect import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle

from chaos.checker.history import Operation, Outcome
from simulation.attacks import READS, Attack

ATTACK_SECONDS = 3.0
REST_SECONDS = 2.0
P99 = 0.99


@dataclass(frozen=True, slots=True)
class Waits:
    """The waits of visitors: the p99 in seconds without an attack and during one."""

    quiet: float
    attacked: float


class Attacker:
    """A thread that attacks until `stop`; `times` has the beginning and end of each attack."""

    def __init__(self, host: str, port: int, seed: str) -> None:
        self.times: list[float] = []
        self._address = host, port
        names = random.Random(f"{seed}/attacks").sample(list(READS), len(READS))
        self._names = cycle(names)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="attacker")
        self._thread.start()

    def stop(self) -> None:
        """Wait for the end of the attack under way."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(REST_SECONDS):
            self.times.append(time.monotonic())
            with Attack(*self._address, next(self._names), ATTACK_SECONDS).start() as attack:
                attack.wait()
            self.times.append(time.monotonic())


def waits(
    operations: Iterable[Operation], attacks: Sequence[float], faults: Sequence[float]
) -> Waits:
    """Compare the answered operations during attacks with the others, each without a fault.

    Both sequences have the beginning and the end of each, in their order.
    """
    found: dict[bool, list[float]] = {False: [], True: []}
    for one in operations:
        if one.outcome is Outcome.ACKNOWLEDGED and not _is_in(faults, one):
            found[_is_in(attacks, one)].append(one.completed - one.invoked)
    return Waits(_p99(found[False]), _p99(found[True]))


def _is_in(times: Sequence[float], one: Operation) -> bool:
    """Return whether a part of an operation is between a beginning and an end."""
    before = bisect(times, one.invoked)
    return before % 2 == 1 or before != bisect(times, one.completed)


def _p99(waits: list[float]) -> float:
    return sorted(waits)[int(P99 * len(waits))] if waits else 0.0
