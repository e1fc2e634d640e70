"""The history of a badge: its counted and live views by hour, day, week or month in UTC.

A `Span` is the time that a request names. `Span.resolve` chooses its buckets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from chalicelib.counting import keys
from chalicelib.counting import summary as summaries
from chalicelib.counting.badge_count import MAX_LIVE, Count, first_live
from chalicelib.counting.summary import HOURS, HOURS_OF_DAY, Day, Summary
from chalicelib.history import github
from chalicelib.history.github import Days
from chalicelib.http.errors import BadRequestError
from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.items import Item, number, text
from chalicelib.storage.ports import Table
from chalicelib.ulids import earliest, latest, milliseconds
from chalicelib.units import Milliseconds, Seconds

Result = TypeVar("Result")

DAYS = 30
"""The days of a history without an option."""
MAX_BUCKETS = 400
"""The maximum number of days, weeks or months of one history."""
MAX_DAYS_BY_HOUR = 31
MONTHS = 12
LAST_HOUR = time(HOURS_OF_DAY - 1, tzinfo=UTC)
LIVE_PAGE = 100
"""A badge with fewer live views needs one query for them."""
TRIES = 10
"""A try fails if a fold has added views to a finished day after the summary was read."""
FIRST_DAYS = 2
"""The days that one query for the first day with a view reads."""
DAY_ATTRIBUTES = ("SK", "reset", "version", "views")
"""The attributes of a day that a history by day, week or month needs."""


class Interval(StrEnum):
    """The unit of a history, in UTC. Weeks begin on Monday (ISO 8601)."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"

    @property
    def most(self) -> int:
        """Return the maximum number of buckets of one history."""
        return MAX_DAYS_BY_HOUR * HOURS_OF_DAY if self is Interval.HOUR else MAX_BUCKETS

    def start(self, moment: datetime) -> datetime:
        if self is Interval.HOUR:
            return moment.replace(minute=0, second=0, microsecond=0)
        midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
        if self is Interval.MONTH:
            return midnight.replace(day=1)
        return midnight - timedelta(days=midnight.weekday() if self is Interval.WEEK else 0)

    def following(self, start: datetime) -> datetime:
        """Return the start of the bucket after the one that begins at `start`."""
        if self is Interval.MONTH:
            years, month = divmod(start.month, MONTHS)
            return start.replace(year=start.year + years, month=month + 1)
        return start + LENGTHS[self]

    def buckets(self, first: datetime, last: datetime) -> Iterator[datetime]:
        """Yield the start of each bucket from that of `first` to that of `last`."""
        start, length = self.start(first), LENGTHS.get(self)
        while start <= last:
            yield start
            start = start + length if length else self.following(start)

    def label(self, start: datetime) -> str:
        """Format the start of a bucket: 2026-11-21T08:00Z, 2026-11-21 or, of a month, 2026-11."""
        if self is Interval.HOUR:
            return start.isoformat()[: len("2026-11-21T08:00")] + "Z"
        return start.isoformat()[: len("2026-11" if self is Interval.MONTH else "2026-11-21")]


LENGTHS = {
    Interval.HOUR: timedelta(hours=1),
    Interval.DAY: timedelta(days=1),
    Interval.WEEK: timedelta(weeks=1),
}


class NewerDayError(UnavailableError):
    """A day is newer than the summary that was read before it; both must be read again."""


class Bucket(NamedTuple):
    """The views of the unit that begins at `start`; a tuple, because there are many."""

    start: datetime
    views: int


