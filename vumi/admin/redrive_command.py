"""The redrive command for events on both engines: its options and report."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence

import click

from vumi.admin.redriving import Redrive, RedriveOutcome


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a redrive to a parser."""
    parser.add_argument("event", nargs="*", help="the ids of events (default: all failed events)")


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
