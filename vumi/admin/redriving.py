"""Redriving events: what was given up is tried anew, by the whole schedule.

The dead letters of events are the events themselves: they lie in the table as `ERROR`, with every
attempt and its error, until 30 days have passed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from chalicelib.events import delivery, schedule
from chalicelib.events.event import PARTITION, Status, batches
from chalicelib.events.sweep import between
from chalicelib.storage.ports import Queue, Table


class Outcome(Enum):
    """What became of an event; the value says so to the operator."""

    REDRIVEN = "on its way again"
    NOT_GIVEN_UP = "left alone, for it was not given up"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Redriven:
    """An event, what became of it, and the error that it was given up for."""

    event_id: str
    outcome: Outcome
    error: str = ""


@dataclass(frozen=True, slots=True)
class Redrive:
    """Where events lie and what they are put on; `clock` is seconds since 1970."""

    table: Table
    queue: Queue
    clock: Callable[[], float]

    def run(self, event_ids: Sequence[str] = ()) -> Iterator[Redriven]:
        """Redrive these events, or all that were given up. Raises `StorageError`.

        Run again it does what is left: what is on its way is not given up any more.
        """
        for event_id in event_ids or self._given_up():
            yield self._redrive(event_id)

    def _given_up(self) -> list[str]:
        """All of them before the first: one that fails again meanwhile is not tried twice."""
        return [
            due.key.pk.removeprefix(PARTITION)
            for batch in batches(Status.ERROR)
            for due in between(self.table, batch)
        ]

    def _redrive(self, event_id: str) -> Redriven:
        try:
            event = schedule.read(self.table, event_id)
        except schedule.UnknownEventError:
            return Redriven(event_id, Outcome.UNKNOWN)
        if event.status is not Status.ERROR or not delivery.redrive(
            self.table, self.queue, event, int(self.clock() * 1000)
        ):
            return Redriven(event_id, Outcome.NOT_GIVEN_UP)
        return Redriven(event_id, Outcome.REDRIVEN, event.last_error)
