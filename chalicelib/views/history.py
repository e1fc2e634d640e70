"""The history of a badge: the views of each day or hour, folded and live, up to the present one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Any

from chalicelib.storage.items import number, text
from chalicelib.storage.ports import Table
from chalicelib.views import keys
from chalicelib.views import summary as summaries
from chalicelib.views.counting import MAX_LIVE
from chalicelib.views.summary import HOURS_OF_DAY, Day, Summary
from chalicelib.views.view import earliest, milliseconds


class By(StrEnum):
    """What a history is divided into, in UTC."""

    DAY = "day"
    HOUR = "hour"

    @property
    def most_days(self) -> int:
        """How many days a history may have: 400 items, or 744 buckets."""
        return 400 if self is By.DAY else 31

    def buckets(self, days: int, present: datetime) -> list[datetime]:
        """Where each bucket of so many days begins, the oldest first, the last the present one."""
        amount = days if self is By.DAY else days * HOURS_OF_DAY
        length = timedelta(days=1) if self is By.DAY else timedelta(hours=1)
        last = self.start(present)
        return [last - before * length for before in reversed(range(amount))]

    def start(self, moment: datetime) -> datetime:
        """Where the bucket of a moment begins."""
        hour = 0 if self is By.DAY else moment.hour
        return moment.replace(hour=hour, minute=0, second=0, microsecond=0)

    def label(self, start: datetime) -> str:
        """2026-11-21 or 2026-11-21T08:00Z."""
        return f"{start:%Y-%m-%d}" if self is By.DAY else f"{start:%Y-%m-%dT%H:00Z}"


@dataclass(frozen=True, slots=True)
class Bucket:
    """The views of the day or the hour that begins at `start`."""

    start: datetime
    views: int


@dataclass(frozen=True, slots=True)
class History:
    """The views of `days` days, the oldest bucket first, the present one last, none left out.

    `since` is the first day of all that has a view, which may lie before the first bucket; None
    where there is no view at all.
    """

    by: By
    days: int
    since: date | None
    buckets: tuple[Bucket, ...]

    @property
    def total(self) -> int:
        return sum(bucket.views for bucket in self.buckets)


def read(table: Table, badge_id: str, days: int, now: float, by: By = By.DAY) -> History:
    """Return the history of the last `days` days by any name of the badge.

    `now` is in seconds since 1970. Raises `StorageError`.

    The summary is read first. The days before its `today` are finished, and the views after its
    watermark are in no day that it knows. So the history never has a view twice.
    """
    summary = _summary(table, badge_id)
    live = _live(table, summary)
    # Views may be dated after this clock: others may be ahead of it.
    days_counted = [_start(summary.today)] if summary.today.day else []
    present = max([_moment(now * 1000), *days_counted, *live[-1:]])
    starts = by.buckets(days, present)
    views = _folded(table, summary, starts[0], by)
    views.update(map(by.start, live))
    first = [_first_day(table, summary), *live[:1]]
    since = min([moment.date() for moment in first if moment], default=None)
    return History(by, days, since, tuple(Bucket(start, views[start]) for start in starts))


def to_json(badge_id: str, history: History) -> dict[str, Any]:
    """Return a history as JSON.

    `id` is the id as given, `by` is "day" or "hour", `days` how many days it covers. `since` is the
    first day with a view, or null. `total` is the sum over `views`, which lists every bucket, the
    oldest first: {"day": "2026-11-21", "views": 3}, or by hour {"hour": "2026-11-21T08:00Z",
    "views": 1}. All times are UTC.
    """
    by = history.by
    return {
        "id": badge_id,
        "by": by.value,
        "days": history.days,
        "since": history.since.isoformat() if history.since else None,
        "total": history.total,
        "views": [
            {by.value: by.label(bucket.start), "views": bucket.views} for bucket in history.buckets
        ],
    }


def _moment(milliseconds: float) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _summary(table: Table, badge_id: str) -> Summary:
    """Return the summary of an id, or of the badge that it is another name of."""
    summary = summaries.read(table, badge_id)
    return _summary(table, summary.alias) if summary.alias else summary


def _first_day(table: Table, summary: Summary) -> datetime | None:
    """Return the first day with a counted view."""
    finished = _finished(table, summary, _moment(summary.reset), limit=2)
    days = finished or ([summary.today] if summary.today.views else [])
    return next(map(_start, days), None)


def _folded(table: Table, summary: Summary, first: datetime, by: By) -> Counter[datetime]:
    """Return the counted views of each bucket from a time on."""
    first = max(first, _moment(summary.reset))
    views: Counter[datetime] = Counter()
    for day in [*_finished(table, summary, first, limit=By.DAY.most_days), summary.today]:
        for hour, counted in day.hours.items():
            views[by.start(_start(day).replace(hour=hour))] += counted
    return views


def _finished(table: Table, summary: Summary, first: datetime, limit: int) -> list[Day]:
    """Return the days from a time on that are finished: those before the summary's `today`."""
    since = By.DAY.label(first)
    if since > summary.today.day:
        return []
    items = table.query(
        keys.partition(summary.badge_id),
        first=keys.DAY + since,
        last=keys.DAY + summary.today.day,
        limit=limit,
    )
    own = [item for item in items if number(item, "reset") == summary.reset]
    days = [Day.of(text(item, "SK").removeprefix(keys.DAY), item) for item in own]
    return [day for day in days if day.day < summary.today.day]


def _start(day: Day) -> datetime:
    return datetime.fromisoformat(day.day).replace(tzinfo=UTC)


def _live(table: Table, summary: Summary) -> list[datetime]:
    """Return when each live view was taken, the oldest first."""
    items = table.query(
        keys.partition(summary.badge_id),
        first=keys.VIEW + earliest(summary.watermark + 1),
        last=keys.SUMMARY,
        limit=MAX_LIVE,
        attributes=("SK",),
    )
    views = [text(item, "SK") for item in items if item["SK"] != keys.SUMMARY]
    return [_moment(milliseconds(view.removeprefix(keys.VIEW))) for view in views]
