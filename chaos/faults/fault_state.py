"""Whether the machine is well just now: no fault is being done to it, and none was meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class FaultState:
    """`changes` grows whenever a fault begins or ends: it is odd while one lasts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.changes = 0

    @contextmanager
    def fault(self) -> Iterator[None]:
        """A fault is done."""
        self._change()
        try:
            yield
        finally:
            self._change()

    def no_fault_since(self, changes: int) -> bool:
        """Whether no fault has begun since, and none lasted then."""
        return changes == self.changes and changes % 2 == 0

    def _change(self) -> None:
        with self._lock:
            self.changes += 1
