"""The command `import`: its options, its progress and its report."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import click

from chalicelib.storage.errors import StorageError
from vumi.admin import counts_file
from vumi.admin.importing import Import, ImportOutcome, ImportResult
from vumi.admin.installation import Installation
from vumi.cli.options import examples, on_installation
from vumi.errors import ReportedError

REPORTED_OUTCOMES = {ImportOutcome.REPLACED, ImportOutcome.KEPT}
"""Outcomes that are reported for each line, so that the operator can decide."""


class InterruptedImportError(ReportedError):
    """An import was interrupted. The message says how to continue."""


@click.command(
    "import", epilog=examples("vumi import counts.csv --dry-run", "vumi import counts.csv")
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Report the changes without making them.")
@click.option(
    "--replace",
    is_flag=True,
    help="Also change badges that have another base or that their owner has reset.",
)
@on_installation
def import_(installation: Installation, file: Path, *, dry_run: bool, replace: bool) -> None:
    """Import counts from a CSV file with one line id,count per badge.

    Each count becomes the base of its badge, to which views are added.
    """
    rows = counts_file.read(file)
    run(
        rows,
        Import(installation.table, installation.map_parallel, installation.clock, replace, dry_run),
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
