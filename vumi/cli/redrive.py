"""The commands `redrive` and `redrive-events`, which deliver messages again after they failed.

A failed event stays in the table for 30 days, with the status `ERROR` and all its attempts. A
redrive starts its whole retry schedule again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

import click

from chalicelib.events import delivery, schedule
from chalicelib.events.event import PARTITION, Status, batches
from chalicelib.events.sweep import between
from chalicelib.storage.ports import Queue, Table
from chalicelib.units import Seconds, to_milliseconds
from vumi.cli.options import examples, on_installation
from vumi.cli.output import as_json, print_json, print_result, wants_json
from vumi.errors import plural
from vumi.operate.admin.installation import Installation, LetterOutcome


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

    def to_json(self) -> dict[str, object]:
        """Return the line of JSON of the event."""
        return {"id": self.event_id, "outcome": self.outcome.name.lower(), "error": self.error}


@dataclass(frozen=True, slots=True)
class Redrive:
    """The job that redrives events."""

    table: Table
    queue: Queue
    clock: Callable[[], Seconds]

    def run(self, event_ids: Sequence[str] = ()) -> Iterator[Redriven]:
        """Redrive these events, or all failed events. Raises `StorageError`.

        Running it again redrives the rest, because a redriven event is no longer failed. All failed
        events are listed first, so that one that fails again is not redriven twice.
        """
        failed = (due.key.pk for one in batches(Status.ERROR) for due in between(self.table, one))
        for event_id in event_ids or [pk.removeprefix(PARTITION) for pk in failed]:
            yield self._redrive(event_id)

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


@click.command(epilog=examples("vumi redrive", "vumi redrive --stack vu-mi-prod"))
@as_json
@on_installation
def redrive(installation: Installation) -> None:
    """Send the dead letters of views again."""
    outcomes = installation.redrive_views()
    if wants_json():
        print_json({one.name.lower(): outcomes[one] for one in LetterOutcome})
        return
    for outcome in LetterOutcome:
        if outcomes[outcome] or outcome is LetterOutcome.SENT:
            click.echo(f"{plural(outcomes[outcome], 'dead letter')} {outcome.value}.")


@click.command(epilog=examples("vumi redrive-events", "vumi redrive-events EVENT-ID EVENT-ID"))
@click.argument("event_ids", metavar="[EVENT]...", nargs=-1)
@as_json
@on_installation
def redrive_events(installation: Installation, event_ids: tuple[str, ...]) -> None:
    """Deliver failed events again: these, or all."""
    job = Redrive(installation.table, installation.delivery_queue, installation.clock)
    run(job, event_ids)


def run(job: Redrive, event_ids: Sequence[str]) -> None:
    """Redrive events and print a report. Raises `StorageError`; run it again then."""
    outcomes: Counter[RedriveOutcome] = Counter()
    for redriven in job.run(event_ids):
        outcomes[redriven.outcome] += 1
        reason = f"; its last error: {redriven.error}" if redriven.error else ""
        text = f"{redriven.event_id} {redriven.outcome.value}{reason}"
        print_result(text, redriven.to_json())
    if wants_json():
        return
    for outcome in RedriveOutcome:
        if outcomes[outcome] or outcome is RedriveOutcome.REDRIVEN:
            click.echo(f"{plural(outcomes[outcome], 'event')} {outcome.value}")
