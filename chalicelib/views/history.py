"""The history of a badge: its counted and live views by day or hour, up to the current one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from chalicelib.storage.items import Item, number, text
from chalicelib.storage.ports import Table
from chalicelib.units import Milliseconds, Seconds
from chalicelib.views import keys
from chalicelib.views import summary as summaries
from chalicelib.views.counting import MAX_LIVE, Count, first_live
from chalicelib.views.summary import HOURS_OF_DAY, Day, Summary
from chalicelib.views.view import earliest, latest, milliseconds

LIVE_PAGE = 100
"""A badge with fewer live views needs one query for them."""


class By(StrEnum):
    """The unit of a history, in UTC."""

    DAY = "day"
    HOUR = "hour"

    @property
    def most_days(self) -> int:
        """Return the maximum number of days of a history: 400 items, or 744 buckets."""
        return 400 if self is By.DAY else 31

    @property
    def length(self) -> timedelta:
        """Return the length of a bucket."""
        return timedelta(days=1) if self is By.DAY else timedelta(hours=1)

    def buckets(self, days: int, current: datetime) -> list[datetime]:
        """Return the start of each bucket, the oldest first, up to the current one."""
        amount = days if self is By.DAY else days * HOURS_OF_DAY
        last, length = self.start(current), self.length
        return [last - before * length for before in reversed(range(amount))]

    def start(self, moment: datetime) -> datetime:
        """Return the start of the bucket of a time."""
        hour = 0 if self is By.DAY else moment.hour
        return moment.replace(hour=hour, minute=0, second=0, microsecond=0)

    def label(self, start: datetime) -> str:
        """Format the start of a bucket: 2026-11-21 or 2026-11-21T08:00Z."""
        day = start.date().isoformat()
        return day if self is By.DAY else f"{day}T{start.hour:02}:00Z"


class Bucket(NamedTuple):
    """The views of the day or the hour that begins at `start`; a tuple, because there are many."""

    start: datetime
    views: int


@dataclass(frozen=True, slots=True)
class History:
    """The views of `days` days in consecutive buckets, the oldest first, the current one last.

    `since` is the first day with a view, which may be before the first bucket; None if there is no
    view.
    """

    by: By
    days: int
    since: date | None
    buckets: tuple[Bucket, ...]

    @property
    def total(self) -> int:
        return sum(bucket.views for bucket in self.buckets)


def read(table: Table, badge_id: str, days: int, now: Seconds, by: By = By.DAY) -> History:
    """Return the history of the last `days` days by any name of the badge.

    Raises `StorageError`.

    The summary is read first. The days before its `today` are finished, and no day contains views
    later than its watermark. So the history never has a view twice.
    """
    summary = _read_summary(table, badge_id)
    live = _count_live(table, summary, by)
    # Views may have later times than this clock, because other clocks may be ahead.
    days_counted = [_start_of(summary.today)] if summary.today.day else []
    current = max([datetime.fromtimestamp(now, UTC), *days_counted, *live])
    starts = by.buckets(days, current)
    views = _count_by_bucket(table, summary, starts[0], by) + live
    first = [_find_first_day(table, summary), *live]
    since = min([moment.date() for moment in first if moment], default=None)
    return History(by, days, since, tuple(Bucket(start, views[start]) for start in starts))


def to_json(badge_id: str, history: History) -> dict[str, Any]:
    """Return a history as JSON.

    `id` is the id as given, `by` is "day" or "hour", `days` is the number of days. `since` is the
    first day with a view, or null. `total` is the sum over `views`, which has every bucket, the
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


def find_latest(count: Count, now: Seconds) -> datetime:
    """Return the present time, or the time of a later view by the clock of another machine."""
    today = count.summary.today
    hours = [_start_of(today).replace(hour=max(today.hours))] if today.views else []
    live = [_to_datetime(milliseconds(ulid)) for ulid in count.newest[:1]]
    return max([datetime.fromtimestamp(now, UTC), *hours, *live])


