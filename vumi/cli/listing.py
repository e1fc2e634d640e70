"""The commands `list`, `top` and `prune`, which read all badges."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from heapq import nsmallest
from operator import attrgetter
from typing import Any, TypeVar

import click

from chalicelib.units import WholeSeconds
from vumi.cli.options import Invocation, Parsed, confirm, dry_run, examples, on_installation, yes
from vumi.cli.output import (
    Cell,
    as_json,
    log_change,
    print_json,
    print_objects,
    print_result,
    print_table,
    progress,
    wants_json,
)
from vumi.errors import plural
from vumi.operate.admin.installation import Installation
from vumi.operate.admin.overview import BadgeOverview, By, Totals
from vumi.operate.installations.file import open_installation
from vumi.storage.upkeep import Pruning, UnseenBadge

Function = TypeVar("Function", bound=Callable[..., Any])

MAX_BADGES = 100_000
"""The most badges in one table, which are kept in memory."""
REDRAW_SECONDS = 2.0
REST_FACTOR = 2.0
"""The rest between two tables is at least this many times as long as the reading of all badges."""
DAY: WholeSeconds = 86_400
HEADER = ("NOW", "TODAY", "MONTH", "TOTAL", "CREATED", "", "BADGE")


def _ordered(flag: str, default: By, limit: int) -> Callable[[Function], Function]:
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
    text = "The most badges to show."
    first = click.option("--limit", type=most, default=limit, show_default=True, help=text)
    return lambda function: by(first(function))


@click.command("list", epilog=examples("vumi list", "vumi list --search octocat/ --json"))
@click.option("--search", default="", metavar="TEXT", help="Only badges with TEXT in a name.")
@_ordered("--sort", By.TOTAL, 50)
@as_json
@on_installation
def list_(installation: Installation, *, search: str, by: str, limit: int) -> None:
    """List badges with their views.

    It reads all badges. On a stack, that is a scan of the table, which AWS bills.
    """
    _print(*_read(installation, search, By(by), limit))


@click.command(
    epilog=examples("vumi top", "vumi top --by today --limit 50", "vumi top --once --json")
)
@_ordered("--by", By.NOW, 20)
@click.option("--once", is_flag=True, help="Print one table and exit, as without a terminal.")
@as_json
@on_installation
def top(installation: Installation, *, by: str, limit: int, once: bool) -> None:
    """Show the busiest badges, live until Ctrl-C.

    It reads all badges every 2 s, or more seldom if that takes long.
    """
    os.nice(19)  # the lowest priority: visitors come first
    is_live = not once and not wants_json() and sys.stdout.isatty()
    with suppress(KeyboardInterrupt):
        while True:
            began = time.monotonic()
            found, shown = _read(installation, "", By(by), limit)
            if is_live:
                click.clear()
            _print(found, shown)
            if not is_live:
                return
            time.sleep(max(REDRAW_SECONDS, REST_FACTOR * (time.monotonic() - began)))


def _read(
    installation: Installation, search: str, by: By, limit: int
) -> tuple[Totals, list[BadgeOverview]]:
    """Return the sums over the badges with a text in a name, and the first ones by a number.

    Badges with the same number are in order of id. Only `limit` badges are kept in memory.
    """
    found = Totals()
    with progress("reading badges") as line:
        badges = line.count(installation.badges(installation.view_clock()))
        passing = found.passing(one for one in badges if one.has(search))
        order = attrgetter(by)
        return found, nsmallest(limit, passing, lambda one: (-order(one), one.badge_id))


def _print(found: Totals, shown: list[BadgeOverview]) -> None:
    if wants_json():
        for badge in shown:
            print_json(badge.to_json())
        return
    print_table(HEADER, map(_row, shown))
    click.echo(
        f"{len(shown):,} of {plural(found.badges, 'badge')}; {plural(found.total, 'view')}",
        err=True,
    )


def _row(badge: BadgeOverview) -> tuple[Cell, ...]:
    """Return the row of a badge; the name is last, because its width in a terminal is unknown."""
    created = f"{datetime.fromtimestamp(badge.created, UTC):%Y-%m-%d}" if badge.created else "-"
    marks = f"{'owned' if badge.owned else ''}{' frozen' if badge.frozen else ''}".strip()
    return badge.now, badge.today, badge.month, badge.total, created, marks, badge.name


def _parse_days(value: str) -> WholeSeconds:
    found = re.fullmatch("([1-9][0-9]{0,4})d", value)
    if found is None:
        raise ValueError(f"give days like 180d, not {value!r}")
    return int(found[1]) * DAY


@dataclass(slots=True)
class PrunedSums:
    """The sums over badges: the earliest day of a last view, and about how many bytes they have."""

    badges: int = 0
    views: int = 0
    oldest: str | None = None
    bytes: int = 0

    def add(self, badges: Iterable[UnseenBadge]) -> None:
        for badge in badges:
            self.badges += 1
            self.views += badge.shown
            self.oldest = min(self.oldest or badge.seen, badge.seen)
            self.bytes += badge.bytes


@click.command(
    epilog=examples(
        "vumi prune --unseen 180d --below 10 --dry-run",
        "vumi prune --unseen 180d --below 10 --yes",
    )
)
@click.option(
    "--unseen",
    type=Parsed("days", _parse_days),
    required=True,
    help="Days without a view, like 180d, or more.",
)
@click.option(
    "--below", type=click.IntRange(min=1), required=True, help="Shown numbers below this one."
)
@yes
@dry_run
@as_json
@click.pass_obj
def prune(invocation: Invocation, *, unseen: int, below: int, yes: bool, dry_run: bool) -> None:
    """Remove badges that nobody owns and nobody saw.

    It works on one machine. This can't be undone.

    Badges with an owner, a second name, milestones, GitHub's numbers, or views that are not folded
    stay, and so do frozen ones. Visitors do not wait. The server gives free pages of the file back
    to the disk, until a fifth of the file is free for new views.
    """
    with open_installation(invocation.settings, invocation.clock) as installation:
        since = installation.view_clock() - unseen
        job = Pruning(installation.database, installation.views_queue, since, below)
        found, pruned = PrunedSums(), PrunedSums()
        with progress("looking for badges") as line:
            found.add(line.count(job.find()))
        print_objects([asdict(found)])
        if dry_run or not found.badges or not confirm(yes=yes):
            return
        with progress("pruning badges") as line:
            try:
                pruned.add(line.count(job.prune(time.monotonic, time.sleep)))
            finally:
                if pruned.badges:
                    log_change(plural(pruned.badges, "badge"), asdict(pruned))
        text = f"Pruned {plural(pruned.badges, 'badge')}."
        print_result(text, {"pruned": pruned.badges})
