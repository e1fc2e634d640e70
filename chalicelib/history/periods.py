"""The views of a badge today, this week, month or year, and of each of its last days.

A period is one of the calendar, in UTC or at a given offset, and has every view since its start. So
its number never falls until the next one begins, and is never higher than the number of all views.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from chalicelib.badges.options import NumberFormat
from chalicelib.counting import badge_count
from chalicelib.counting.badge_count import Count
from chalicelib.http.fields import Field, enum, string
from chalicelib.http.query import among, shown
from chalicelib.lazy import lazy
from chalicelib.storage.ports import Table
from chalicelib.units import Seconds

if TYPE_CHECKING:
    from chalicelib.history import github, history
else:
    github = lazy("chalicelib.history.github")
    history = lazy("chalicelib.history.history")

LABEL = "views"
UNKNOWN = "no numbers yet"
FRESH_DAYS = 3
"""A badge says how old the newest day of GitHub's numbers is, if it is older."""
OFFSET = re.compile("([+ ]?(0?[0-9]|1[0-4])|-(0?[0-9]|1[0-2]))(:00)?")
"""Hours from UTC, which have a plus sign as it is, encoded, or decoded to a space."""


class Show(StrEnum):
    """The number that a badge shows."""

    TOTAL = "total"
    TODAY = "today"
    WEEK = "week"
    MONTH = "month"
    YEAR = "year"
    TODAY_TOTAL = "today-total"
    VISITORS = "visitors"
    CLONES = "clones"

    @property
    def is_githubs(self) -> bool:
        """Return whether GitHub counts it, and an owner tells it."""
        return self in {Show.VISITORS, Show.CLONES}

    @cached_property
    def label(self) -> str:
        """Return the label of a badge, which says which number it is."""
        match self:
            case Show.TOTAL | Show.TODAY_TOTAL:
                return LABEL
            case Show.TODAY:
                return f"{LABEL} today"
        return str(self) if self.is_githubs else f"{LABEL} this {self}"

    def start(self, moment: datetime) -> datetime:
        """Return the start of the period of a time, in the time's own zone."""
        if self is Show.YEAR:
            return Show.MONTH.start(moment).replace(month=1)
        unit = self.value if self in {Show.WEEK, Show.MONTH} else "day"
        return history.Interval(unit).start(moment)


ALL_VIEWS = TOTAL, TODAY_TOTAL = Show.TOTAL, Show.TODAY_TOTAL


def _zone(given: str) -> timezone:
    if not OFFSET.fullmatch(given):
        raise ValueError(f"give whole hours from UTC, as -5 or 02:00, not {shown(given)}")
    return timezone(timedelta(hours=int(given.partition(":")[0])))


class Period(NamedTuple):
    """The numbers that a badge asks for: one of `Show`, and the views of each of so many `days`."""

    show: Show = Show.TOTAL
    zone: timezone = UTC
    days: int = 0


class PeriodOptions(NumberFormat):
    """The options of a number of views."""

    show = Field(
        lambda given: Show(among([*Show], given)),
        enum(Show, default=Show.TOTAL),
        "All views, or those since the start of this day, week (from Monday), month or year, which"
        " the label names if none is given. A base counts only as a part of all views. `visitors`"
        " are GitHub's unique visitors of the last 14 days that it told, and `clones` all clones.",
        default=Show.TOTAL,
    )
    zone = Field(
        _zone,
        string(OFFSET, default="0"),
        "The hours from UTC at which a day begins, for `show` and `spark`.",
        name="tz",
        default=UTC,
        example="-05:00",
    )

    @cached_property
    def period(self) -> Period:
        return Period(self.show, self.zone)


class BadgeNumbers(NamedTuple):
    """The views of a badge, and those of the wanted period, which began at `start`.

    Of GitHub's numbers, `of_period` has the wanted one, and `told` its newest day, or None.
    """

    total: Count
    of_period: int = 0
    start: datetime | None = None
    days: tuple[int, ...] = ()
    told: date | None = None

    def write_age(self, clock: Callable[[], Seconds]) -> str:
        """Return the end of the label that says how old GitHub's numbers are, if they are old."""
        age = (datetime.fromtimestamp(clock(), UTC).date() - self.told).days if self.told else 0
        return f", {age} days ago" if age > FRESH_DAYS else ""


def read(table: Table, badge_id: str, period: Period, clock: Callable[[], Seconds]) -> BadgeNumbers:
    """Read the numbers of a badge by any of its names. Raises `StorageError`.

    All views need one or two queries; a period or days need another one for the finished days.
    """
    if period.show is TOTAL and not period.days:
        return BadgeNumbers(badge_count.read(table, badge_id))
    if not period.show.is_githubs:
        return history.read_again(lambda: _read_periods(table, badge_id, period, clock()))
    count = badge_count.read(table, badge_id)
    read_number = github.read_visitors if period.show is Show.VISITORS else github.read_clones
    known, newest = read_number(table, count.summary.badge_id)
    return BadgeNumbers(count, known, told=newest)


def _read_periods(table: Table, badge_id: str, period: Period, now: Seconds) -> BadgeNumbers:
    count = badge_count.read(table, badge_id, with_today=True)
    latest = history.find_latest(count, now).astimezone(period.zone)
    today, start = Show.TODAY.start(latest), period.show.start(latest)
    days = [today - timedelta(days=ago) for ago in reversed(range(period.days))]
    by_day = history.count_by_day(table, count, min([start, *days]).astimezone(UTC), latest)
    first = start.astimezone(UTC).date()
    of_period = sum(views for day, views in by_day.items() if day >= first)
    of_days = tuple(by_day[day.astimezone(UTC).date()] for day in days)
    # BadgeNumbers that came between two reads are in the days alone.
    return BadgeNumbers(count, min(of_period, count.views), start, of_days)


def number(views: BadgeNumbers, options: PeriodOptions) -> int | None:
    """Return the number that a badge shows: of two numbers, that of all views.

    It is None if nobody has told GitHub's number.
    """
    if options.show in ALL_VIEWS:
        return options.total(views.total.shown)
    return None if options.show.is_githubs and views.told is None else views.of_period


def write(views: BadgeNumbers, options: PeriodOptions) -> str:
    """Return the message of a badge. A base counts only as a part of all views."""
    shown = number(views, options)
    if shown is None:
        return UNKNOWN
    is_both = options.show is TODAY_TOTAL
    today = f"{options.write(views.of_period)} today · " if is_both else ""
    return today + options.write(shown)
