"""The command `check`, which checks an installation and changes nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import click

from vumi import priority
from vumi.cli.options import Invocation, examples
from vumi.cli.output import as_json, good, mark, print_result, wants_json
from vumi.cli.progress import progress
from vumi.errors import ReportedError, plural
from vumi.operate.check import check as checking
from vumi.operate.check.live import LiveCheck
from vumi.operate.check.report import Finding, FindingKind
from vumi.operate.installations.file import find_file
from vumi.storage.database import WAY_BACK


class CheckFailedError(ReportedError):
    """A check has found something wrong. The message says how to go on."""

    status = 3


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
        priority.lower()
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
        raise CheckFailedError(f"{name} has {plural(wrong, 'error')}; {advice}")
    if not wants_json():
        click.echo(good(f"{name} has no errors."))


def _check_stack(invocation: Invocation, stack_name: str, table: str | None) -> Iterator[Finding]:
    with invocation.open_stack(stack_name) as stack:
        if table:
            stack.outputs["TableName"] = table
        archived = stack.archived if stack.has_archive else None
        yield from LiveCheck(stack.table, archived, time.sleep).check(stack.stored_items())
