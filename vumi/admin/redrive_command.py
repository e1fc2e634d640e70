"""The redrive of events as a command, the same on both engines: what it takes, and its report."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence

import click

from vumi.admin.redriving import Outcome, Redrive


def add_options(parser: argparse.ArgumentParser) -> None:
    """What a redrive can be told."""
    parser.add_argument(
        "event", nargs="*", help="the id of an event; all that were given up if none"
    )


def run(job: Redrive, event_ids: Sequence[str]) -> None:
    """Redrive, and say what became of each event. Raises `StorageError`; run it again then."""
    outcomes: Counter[Outcome] = Counter()
    for redriven in job.run(event_ids):
        outcomes[redriven.outcome] += 1
        reason = f"; it was given up for: {redriven.error}" if redriven.error else ""
        click.echo(f"{redriven.event_id} {redriven.outcome.value}{reason}")
    for outcome in Outcome:
        if outcomes[outcome] or outcome is Outcome.REDRIVEN:
            click.echo(f"{outcomes[outcome]} {outcome.value}")
