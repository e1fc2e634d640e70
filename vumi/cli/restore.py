"""The command `restore`, which gives DATA the content of a backup."""

from __future__ import annotations

from pathlib import Path

import click

from vumi.cli.options import Invocation, as_json, examples
from vumi.cli.output import print_json
from vumi.cli.progress import progress
from vumi.operate.backups import copying, restoring
from vumi.plurals import plural


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
def restore(invocation: Invocation, backup: Path, *, aside: bool, as_json: bool) -> None:
    """Give DATA the content of BACKUP, after a check.

    DATA must not exist or be empty. A restore that fails or is killed leaves DATA as it was. The
    server must not run.
    """
    copying.clean_up_on_sigterm()
    data = invocation.settings.folder
    with progress("checking and copying the backup"):
        restored = restoring.restore(backup, data, invocation.clock(), aside=aside)
    before = str(restored.before) if restored.before else None
    if as_json:
        print_json({"data": str(restored.folder), "objects": restored.objects, "before": before})
        return
    click.echo(
        f"{restored.folder} has the file and {plural(restored.objects, 'object')} of the archive,"
        " and is correct; start vu-mi."
    )
    if before:
        click.echo(f"The folder before is {before}; remove it when you need nothing in it.")
