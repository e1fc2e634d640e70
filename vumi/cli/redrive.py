"""The commands `redrive` and `redrive-events`, which deliver messages again after they failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import click

from vumi.admin.installation import Installation, LetterOutcome
from vumi.admin.redriving import Redrive, RedriveOutcome
from vumi.cli.options import examples, on_installation


@click.command(epilog=examples("vumi redrive", "vumi redrive --stack vu-mi-prod"))
@on_installation
def redrive(installation: Installation) -> None:
    """Send the dead letters of views again."""
    outcomes = installation.redrive_views()
    for outcome in LetterOutcome:
        if outcomes[outcome] or outcome is LetterOutcome.SENT:
            click.echo(f"{outcomes[outcome]} {outcome.value}.")


@click.command(epilog=examples("vumi redrive-events", "vumi redrive-events EVENT-ID EVENT-ID"))
@click.argument("event_ids", metavar="[EVENT]...", nargs=-1)
@on_installation
def redrive_events(installation: Installation, event_ids: tuple[str, ...]) -> None:
    """Deliver failed events again: these, or all."""
    run(Redrive(installation.table, installation.delivery_queue, installation.clock), event_ids)


def run(job: Redrive, event_ids: Sequence[str]) -> None:
    """Redrive events and print a report. Raises `StorageError`; run it again then."""
    outcomes: Counter[RedriveOutcome] = Counter()
    for redriven in job.run(event_ids):
        outcomes[redriven.outcome] += 1
        reason = f"; its last error: {redriven.error}" if redriven.error else ""
        click.echo(f"{redriven.event_id} {redriven.outcome.value}{reason}")
    for outcome in RedriveOutcome:
        if outcomes[outcome] or outcome is RedriveOutcome.REDRIVEN:
            click.echo(f"{outcomes[outcome]} {outcome.value}")