def count_by_hour(
    table: Table, count: Count, first: datetime, latest: datetime
) -> Counter[datetime]:
    """Return the views of each hour since a day's start at `first`, up to `latest`.

    `count` must have the current day of its summary. It was read before the finished days, so no
    view is missing or there twice. Live views that are all of the day of `latest`, in the time zone
    of `latest`, are in its hour. Raises `StorageError`.
    """
    counted = _count_by_bucket(table, count.summary, first.astimezone(UTC), By.HOUR)
    live = _find_live(table, count, latest)
    return Counter({hour: views for hour, views in (counted + live).items() if hour >= first})


def _find_live(table: Table, count: Count, latest: datetime) -> Counter[datetime]:
    day = latest.replace(hour=0, minute=0, second=0, microsecond=0)
    if _to_datetime(count.summary.watermark) >= day:
        return Counter({By.HOUR.start(latest): count.live})
    if count.live == len(count.newest):
        return Counter(By.HOUR.start(_to_datetime(milliseconds(ulid))) for ulid in count.newest)
    return _count_live(table, count.summary, By.HOUR)


def is_finished(day: Item, summary: Summary) -> bool:
    """Return whether the item of a day is of this life of the badge, and before its `today`."""
    is_earlier = text(day, "SK") < keys.DAY + summary.today.day
    return is_earlier and number(day, "reset") == summary.reset


def _to_datetime(milliseconds: Milliseconds) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _read_summary(table: Table, badge_id: str) -> Summary:
    """Return the summary of an id, or of the badge that the id is an alias of."""
    summary = summaries.read(table, badge_id)
    return _read_summary(table, summary.alias) if summary.alias else summary


def _find_first_day(table: Table, summary: Summary) -> datetime | None:
    """Return the first day with a counted view."""
    finished = _read_finished(table, summary, _to_datetime(summary.reset), limit=2)
    days = finished or ([summary.today] if summary.today.views else [])
    return next(map(_start_of, days), None)


def _count_by_bucket(table: Table, summary: Summary, first: datetime, by: By) -> Counter[datetime]:
    """Return the number of counted views in each bucket, starting at a time."""
    first = max(first, _to_datetime(summary.reset))
    views: Counter[datetime] = Counter()
    for day in [*_read_finished(table, summary, first, limit=By.DAY.most_days), summary.today]:
        for hour, counted in day.hours.items():
            views[by.start(_start_of(day).replace(hour=hour))] += counted
    return views


def _read_finished(table: Table, summary: Summary, first: datetime, limit: int) -> list[Day]:
    """Return the finished days since a time, which are those before the summary's `today`."""
    since = By.DAY.label(first)
    if since >= summary.today.day:
        return []
    items = table.query(
        keys.partition(summary.badge_id),
        first=keys.DAY + since,
        last=keys.DAY + summary.today.day,
        limit=limit,
    )
    own = [item for item in items if is_finished(item, summary)]
    return [Day.of(text(item, "SK").removeprefix(keys.DAY), item) for item in own]


def _start_of(day: Day) -> datetime:
    return datetime.fromisoformat(day.day).replace(tzinfo=UTC)


def _count_live(table: Table, summary: Summary, by: By) -> Counter[datetime]:
    """Return the number of live views in each bucket; of many views, without reading each."""
    partition = keys.partition(summary.badge_id)
    first = first_live(summary)
    live: Counter[datetime] = Counter()
    while (rest := MAX_LIVE - live.total()) > 0:
        page = table.query(
            partition, first=first, last=keys.SUMMARY, limit=LIVE_PAGE, attributes=("SK",)
        )
        starts = [by.start(_time_of(item)) for item in page if item["SK"] != keys.SUMMARY]
        if len(page) < LIVE_PAGE:
            return live + Counter(starts)
        after = round((starts[0] + by.length).timestamp() * 1000)
        last = keys.VIEW + latest(after - 1)
        live[starts[0]] = table.count(partition, first=first, last=last, limit=rest)
        first = keys.VIEW + earliest(after)
    return live


def _time_of(view: Item) -> datetime:
    return _to_datetime(milliseconds(text(view, "SK").removeprefix(keys.VIEW)))
