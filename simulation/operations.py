"""Operations that interleave at every storage call, each in its own process.

An operation is a greenlet. Before each of its storage calls the scheduler may run any other
operation, so a seed replays one order of all storage calls of all processes.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

from greenlet import getcurrent, greenlet

from chalicelib.units import Seconds
from simulation.faults import Crash


class Operation:
    """A function that runs in its own process, whose clock is `skew` ahead of the world's.

    A process that is not done after `timeout` ends.
    """

    def __init__(
        self, run: Callable[[Operation], None], now: Seconds, skew: Seconds, timeout: Seconds
    ) -> None:
        self.skew = skew
        self.ends_at = now + timeout
        self.state: Any = None
        self._greenlet = greenlet(self._run)
        self._work = run

    @property
    def is_done(self) -> bool:
        return self._greenlet.dead

    def resume(self, now: Seconds) -> None:
        """Run the operation up to its next storage call, or end it after its timeout."""
        if now > self.ends_at and self._greenlet.gr_frame is not None:
            self._greenlet.throw(Crash)
        else:
            self._greenlet.switch()

    def _run(self) -> None:
        with suppress(Crash):
            self._work(self)


class Scheduler:
    """The operations under way; `random` chooses the next one to run."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._main = getcurrent()
        self.current: Operation | None = None
        self.under_way: list[Operation] = []

    def pause(self) -> None:
        """Let other operations run; an operation calls this before each of its storage calls."""
        if self.current is not None:
            self._main.switch()

    def step(self, now: Seconds) -> None:
        """Run one operation up to its next storage call."""
        self.go_on(self._random.choice(self.under_way), now)

    def go_on(self, operation: Operation, now: Seconds) -> None:
        self.current = operation
        try:
            operation.resume(now)
        finally:
            self.current = None
            if operation.is_done:
                self.under_way.remove(operation)
