"""The commands `list`, `top` and `prune`, which read all badges."""

from __future__ import annotations

import os
import re
import select
import shutil
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

import click

from chalicelib.units import Seconds, WholeSeconds
from vumi.cli.options import Invocation, Parsed, confirm, dry_run, examples, on_installation, yes
from vumi.cli.output import (
    Cell,
    as_json,
    format_table,
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
from vumi.operate.admin.overview import top as top_of
from vumi.operate.installations.file import open_installation
from vumi.storage.pruning import Pruning, Unseen, UnseenBadge

Function = TypeVar("Function", bound=Callable[..., Any])

MAX_BADGES = 100_000
"""The most badges in one table, which are kept in memory."""
REDRAW_SECONDS = 2.0
REST_FACTOR = 2.0
"""The rest is at least this many times as long as the reading of all badges took."""
BADGES_BETWEEN_KEYS = 1_000
ENTER, LEAVE = "\x1b[?1049h\x1b[?25l\x1b[?7l", "\x1b[?7h\x1b[?25h\x1b[?1049l"
"""The alternate screen without a cursor and without wrapped lines, and the way back (xterm)."""
HOME, END_OF_LINE, END_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"
QUIT = frozenset("qQ\x03\x04")
SORTS = {"n": By.NOW, "d": By.TODAY, "m": By.MONTH, "t": By.TOTAL}
HELP = "n now · d today · m month · t total · q quit"
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


class QuitError(Exception):
    """The operator has pressed q."""


class Terminal:
    """The screen and the keyboard of a terminal."""

    def draw(self, lines: Sequence[str]) -> None:
        """Replace what the screen shows; lines that do not fit are left out."""
        _, height = shutil.get_terminal_size()
        shown = [*lines[: height - 1], HELP][:height]
        ends = f"{END_OF_LINE}\r\n"
        click.echo(f"{HOME}{ends.join(shown)}{END_OF_LINE}{END_OF_SCREEN}", nl=False)

    def key(self, seconds: Seconds) -> str:
        """Wait for a key and return it, or an empty text. Raises `QuitError` for q."""
        ready, _, _ = select.select([sys.stdin], [], [], seconds)
        key = os.read(sys.stdin.fileno(), 1).decode("latin-1") if ready else ""
        if ready and (not key or key in QUIT):
            raise QuitError
        return key

    def check(self) -> None:
        """Raise `QuitError` if q was pressed while the badges are read."""
        self.key(0)


@contextmanager
def open_terminal() -> Iterator[Terminal]:
    """Switch to the alternate screen and to single keys, and back at the end."""
    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        click.echo(ENTER, nl=False)
        yield Terminal()
    finally:
        click.echo(LEAVE, nl=False)
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


@dataclass(frozen=True, slots=True)
class Frame:
    """The busiest badges, the sums over all badges, and when they were read."""

    badges: list[BadgeOverview]
    totals: Totals
    at: Seconds
    by: By

    def lines(self) -> Iterator[str]:
        """Yield the lines of the frame."""
        sums = self.totals
        at = datetime.fromtimestamp(self.at, UTC)
        yield f"vu-mi  {at:%H:%M:%S} UTC  {plural(sums.badges, 'badge')}, by {self.by}"
        views = f"{sums.now:,} now  {sums.today:,} today  {sums.month:,} this month"
        yield f"views: {views}  {sums.total:,} in total"
        yield ""
        yield from format_table(HEADER, rows(self.badges))


@click.command(
    epilog=examples("vumi top", "vumi top --by today --limit 50", "vumi top --once --json")
)
@ordered("--by", By.NOW, 20)
@click.option("--once", is_flag=True, help="Print one table and exit, as without a terminal.")
@as_json
@on_installation
def top(installation: Installation, *, by: str, limit: int, once: bool) -> None:
    """Show the busiest badges, live until q or Ctrl-C.

    It reads all badges every 2 s, or more seldom if that takes long.
    """
    os.nice(19)  # the lowest priority: visitors come first
    if once or wants_json() or not (sys.stdout.isatty() and sys.stdin.isatty()):
        frame = read(installation, By(by), limit)
        if not print_badges(frame.badges):
            click.echo("\n".join(frame.lines()))
        return
    try:
        with open_terminal() as terminal:
            follow(installation, By(by), limit, terminal)
    except (QuitError, KeyboardInterrupt):
        return


def follow(installation: Installation, by: By, limit: int, terminal: Terminal) -> None:
    """Read and draw until the operator quits."""
    terminal.draw(["vu-mi reads all badges"])
    while True:
        begun = time.monotonic()
        frame = read(installation, by, limit, terminal.check)
        terminal.draw([*frame.lines()])
        rest = max(REDRAW_SECONDS, REST_FACTOR * (time.monotonic() - begun))
        while (key := terminal.key(rest)) in SORTS and SORTS[key] is by:
            pass
        by = SORTS.get(key, by)


def read(
    installation: Installation, by: By, limit: int, check: Callable[[], object] = lambda: None
) -> Frame:
    """Read all badges, and call `check` now and then."""
    now, totals = installation.view_clock(), Totals()

    def passing() -> Iterator[BadgeOverview]:
        for number, badge in enumerate(totals.passing(installation.badges(now))):
            if number % BADGES_BETWEEN_KEYS == 0:
                check()
            yield badge

    return Frame(top_of(passing(), by, limit), totals, now, by)


DAY: WholeSeconds = 86_400


def _parse_days(value: str) -> WholeSeconds:
    """Return the seconds of a number of days."""
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

    @property
    def fields(self) -> dict[str, str | int | None]:
        names = ("badges", "views", "oldest", "bytes")
        return {name: getattr(self, name) for name in names}


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
        job = Pruning(installation.database, installation.views_queue, Unseen(since, below))
        found, pruned = PrunedSums(), PrunedSums()
        with progress("looking for badges") as line:
            found.add(line.count(job.find()))
        print_objects([found.fields])
        if dry_run or not found.badges or not confirm(yes=yes):
            return
        with progress("pruning badges") as line:
            try:
                pruned.add(line.count(job.prune(time.monotonic, time.sleep)))
            finally:
                if pruned.badges:
                    log_change(plural(pruned.badges, "badge"), pruned.fields)
        text = f"Pruned {plural(pruned.badges, 'badge')}."
        print_result(text, {"pruned": pruned.badges})
