"""The history of a badge: its counted and live views by hour, day, week or month."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple, TypeVar

from chalicelib.counting import keys
from chalicelib.counting import summary as summaries
from chalicelib.counting.badge_count import MAX_LIVE, Count, first_live
from chalicelib.counting.summary import HOURS, Day, Summary
from chalicelib.history import github
from chalicelib.history.buckets import LENGTHS, Interval, Span
from chalicelib.history.github import Days
from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.items import Item, number, text
from chalicelib.storage.ports import Table
from chalicelib.ulids import earliest, latest, milliseconds
from chalicelib.units import Milliseconds, Seconds

Result = TypeVar("Result")

LIVE_PAGE = 100
"""A badge with fewer live views needs one query for them."""
TRIES = 10
"""A try fails if a fold has added views to a finished day after the summary was read."""
FIRST_DAYS = 2
"""The days that one query for the first day with a view reads."""
DAY_ATTRIBUTES = ("SK", "reset", "version", "views")
"""The attributes of a day that a history by day, week or month needs."""


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
    def visitors(self) -> tuple[int | None, ...]:
        """Return GitHub's unique visitors in each bucket of a day, None if they are unknown."""
        labels = (Interval.DAY.label(bucket.start) for bucket in self.buckets)
        days = (self.github.get(label, {}) for label in labels)
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
    summary = _read_summary(table, badge_id)
    live = _count_live(table, summary, Interval.HOUR if span.by is Interval.HOUR else Interval.DAY)
    # Views may have later times than this clock, because other clocks may be ahead.
    days_counted = [_start_of(summary.today.day)] if summary.today.day else []
    current = max([datetime.fromtimestamp(now, UTC), *days_counted, *live])
    first = [_find_first_day(table, summary, current), *live]
    since = min([moment.date() for moment in first if moment], default=None)
    chosen = span.resolve(current, since)
    last = chosen.by.following(chosen.starts[-1]) - LENGTHS[Interval.HOUR]
    views = _count_by_bucket(table, summary, chosen.by, chosen.starts[0], last)
    for start, number_live in live.items():
        views[chosen.by.start(start)] += number_live
    buckets = tuple(Bucket(start, views[start]) for start in chosen.starts)
    of_days = (summary.badge_id, chosen.starts[0].date(), last.date())
    days = github.read_days(table, *of_days) if with_github else {}
    return History(
        chosen.by, chosen.days, since, buckets, chosen.following, chosen.is_current, days
    )


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


def _read_summary(table: Table, badge_id: str) -> Summary:
    """Return the summary of an id, or of the badge that the id is an alias of."""
    summary = summaries.read(table, badge_id)
    return _read_summary(table, summary.alias) if summary.alias else summary


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
        for start, counted in _split(day, item, by) if day else ():
            views[start] += counted
    return views


def _split(day: str, item: Item, by: Interval) -> Iterator[tuple[datetime, int]]:
    start = _start_of(day)
    if by is Interval.HOUR:
        for hour, views in Day.of(day, item).hours.items():
            yield start.replace(hour=hour), views
    else:
        yield by.start(start), number(item, "views")


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
    partition = keys.partition(summary.badge_id)
    first = first_live(summary)
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
