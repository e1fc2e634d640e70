"""The import command of both engines: its options, progress and report."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

import click

from chalicelib.storage.errors import StorageError
from vumi.admin import counts_file
from vumi.admin.importing import Import, ImportOutcome, ImportResult

REPORTED_OUTCOMES = {ImportOutcome.REPLACED, ImportOutcome.KEPT}
"""Outcomes that are reported for each line, so that the operator can decide."""


class InterruptedImportError(Exception):
    """An import was interrupted. The message says how to continue."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of an import to a parser."""
    parser.add_argument("file", type=Path, help="a CSV file with one line id,count per badge")
    parser.add_argument(
        "--dry-run", action="store_true", help="report the changes without making them"
    )
    parser.add_argument(
        "--replace",
        action="store_true",
        help="also change badges that have another base or that their owner has reset",
    )


def run(rows: list[counts_file.ImportedCount], job: Import) -> None:
    """Import the rows and print a report, with a progress bar on a terminal.

    Raises `InterruptedImportError` if it is interrupted or the storage fails for a minute.
    """
    outcomes: Counter[ImportOutcome] = Counter()
    is_terminal = sys.stderr.isatty()
    bar = click.progressbar(
        length=len(rows), label="badges", file=sys.stderr, hidden=not is_terminal
    )
    try:
        with bar:
            for result in job.run(rows):
                outcomes[result.outcome] += 1
                _report(result)
                bar.update(1)
    except (StorageError, KeyboardInterrupt) as error:
        reason = str(error) or "it was interrupted"
        raise InterruptedImportError(
            f"the import stopped after {outcomes.total()} of {len(rows)} badges: {reason};"
            " run it again to import the rest"
        ) from error
    if job.dry_run:
        click.echo("dry run: nothing was changed; without --dry-run:")
    for outcome in ImportOutcome:
        click.echo(f"{outcomes[outcome]} {outcome.value}")


def _report(result: ImportResult) -> None:
    if result.outcome in REPORTED_OUTCOMES:
        row = result.row
        click.echo(
            f"line {row.line}: {row.badge_id} {result.outcome.value}:"
            f" its base is {result.before}, but the file has {row.count}"
        )
