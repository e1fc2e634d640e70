"""The command `list`, which shows the badges with their views."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, TypeVar

import click

from vumi.cli.options import examples, on_installation
from vumi.cli.output import Cell, as_json, print_json, print_table, wants_json
from vumi.cli.progress import progress
from vumi.errors import plural
from vumi.operate.admin.installation import Installation
from vumi.operate.admin.overview import BadgeOverview, By, Totals
from vumi.operate.admin.overview import top as top_of

Function = TypeVar("Function", bound=Callable[..., Any])

MAX_BADGES = 100_000
"""The most badges in one table, which are kept in memory."""
HEADER = ("NOW", "TODAY", "MONTH", "TOTAL", "CREATED", "", "BADGE")


def ordered(flag: str, default: By, limit: int) -> Callable[[Function], Function]:
    """Return the options by which a command sorts badges and shows the first ones."""
    by = click.option(
        flag,
        "by",
        type=click.Choice([by.value for by in By]),
        default=default.value,
        show_default=True,
        help="Sort by the views of the last 5 minutes, of today, of this month (UTC), or in total.",
    )
    most = click.IntRange(1, MAX_BADGES)
    help_ = "The most badges to show."
    first = click.option("--limit", type=most, default=limit, show_default=True, help=help_)
    return lambda function: by(first(function))


@click.command("list", epilog=examples("vumi list", "vumi list --search octocat/ --json"))
@click.option("--search", default="", metavar="TEXT", help="Only badges with TEXT in a name.")
@ordered("--sort", By.TOTAL, 50)
@as_json
@on_installation
def list_(installation: Installation, *, search: str, by: str, limit: int) -> None:
    """List badges with their views.

    It reads all badges. On a stack, that is a scan of the table, which AWS bills.
    """
    found = Totals()
    with progress("reading badges") as line:
        badges = line.count(installation.badges(installation.view_clock()))
        shown = top_of(found.passing(one for one in badges if one.has(search)), By(by), limit)
    if print_badges(shown):
        return
    print_table(HEADER, rows(shown))
    click.echo(
        f"{len(shown):,} of {plural(found.badges, 'badge')}; {plural(found.total, 'view')}",
        err=True,
    )


def print_badges(badges: Iterable[BadgeOverview]) -> bool:
    """Print a line of JSON for each badge, and return True, if the command prints JSON."""
    if wants_json():
        for badge in badges:
            print_json(badge.to_json())
    return wants_json()


def rows(badges: Iterable[BadgeOverview]) -> Iterable[tuple[Cell, ...]]:
    """Return the rows of a table; the name is last, because its width in a terminal is unknown."""
    for badge in badges:
        created = f"{datetime.fromtimestamp(badge.created, UTC):%Y-%m-%d}" if badge.created else "-"
        marks = f"{'owned' if badge.owned else ''}{' frozen' if badge.frozen else ''}".strip()
        yield badge.now, badge.today, badge.month, badge.total, created, marks, badge.name
