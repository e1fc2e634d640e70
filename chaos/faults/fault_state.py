"""The record of whether a fault is under way, or was since a given moment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class FaultState:
    """A counter: `changes` grows when a fault begins or ends, so it is odd during a fault."""

    def __init__(self) -> None:
        self.changes = 0

    @contextmanager
    def fault(self) -> Iterator[None]:
        """Mark the time of a fault; one is under way at a time."""
        self.changes += 1
        try:
            yield
        finally:
            self.changes += 1

    def no_fault_since(self, changes: int) -> bool:
        """Return whether no fault has begun since, and none was under way then."""
        return changes == self.changes and changes % 2 == 0
