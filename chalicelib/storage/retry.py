"""The retries of a call to the storage: their number and their waits."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from chalicelib.storage.errors import UnavailableError
from chalicelib.units import Seconds

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Retry:
    """Exponential backoff with full jitter: before try n + 1, wait random * min(cap, base * 2^n).

    shields.io waits 3.5 s for a badge, and all other work is retried by redelivery. So after
    `budget` seconds nothing is tried again: a call that took its whole timeout is final, and a call
    that failed immediately is not.
    """

    attempts: int = 5
    base: Seconds = 0.05
    cap: Seconds = 0.5
    budget: Seconds = 0.9
    sleep: Callable[[Seconds], None] = time.sleep
    jitter: Callable[[], float] = random.random
    monotonic: Callable[[], Seconds] = time.monotonic

    def rounds(self) -> Iterator[int]:
        """Count the tries from 0, with a wait before each one except the first."""
        started = self.monotonic()
        yield 0
        for attempt in range(1, self.attempts):
            wait = self.jitter() * min(self.cap, self.base * 2 ** (attempt - 1))
            if self.monotonic() - started + wait > self.budget:
                return
            self.sleep(wait)
            yield attempt

    def call(self, operation: Callable[[], Result]) -> Result:
        """Repeat an operation until it does not raise `UnavailableError`, or the tries end."""
        failure = UnavailableError("not tried")
        for _ in self.rounds():
            try:
                return operation()
            except UnavailableError as unavailable:
                failure = unavailable
        raise failure
