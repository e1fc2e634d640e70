"""The commands `backup` and `restore`, which copy DATA and check the copy, in both directions."""

from __future__ import annotations

from pathlib import Path

import click

from vumi import priority
from vumi.cli.options import Invocation, examples
from vumi.cli.output import as_json, print_json, wants_json
from vumi.cli.progress import progress
from vumi.errors import plural
from vumi.operate.backups import copying, making, restoring
from vumi.operate.installations.file import find_file


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
    priority.lower()
    copying.clean_up_on_sigterm()
    with progress("copying DATA and checking the copy"):
        if keep is None:
            made = making.make(data, folder)
        else:
            made = making.make_and_keep(data, folder, keep, invocation.clock())
    if wants_json():
        removed = [str(path) for path in made.removed]
        print_json({"backup": str(made.target), "objects": made.objects, "removed": removed})
        return
    click.echo(f"{_describe(made.target, made.objects)}.")
    for path in made.removed:
        click.echo(f"removed {path}")


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
        restored = restoring.restore(backup, data, invocation.clock(), aside=aside)
    before = str(restored.before) if restored.before else None
    if wants_json():
        print_json({"data": str(restored.folder), "objects": restored.objects, "before": before})
        return
    click.echo(f"{_describe(restored.folder, restored.objects)}; start vu-mi.")
    if before:
        click.echo(f"The folder before is {before}; remove it when you need nothing in it.")


def _describe(folder: Path, objects: int) -> str:
    return f"{folder} has the file and {plural(objects, 'object')} of the archive, and is correct"
