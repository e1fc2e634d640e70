"""The buckets of a history: consecutive hours, days, weeks or months in UTC.

A `Span` is the time that a request names. `Span.resolve` chooses its buckets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from itertools import islice

from chalicelib.counting.summary import HOURS_OF_DAY
from chalicelib.http.errors import BadRequestError

DAYS = 30
"""The days of a history without an option."""
MAX_BUCKETS = 400
"""The maximum number of days, weeks or months of one history."""
MAX_DAYS_BY_HOUR = 31
MONTHS = 12
LAST_HOUR = time(HOURS_OF_DAY - 1, tzinfo=UTC)


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


@dataclass(frozen=True, slots=True)
class Buckets:
    """The buckets of a history: the start of each, the oldest first.

    `days` is the number of their days. `following` is the first day after them that was requested
    too, or None. `is_current` is True if the last one is not over.
    """

    by: Interval
    starts: tuple[datetime, ...]
    days: int
    following: date | None
    is_current: bool


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

    def resolve(self, current: datetime, since: date | None) -> Buckets:
        """Return whole buckets that have all days of the span, up to the current bucket.

        `since` is the first day with a view. Raises `BadRequestError` for a span without days.
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
        is_current = starts[-1] == by.start(current)
        hours = len(starts) if by is Interval.HOUR else 0
        days = -(-hours // HOURS_OF_DAY) or (after - starts[0].date()).days
        return Buckets(by, tuple(starts), days, following, is_current)

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
