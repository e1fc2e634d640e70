"""The redrive of failed events, which starts their whole retry schedule again.

A failed event stays in the table for 30 days, with the status `ERROR` and all its attempts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from chalicelib.events import delivery, schedule
from chalicelib.events.event import PARTITION, Status, batches
from chalicelib.events.sweep import between
from chalicelib.storage.ports import Queue, Table
from chalicelib.units import Seconds, to_milliseconds


class RedriveOutcome(Enum):
    """The outcome of one event; its value is printed for the operator."""

    REDRIVEN = "queued again"
    NOT_FAILED = "skipped, because it has not failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Redriven:
    """An event, its outcome, and the error of its last attempt."""

    event_id: str
    outcome: RedriveOutcome
    error: str = ""


@dataclass(frozen=True, slots=True)
class Redrive:
    """The job that redrives events."""

    table: Table
    queue: Queue
    clock: Callable[[], Seconds]

    def run(self, event_ids: Sequence[str] = ()) -> Iterator[Redriven]:
        """Redrive these events, or all failed events. Raises `StorageError`.

        Running it again redrives the rest, because a redriven event is no longer failed.
        """
        for event_id in event_ids or self._list_failed():
            yield self._redrive(event_id)

    def _list_failed(self) -> list[str]:
        """List all failed events first, so that one that fails again is not redriven twice."""
        return [
            due.key.pk.removeprefix(PARTITION)
            for batch in batches(Status.ERROR)
            for due in between(self.table, batch)
        ]

    def _redrive(self, event_id: str) -> Redriven:
        try:
            event = schedule.read(self.table, event_id)
        except schedule.UnknownEventError:
            return Redriven(event_id, RedriveOutcome.UNKNOWN)
        if event.status is not Status.ERROR or not delivery.redrive(
            self.table, self.queue, event, to_milliseconds(self.clock())
        ):
            return Redriven(event_id, RedriveOutcome.NOT_FAILED)
        return Redriven(event_id, RedriveOutcome.REDRIVEN, event.last_error)
