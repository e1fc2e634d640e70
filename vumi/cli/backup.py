"""The command `backup`, which copies DATA and checks the copy."""

from __future__ import annotations

import os
from pathlib import Path

import click

from vumi import backup as backups
from vumi.cli.check import NICENESS
from vumi.cli.options import Invocation, examples
from vumi.installations.file import find_file


@click.command(epilog=examples("vumi backup /backup/vu-mi-2026-11-22"))
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--replace", is_flag=True, help="Replace an older backup of that name.")
@click.pass_obj
def backup(invocation: Invocation, folder: Path, *, replace: bool) -> None:
    """Copy DATA to the new FOLDER and check the copy, while the server runs or not."""
    settings = invocation.settings
    find_file(settings.folder)
    os.nice(NICENESS)
    made = backups.make(settings.folder, folder, replace=replace)
    click.echo(
        f"{made.target} has the file and {made.objects:,} objects of the archive, and is correct."
    )
