"""The commands for all data: check, backup, restore and export."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import click

from vumi.cli.options import Invocation, examples, on_installation
from vumi.cli.output import as_json, mark, print_result, progress, wants_json
from vumi.errors import ReportedError, plural
from vumi.operate.admin import counts
from vumi.operate.admin.installation import Installation, Source
from vumi.operate.backups import backups, copying
from vumi.operate.check import check as checking
from vumi.operate.check.items import Finding, FindingKind, LiveCheck
from vumi.operate.exchange import files
from vumi.operate.installations.file import find_file
from vumi.operate.kinds import TOKEN
from vumi.storage.database import WAY_BACK


@click.command(epilog=examples("DATA=/var/lib/vu-mi vumi check", "vumi check --stack vu-mi-prod"))
@click.option(
    "--stack",
    "stack_name",
    metavar="NAME",
    help="Check the table and the archive of this stack on AWS, instead of the file in DATA.",
)
@click.option("--table", metavar="NAME", help="Check this restored table, with --stack.")
@as_json
@click.pass_obj
def check(invocation: Invocation, stack_name: str | None, table: str | None) -> None:
    """Check the whole file, and change nothing.

    It works while the server runs or not. Each line is ok, a note, or wrong. The exit status is 3
    if something is wrong.
    """
    if stack_name is None:
        if table:
            raise click.UsageError("--table needs --stack")
        folder = invocation.settings.folder
        name, advice = str(find_file(folder)), WAY_BACK
        os.nice(19)  # the lowest priority: visitors come first
        findings = checking.check(folder)
    else:
        name = f"the table {table}" if table else f"the stack {stack_name}"
        advice = 'docs/backups.md, "On AWS", says how to go on'
        findings = _check_stack(invocation, stack_name, table)
    wrong = 0
    with progress("checking") as line:
        for finding in findings:
            wrong += finding.kind is FindingKind.WRONG
            line.hide()
            text = f"{mark(finding.kind, sys.stdout)} {finding.message}"
            print_result(text, {"kind": str(finding.kind), "message": finding.message})
    if wrong:
        raise ReportedError(f"{name} has {plural(wrong, 'error')}; {advice}", status=3)
    if not wants_json():
        click.echo(click.style(f"{name} has no errors.", fg="green"))


def _check_stack(invocation: Invocation, stack_name: str, table: str | None) -> Iterator[Finding]:
    with invocation.open_stack(stack_name) as stack:
        if table:
            stack.outputs["TableName"] = table
        archived = stack.archived if "ArchiveBucket" in stack.outputs else None
        yield from LiveCheck(stack.table, archived, time.sleep).check(stack.stored_items())


@click.command(
    epilog=examples(
        "vumi backup /backup/before-the-upgrade",
        "vumi backup --keep 7 /backup",
    )
)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--keep",
    type=click.IntRange(1),
    metavar="NUMBER",
    help="Make the backup in FOLDER, with the time as its name, and then remove all but the latest"
    " NUMBER.",
)
@as_json
@click.pass_obj
def backup(invocation: Invocation, folder: Path, keep: int | None) -> None:
    """Copy DATA to the new FOLDER, and check the copy.

    It works while the server runs or not.
    """
    data = invocation.settings.folder
    find_file(data)
    os.nice(19)  # the lowest priority: visitors come first
    copying.clean_up_on_sigterm()
    with progress("copying DATA and checking the copy"):
        if keep is None:
            made = backups.make(data, folder)
        else:
            made = backups.make_and_keep(data, folder, keep, invocation.clock())
    removed = [str(path) for path in made.removed]
    lines = (f"{_describe(made.target, made.objects)}.", *(f"removed {path}" for path in removed))
    fields = {"backup": str(made.target), "objects": made.objects, "removed": removed}
    print_result("\n".join(lines), fields)


@click.command(
    epilog=examples(
        "vumi restore /backup/vu-mi-2026-11-22T171500Z",
        "DATA=/var/lib/vu-mi vumi restore --aside /backup/vu-mi-2026-11-22T171500Z",
    )
)
@click.argument("backup", type=click.Path(path_type=Path))
@click.option("--aside", is_flag=True, help="Rename DATA first, to its name and the time.")
@as_json
@click.pass_obj
def restore(invocation: Invocation, backup: Path, *, aside: bool) -> None:
    """Give DATA the content of BACKUP, after a check.

    DATA must not exist or be empty. A restore that fails or is killed leaves DATA as it was. The
    server must not run.
    """
    copying.clean_up_on_sigterm()
    data = invocation.settings.folder
    with progress("checking and copying the backup"):
        restored = backups.restore(backup, data, invocation.clock(), aside=aside)
    before = str(restored.before) if restored.before else None
    text = f"{_describe(restored.folder, restored.objects)}; start vu-mi."
    if before:
        text += f"\nThe folder before is {before}; remove it when you need nothing in it."
    fields = {"data": str(restored.folder), "objects": restored.objects, "before": before}
    print_result(text, fields)


def _describe(folder: Path, objects: int) -> str:
    return f"{folder} has the file and {plural(objects, 'object')} of the archive, and is correct"


@click.command(
    epilog=examples(
        "vumi export vu-mi.jsonl.gz",
        "vumi export --counts counts.csv",
        "vumi export - --stack vu-mi-prod | gzip > vu-mi.jsonl.gz",
    )
)
@click.argument("file")
@click.option(
    "--counts", "only_counts", is_flag=True, help="Export the counts alone, as CSV for any counter."
)
@on_installation
def export(installation: Installation, file: str, *, only_counts: bool) -> None:
    """Export everything as lines of JSON.

    It writes a new FILE, or - for standard output. A FILE whose name ends in .gz is compressed. An
    export of one machine is of one moment. With wallets, an export of a stack waits up to four
    minutes, so that their balances are of one moment too.
    """
    with installation.open_source() as source, files.create(file) as opened:
        if only_counts:
            _export_counts(source, opened)
        else:
            _export_all(installation, source, opened)


def _export_counts(source: Source, file: IO[bytes]) -> None:
    file.write(counts.format_row(*counts.HEADER).encode())
    with progress("exporting counts") as line:
        for name, count in line.count(counts.export(source.groups)):
            file.write(counts.format_row(name, count).encode())
    click.echo(f"exported {plural(line.done, 'count')}", err=True)


def _export_all(installation: Installation, source: Source, file: IO[bytes]) -> None:
    writer, now = files.LineWriter(file), installation.clock()
    exported = files.export(source, installation.settings, now, writer)
    with progress("exporting") as line:
        for _ in line.count(exported):
            pass
    for kind, lines in sorted(writer.counts.items()):
        if kind != files.HEADER:
            note = ", which only import --tokens imports" if kind == TOKEN.name else ""
            click.echo(f"exported {plural(lines, 'line')} of the type {kind}{note}", err=True)
    for reason in source.left_out:
        click.echo(f"not exported: {reason}", err=True)
