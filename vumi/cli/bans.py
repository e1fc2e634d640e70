"""The commands `ban`, `bans` and `unban`, by which an operator decides what is not counted."""

from __future__ import annotations

import click

from chalicelib.counting import bans as stored
from chalicelib.counting.bans import Ban
from chalicelib.owners.bans import find, parse_reason, to_json
from chalicelib.units import to_milliseconds
from vumi.cli.options import BADGE_ID, Parsed, examples, on_installation
from vumi.cli.output import as_json, log_change, print_objects
from vumi.errors import ReportedError
from vumi.operate.admin.installation import Installation

BY = "vumi ban"
pattern_argument = click.argument("pattern", metavar="PATTERN", type=BADGE_ID)


class NoBanError(ReportedError):
    """There is no ban of the pattern. The message says where to find those that there are."""


@click.command(
    epilog=examples(
        "vumi ban spammer/page --reason spam",
        "vumi ban 'spammer/*' --reason spam",
        "vumi ban 'spammer/*' --stack vu-mi-prod",
    )
)
@pattern_argument
@click.option(
    "--reason",
    type=Parsed("reason", parse_reason),
    metavar="TEXT",
    default="",
    help="The reason, for operators alone.",
)
@on_installation
def ban(installation: Installation, pattern: str, reason: str) -> None:
    """Ban ids: they are neither counted nor shown.

    In a pattern, * stands for any characters. The numbers stay, and unban shows them again. A ban
    holds from the next request on, on AWS within a minute.
    """
    before = find(installation.table, pattern)
    stored.put(installation.table, Ban(pattern, reason, BY, to_milliseconds(installation.clock())))
    log_change(pattern, before)
    click.echo(f"{pattern} is banned.")


@click.command(epilog=examples("vumi bans", "vumi bans --json"))
@as_json
@on_installation
def bans(installation: Installation) -> None:
    """List all bans."""
    print_objects(map(to_json, stored.read_all(installation.table)))


@click.command(epilog=examples("vumi unban 'spammer/*'"))
@pattern_argument
@on_installation
def unban(installation: Installation, pattern: str) -> None:
    """Lift a ban, so that ids count again and show their numbers."""
    before = find(installation.table, pattern)
    if not stored.lift(installation.table, pattern):
        raise NoBanError(f"no ban has the pattern {pattern}; vumi bans lists all")
    log_change(pattern, before)
    click.echo(f"{pattern} is not banned any more.")
