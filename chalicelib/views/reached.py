"""The milestones that a write reaches, and the most that a badge may have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from chalicelib.storage.items import Value
from chalicelib.storage.writes import Put, Write

MAX_MILESTONES = 5
"""The maximum number of milestones of a badge."""
MAX_WRITES = MAX_MILESTONES + 1
"""Writes that milestones add to a transaction: their events, and their item."""


class Reached(NamedTuple):
    """The milestones that a write of a summary reaches.

    `next` is the number that the summary gets as its next milestone, None if it stays. `writes`
    belong into the transaction of the summary; `events` are those of them to enqueue after it.
    """

    next: int | None = None
    writes: tuple[Write, ...] = ()
    events: tuple[Put, ...] = ()

    @property
    def values(self) -> Mapping[str, Value]:
        """Return the attributes of the summary that change."""
        return {} if self.next is None else {"milestone": self.next}


NOTHING = Reached()
