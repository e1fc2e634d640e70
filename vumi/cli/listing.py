"""The commands `list` and `top`: the badges with their views, once, or live in a terminal."""

from __future__ import annotations

import os
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

from chalicelib.units import Seconds
from vumi import priority
from vumi.cli.options import examples, on_installation
from vumi.cli.output import Cell, as_json, format_table, print_json, print_table, wants_json
from vumi.cli.progress import progress
from vumi.errors import plural
from vumi.operate.admin.installation import Installation
from vumi.operate.admin.overview import BadgeOverview, By, Totals
from vumi.operate.admin.overview import top as top_of

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
    priority.lower()
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
