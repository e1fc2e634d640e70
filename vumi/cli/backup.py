"""The command `backup`, which copies DATA and checks the copy."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from vumi import priority
from vumi.cli.options import Invocation, as_json, examples
from vumi.cli.output import print_json
from vumi.operate.backups import copying, making
from vumi.operate.installations.file import find_file
from vumi.operate.installations.restorable import restore_command


@click.command(
    epilog=examples(
        "vumi backup /backup/before-the-upgrade",
        "vumi backup --keep 7 /backup",
        "vumi backup --stack vu-mi-prod",
    )
)
@click.argument("folder", type=click.Path(path_type=Path), required=False)
@click.option(
    "--keep",
    type=click.IntRange(1),
    metavar="NUMBER",
    help="Make the backup in FOLDER, with the time as its name, and then remove all but the latest"
    " NUMBER.",
)
@click.option(
    "--stack",
    "stack_name",
    metavar="NAME",
    help="Show the times to which this stack on AWS can be restored, because DynamoDB makes its"
    " backups continuously.",
)
@as_json
@click.pass_obj
def backup(
    invocation: Invocation,
    folder: Path | None,
    keep: int | None,
    stack_name: str | None,
    *,
    as_json: bool,
) -> None:
    """Copy DATA to the new FOLDER and check the copy, while the server runs or not."""
    if stack_name is not None:
        if folder or keep:
            raise click.UsageError("--stack takes neither FOLDER nor --keep")
        _show_times(invocation, stack_name, as_json=as_json)
    elif folder is None:
        raise click.UsageError("give FOLDER or --stack")
    else:
        _make(invocation, folder, keep, as_json=as_json)


def _make(invocation: Invocation, folder: Path, keep: int | None, *, as_json: bool) -> None:
    data = invocation.settings.folder
    find_file(data)
    priority.lower()
    copying.clean_up_on_sigterm()
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
        f"{made.target} has the file and {made.objects:,} objects of the archive, and is correct."
    )
    for path in made.removed:
        click.echo(f"removed {path}")


def _show_times(invocation: Invocation, stack_name: str, *, as_json: bool) -> None:
    with invocation.open_stack(stack_name) as stack:
        times = stack.restorable_times()
    first, last = _format(times.first), _format(times.last)
    if as_json:
        print_json({"table": times.table, "first": first, "last": last})
        return
    click.echo(f"The table {times.table} can be restored to any second from {first} to {last}:")
    click.echo(f"  {restore_command(stack_name, last)}")


def _format(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
