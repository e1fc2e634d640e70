"""The record of whether a fault is under way, or was since a given moment."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class FaultState:
    """A counter: `changes` grows when a fault begins or ends, so it is odd during a fault.

    `times` has the times of the changes.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.changes = 0
        self.times: list[float] = []

    @contextmanager
    def fault(self) -> Iterator[None]:
        """Mark the time of a fault."""
        self._change()
        try:
            yield
        finally:
            self._change()

    def no_fault_since(self, changes: int) -> bool:
        """Return whether no fault has begun since, and none was under way then."""
        return changes == self.changes and changes % 2 == 0

    def _change(self) -> None:
        with self._lock:
            self.changes += 1
            self.times.append(time.monotonic())
