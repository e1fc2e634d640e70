"""The removal of the views of whole hours, which undoes a burst.

One transaction lowers the count, empties the hours in the summary and in the finished days, and
gives all of them the next version, on the condition that the summary still has the version that was
read before the days. So a reader that took the summary before finds a newer day, and begins again.

    summary   version 7, count 900 ──────────▶ version 8, count 100
    the day   version 5, h14 800   ──────────▶ version 8, no h14

A fold or a count in between changes the version, and the removal begins again. An hour can be
removed after its views are folded: from then on, a late view counts in the hour in which it comes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from chalicelib.counting import keys
from chalicelib.counting.badge_count import first_live
from chalicelib.counting.summary import Day, Summary, read
from chalicelib.counting.view import Windows
from chalicelib.owners.finding import NotFoldedError, OwnedBadge, change_again
from chalicelib.storage.items import Value, number, text
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import ConditionFailedError, Write
from chalicelib.ulids import latest
from chalicelib.units import Milliseconds, Seconds

MAX_DAYS = 90
"""The most days of one removal: a transaction has at most 100 writes."""
HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Hours:
    """Whole hours in UTC, `until` excluded, or none. Raises `ValueError`."""

    first: datetime
    until: datetime

    def __post_init__(self) -> None:
        if self.until < self.first:
            raise ValueError(f"to: {label(self.until)} is before from: give a later hour")
        if self.until - self.first > timedelta(days=MAX_DAYS):
            raise ValueError(f"to: give at most {MAX_DAYS} days at a time")

    def split(self, day: Day) -> tuple[Day, int]:
        """Return a day without these hours, and the number of views that they had."""
        start = datetime.fromisoformat(day.day).replace(tzinfo=UTC)
        kept = {
            hour: views
            for hour, views in day.hours.items()
            if not self.first <= start + hour * HOUR < self.until
        }
        left = replace(day, hours=kept)
        return left, day.views - left.views


def parse_hour(given: str) -> datetime:
    """Return the start of an hour like 2026-11-21T08:00Z. Raises `ValueError`."""
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        moment = None
    if moment is not None and moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    if moment is None or moment.utcoffset() or moment.timestamp() % HOUR.total_seconds():
        raise ValueError(f"give a whole hour in UTC like 2026-11-21T08:00Z, not {given!r}")
    return moment.astimezone(UTC)


def label(hour: datetime) -> str:
    """Format the start of an hour, as a history does."""
    return f"{hour:%Y-%m-%dT%H:00Z}"


def remove(table: Table, owned: OwnedBadge, hours: Hours, windows: Windows, now: Seconds) -> int:
    """Remove the views of hours from the count and the history; return their number.

    Hours without views are left as they are, so a repetition removes nothing. `now` is the time of
    the clock of views. Raises `NotFoldedError`, other `OwnerError`s and `StorageError`.
    """
    foldable = windows.foldable(now) * 1000

    def write(owned: OwnedBadge, summary: Summary) -> int:
        _check_folded(table, owned, summary, hours, foldable)
        today, removed = hours.split(summary.today) if summary.today.day else (summary.today, 0)
        days: list[Write] = []
        for left, views in map(hours.split, _read_days(table, summary, hours)):
            removed += views
            days += [summary.store_day(left)] if views else []
        if removed:
            values: dict[str, Value] = {"count": summary.count - removed, "today": today.item}
            table.write(summary.update(now, values), owned.check, *days)
        elif read(table, summary.badge_id).version != summary.version:
            raise ConditionFailedError({})  # a fold counted views, whose rows were removed then
        return removed

    return change_again(table, owned, write)


def _read_days(table: Table, summary: Summary, hours: Hours) -> Iterator[Day]:
    """Yield the finished days of this life that have these hours."""
    last = min(f"{hours.until:%Y-%m-%d}", summary.today.day)
    items = table.query(
        keys.partition(summary.badge_id),
        first=f"{keys.DAY}{hours.first:%Y-%m-%d}",
        last=keys.DAY + last,
        limit=MAX_DAYS + 2,
    )
    for item in items:
        day = text(item, "SK").removeprefix(keys.DAY)
        if day < summary.today.day and number(item, "reset") == summary.reset:
            yield Day.of(day, item)


def _check_folded(
    table: Table, owned: OwnedBadge, summary: Summary, hours: Hours, foldable: Milliseconds
) -> None:
    """Raise `NotFoldedError` if a view of these hours is not in the count, or may still come."""
    until = round(hours.until.timestamp() * 1000)
    last = keys.VIEW + latest(until - 1)
    names = (summary, *(read(table, name) for name in owned.aliases))
    if until > foldable or any(
        table.count(keys.partition(name.badge_id), first=first_live(name), last=last, limit=1)
        for name in names
        if name.watermark < until - 1
    ):
        raise NotFoldedError(
            f"to: the views before {label(hours.until)} are not all counted yet: give an earlier"
            " hour, or try again in half an hour"
        )