@dataclass(frozen=True, slots=True)
class History:
    """The views of `days` days in consecutive buckets, the oldest first.

    `since` is the first day with a view, which may be before the first bucket; None if there is no
    view. `following` is the first day after the buckets that was requested too, or None. The last
    bucket is not over if it `is_current`. `github` has GitHub's numbers of the same days.
    """

    by: Interval
    days: int
    since: date | None
    buckets: tuple[Bucket, ...]
    following: date | None = None
    is_current: bool = True
    github: Days = field(default_factory=dict)

    @property
    def starts(self) -> list[datetime]:
        return [bucket.start for bucket in self.buckets]

    @property
    def visitors(self) -> tuple[int | None, ...]:
        """Return GitHub's unique visitors in each bucket of a day, None if they are unknown."""
        days = (self.github.get(label, {}) for label in map(Interval.DAY.label, self.starts))
        return tuple(day.get("visitors") for day in days)

    @property
    def total(self) -> int:
        return sum(bucket.views for bucket in self.buckets)

    @property
    def mean(self) -> float:
        return self.total / len(self.buckets)

    @property
    def peak(self) -> Bucket:
        """Return the first bucket with the most views."""
        return max(self.buckets, key=lambda bucket: bucket.views)


@dataclass(frozen=True, slots=True)
class Span:
    """The time of a history: from `first` to `last`, or `days` days up to `last`.

    `last` is None for the present day. `is_whole` begins with the first day that has a view. `by`
    is None for the shortest of day, week and month with which the buckets are not too many.
    """

    days: int = DAYS
    first: date | None = None
    last: date | None = None
    is_whole: bool = False
    by: Interval | None = None

    def resolve(self, current: datetime, since: date | None) -> tuple[History, list[datetime]]:
        """Return the history without its buckets, and the start of each.

        They are whole and have all days of the span, up to the current one. `since` is the first
        day with a view. Raises `BadRequestError` for a span without days.
        """
        last = min(current, datetime.combine(self.last, LAST_HOUR)) if self.last else current
        first = self._first(last, since)
        if first > last:
            raise BadRequestError(
                f"from: {first.date()} is after the last day, {last.date()}: give an earlier from"
            )
        by = self.by or _choose(first, last)
        end = min(current, by.following(by.start(last)) - LENGTHS[Interval.HOUR])
        starts = list(islice(by.buckets(first, end), by.most + 1))
        following = starts.pop().date() if len(starts) > by.most else None
        after = following or end.date() + timedelta(days=1)
        hours = len(starts) if by is Interval.HOUR else 0
        days = -(-hours // HOURS_OF_DAY) or (after - starts[0].date()).days
        return History(by, days, since, (), following, starts[-1] == by.start(current)), starts

    def _first(self, last: datetime, since: date | None) -> datetime:
        if self.is_whole:
            return datetime.combine(min(since or last.date(), last.date()), time(tzinfo=UTC))
        if self.first:
            return datetime.combine(self.first, time(tzinfo=UTC))
        if self.by is Interval.HOUR and not self.last:
            return last - timedelta(hours=self.days * HOURS_OF_DAY - 1)
        return Interval.DAY.start(last) - timedelta(days=self.days - 1)


def _choose(first: datetime, last: datetime) -> Interval:
    """Return the shortest unit, but no hour, with which the buckets are not too many."""
    for by in (Interval.DAY, Interval.WEEK):
        if sum(1 for _ in islice(by.buckets(first, last), by.most + 1)) <= by.most:
            return by
    return Interval.MONTH


def read(
    table: Table, badge_id: str, span: Span, now: Seconds, *, with_github: bool = False
) -> History:
    """Return the history of a span by any name of the badge, without or with GitHub's numbers.

    Raises `StorageError`, and `BadRequestError` for a span without days.

    The summary is read first. The days before its `today` are finished, and no day contains views
    later than its watermark. So the history never has a view twice.
    """
    return read_again(lambda: _read(table, badge_id, span, now, with_github=with_github))


def read_again(read: Callable[[], Result]) -> Result:
    """Call a function again while it finds a day that is newer than its summary.

    So the days that it has read belong to the summary. Raises `StorageError`.
    """
    for _ in range(TRIES - 1):
        with suppress(NewerDayError):
            return read()
    return read()


def _read(table: Table, badge_id: str, span: Span, now: Seconds, *, with_github: bool) -> History:
    summary = summaries.read(table, badge_id)
    if summary.alias:
        summary = summaries.read(table, summary.alias)
    live = _count_live(table, summary, Interval.HOUR if span.by is Interval.HOUR else Interval.DAY)
    # Views may have later times than this clock, because other clocks may be ahead.
    days_counted = [_start_of(summary.today.day)] if summary.today.day else []
    current = max([datetime.fromtimestamp(now, UTC), *days_counted, *live])
    first = [_find_first_day(table, summary, current), *live]
    since = min([moment.date() for moment in first if moment], default=None)
    empty, starts = span.resolve(current, since)
    by = empty.by
    last = by.following(starts[-1]) - LENGTHS[Interval.HOUR]
    views = _count_by_bucket(table, summary, by, starts[0], last)
    for start, number_live in live.items():
        views[by.start(start)] += number_live
    buckets = tuple([Bucket(start, views.get(start, 0)) for start in starts])
    of_days = (summary.badge_id, starts[0].date(), last.date())
    days = github.read_days(table, *of_days) if with_github else {}
    return replace(empty, buckets=buckets, github=days)


def to_json(badge_id: str, history: History) -> dict[str, Any]:
    """Return a history as JSON.

    `id` is the id as given, `by` is the unit, `days` is the number of days. `since` is the first
    day with a view, or null. `next` is the first day of the rest of the history, or null. `total`
    is the sum over `views`, which has every bucket, the oldest first: {"day": "2026-11-21",
    "views": 3}, or by hour {"hour": "2026-11-21T08:00Z", "views": 1}. A week has the day of its
    Monday, a month is 2026-11. All times are UTC. `github` has GitHub's numbers of days.
    """
    by, unit = history.by, history.by.value
    return {
        "id": badge_id,
        "by": unit,
        "days": history.days,
        "since": history.since.isoformat() if history.since else None,
        "next": history.following.isoformat() if history.following else None,
        "total": history.total,
        "views": [
            {unit: by.label(bucket.start), "views": bucket.views} for bucket in history.buckets
        ],
        "github": github.to_json(history.github),
    }


def find_latest(count: Count, now: Seconds) -> datetime:
    """Return the present time, or the time of a later view by the clock of another machine."""
    today = count.summary.today
    hours = [_start_of(today.day).replace(hour=max(today.hours))] if today.views else []
    live = [_to_datetime(milliseconds(ulid)) for ulid in count.newest[:1]]
    return max([datetime.fromtimestamp(now, UTC), *hours, *live])


def count_by_day(table: Table, count: Count, first: datetime, latest: datetime) -> Counter[date]:
    """Return the views of each day up to `latest`, by the date in UTC on which the day begins.

    The days begin at the hour of `first`, which is the start of the first one, in UTC. `count` must
    have the current day of its summary. It was read before the finished days, so no view is missing
    or there twice. Live views that are all of the day of `latest`, in the time zone of `latest`,
    are in its hour. Raises `NewerDayError`, after which `read_again` reads the count again, and
    `StorageError`.
    """
    summary, views = count.summary, Counter[date]()
    for hour, live in _find_live(table, count, latest).items():
        views[(hour.astimezone(UTC) - timedelta(hours=first.hour)).date()] += live
    early = [HOURS[hour] for hour in range(first.hour)]
    until, attributes = latest.astimezone(UTC), (*DAY_ATTRIBUTES, *early)
    finished = _read_finished(table, summary, first, until, attributes=attributes)
    today = (summary.today.day, {"views": summary.today.views, **summary.today.attributes})
    for day, item in [*finished, today] if summary.today.day else []:
        start = date.fromisoformat(day)
        before = sum(number(item, hour) for hour in early)
        views[start] += number(item, "views") - before
        views[start - timedelta(days=1)] += before
    return views


def _find_live(table: Table, count: Count, latest: datetime) -> Counter[datetime]:
    day = latest.replace(hour=0, minute=0, second=0, microsecond=0)
    if _to_datetime(count.summary.watermark) >= day:
        return Counter({Interval.HOUR.start(latest): count.live})
    if count.live == len(count.newest):
        times = (_to_datetime(milliseconds(ulid)) for ulid in count.newest)
        return Counter(map(Interval.HOUR.start, times))
    return _count_live(table, count.summary, Interval.HOUR)


def is_finished(day: Item, summary: Summary) -> bool:
    """Return whether the item of a day is of this life of the badge, and before its `today`."""
    is_earlier = text(day, "SK") < keys.DAY + summary.today.day
    return is_earlier and number(day, "reset") == summary.reset


def _to_datetime(milliseconds: Milliseconds) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _find_first_day(table: Table, summary: Summary, current: datetime) -> datetime | None:
    """Return the first day with a counted view; an owner may have removed those of a day."""
    since = _to_datetime(summary.reset)
    while finished := _read_finished(table, summary, since, current, limit=FIRST_DAYS):
        if first := next((day for day, item in finished if number(item, "views")), ""):
            return _start_of(first)
        since = _start_of(finished[-1][0]) + LENGTHS[Interval.DAY]
    return _start_of(summary.today.day) if summary.today.views else None


def _count_by_bucket(
    table: Table, summary: Summary, by: Interval, first: datetime, last: datetime
) -> Counter[datetime]:
    attributes = () if by is Interval.HOUR else DAY_ATTRIBUTES
    first, today = max(first, _to_datetime(summary.reset)), summary.today
    days = _read_finished(table, summary, first, last, attributes=attributes)
    views: Counter[datetime] = Counter()
    for day, item in [*days, (today.day, {"views": today.views, **today.attributes})]:
        start = _start_of(day) if day else first
        if by is not Interval.HOUR:
            views[by.start(start)] += number(item, "views")
            continue
        for hour, counted in Day.of(day, item).hours.items():
            views[start.replace(hour=hour)] += counted
    return views


def _read_finished(  # noqa: PLR0913  the parts of a query
    table: Table,
    summary: Summary,
    first: datetime,
    last: datetime,
    *,
    limit: int = 0,
    attributes: Sequence[str] = (),
) -> list[tuple[str, Item]]:
    """Return the finished days from `first` to `last`: those before the summary's `today`."""
    since, until, today = Interval.DAY.label(first), Interval.DAY.label(last), summary.today.day
    if since > until or since >= today:
        return []
    items = table.query(
        keys.partition(summary.badge_id),
        first=keys.DAY + since,
        last=keys.DAY + min(until, today),
        limit=limit or (last - first).days + 2,
        attributes=attributes,
    )
    own = [item for item in items if is_finished(item, summary)]
    if any(number(item, "version") > summary.version for item in own):
        raise NewerDayError(f"the history of {summary.badge_id} was changed by a fold; try again")
    return [(text(item, "SK").removeprefix(keys.DAY), item) for item in own]


def _start_of(day: str) -> datetime:
    return datetime.fromisoformat(day).replace(tzinfo=UTC)


def _count_live(table: Table, summary: Summary, by: Interval) -> Counter[datetime]:
    """Return the number of live views in each bucket; of many views, without reading each."""
    partition, first = keys.partition(summary.badge_id), first_live(summary)
    live: Counter[datetime] = Counter()
    while (rest := MAX_LIVE - live.total()) > 0:
        page = table.query(
            partition, first=first, last=keys.SUMMARY, limit=LIVE_PAGE, attributes=("SK",)
        )
        ulids = [text(item, "SK").removeprefix(keys.VIEW) for item in page]
        times = [_to_datetime(milliseconds(ulid)) for ulid in ulids if ulid != keys.SUMMARY]
        starts = [by.start(time) for time in times]
        if len(page) < LIVE_PAGE:
            return live + Counter(starts)
        after = round(by.following(starts[0]).timestamp() * 1000)
        last = keys.VIEW + latest(after - 1)
        live[starts[0]] = table.count(partition, first=first, last=last, limit=rest)
        first = keys.VIEW + earliest(after)
    return live
