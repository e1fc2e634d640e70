"""The command `check`, which checks the file and changes nothing."""

from __future__ import annotations

import os

import click

from vumi.check import check as checking
from vumi.check.report import FindingKind
from vumi.cli.options import Invocation, examples
from vumi.errors import ReportedError
from vumi.installations.file import find_file
from vumi.storage.database import WAY_BACK

NICENESS = 19
"""The lowest priority (nice(2)), so that check and backup do not slow visitors down."""


class CheckFailedError(ReportedError):
    """A check has found something wrong. The message says how to restore the file."""

    status = 3


@click.command(epilog=examples("DATA=/var/lib/vu-mi vumi check"))
@click.pass_obj
def check(invocation: Invocation) -> None:
    """Check the file, while the server runs or not, and change nothing."""
    folder = invocation.settings.folder
    path = find_file(folder)
    os.nice(NICENESS)
    findings = checking.check(folder)
    for finding in findings:
        click.echo(str(finding))
    if wrong := sum(finding.kind is FindingKind.WRONG for finding in findings):
        raise CheckFailedError(f"{path} has {wrong} errors; {WAY_BACK}")
    click.echo(f"{path} has no errors.")
