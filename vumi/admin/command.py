"""The import as a command, the same on both engines: its options, its progress, its report."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

import click

from chalicelib.storage.errors import StorageError
from vumi.admin import counts_file
from vumi.admin.importing import Import, Outcome, Result

TELLING = {Outcome.REPLACED, Outcome.KEPT}
"""Outcomes of which every line is told: the operator decides on them."""


class CutShortError(Exception):
    """An import did not come to its end; the message says how to go on."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """What an import can be told."""
    parser.add_argument("file", type=Path, help="a CSV file of id,count, one badge a line")
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would be done, and do nothing"
    )
    parser.add_argument(
        "--replace",
        action="store_true",
        help="also where a badge has another base, or its owner let it begin anew",
    )


def run(rows: list[counts_file.Counted], job: Import) -> None:
    """Import, with a bar where somebody watches, and say what became of the lines.

    Raises `CutShortError` where it is interrupted, or the storage fails for longer than a minute.
    """
    outcomes: Counter[Outcome] = Counter()
    watched = sys.stderr.isatty()
    bar = click.progressbar(length=len(rows), label="badges", file=sys.stderr, hidden=not watched)
    try:
        with bar:
            for result in job.run(rows):
                outcomes[result.outcome] += 1
                _tell(result)
                bar.update(1)
    except (StorageError, KeyboardInterrupt) as error:
        why = "it was interrupted" if isinstance(error, KeyboardInterrupt) else f"then {error}"
        raise CutShortError(
            f"{outcomes.total()} of {len(rows)} badges are done, {why};"
            " run it again: what is done stays as it is"
        ) from error
    if job.dry_run:
        click.echo("a dry run, nothing was changed; without --dry-run:")
    for outcome in Outcome:
        click.echo(f"{outcomes[outcome]} {outcome.value}")


def _tell(result: Result) -> None:
    if result.outcome in TELLING:
        row = result.row
        click.echo(
            f"line {row.line}: {row.badge_id} {result.outcome.value}:"
            f" its base is {result.before}, the file says {row.count}"
        )
