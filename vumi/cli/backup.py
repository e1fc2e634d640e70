"""The command `backup`, which copies DATA and checks the copy."""

from __future__ import annotations

from pathlib import Path

import click

from vumi import priority
from vumi.cli.options import Invocation, as_json, examples
from vumi.cli.output import print_json
from vumi.cli.progress import progress
from vumi.operate.backups import copying, making
from vumi.operate.installations.file import find_file
from vumi.plurals import plural


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
def backup(invocation: Invocation, folder: Path, keep: int | None, *, as_json: bool) -> None:
    """Copy DATA to the new FOLDER, and check the copy.

    It works while the server runs or not.
    """
    data = invocation.settings.folder
    find_file(data)
    priority.lower()
    copying.clean_up_on_sigterm()
    with progress("copying DATA and checking the copy"):
        if keep is None:
            made = making.make(data, folder)
        else:
            made = making.make_and_keep(data, folder, keep, invocation.clock())
    _print(made, as_json=as_json)


def _print(made: making.Backup, *, as_json: bool) -> None:
    if as_json:
        removed = [str(path) for path in made.removed]
        print_json({"backup": str(made.target), "objects": made.objects, "removed": removed})
        return
    click.echo(
        f"{made.target} has the file and {plural(made.objects, 'object')} of the archive, and"
        " is correct."
    )
    for path in made.removed:
        click.echo(f"removed {path}")
