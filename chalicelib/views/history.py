"""The history of a badge: the views of each day or hour, folded and live, up to the present one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Any

from chalicelib.ports import Item, Table, number, text
from chalicelib.views import keys
from chalicelib.views.counting import MAX_ITEMS
from chalicelib.views.view import earliest, taken_at

HOURS_OF_DAY = 24


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


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the views of a badge lie, and when its owner let the count begin anew.

    `reset` is in milliseconds since 1970, 0 for never.
    """

    partition: str
    reset: int

    @classmethod
    def of(cls, table: Table, badge_id: str) -> Origin:
        """Those of an id, or of the badge that it is another name of."""
        user = table.get(keys.user(badge_id)) or {}
        if alias := text(user, "alias"):
            badge_id, user = alias, table.get(keys.user(alias)) or {}
        return cls(keys.partition(badge_id), number(user, "reset"))


def read(table: Table, badge_id: str, days: int, now: float, by: By = By.DAY) -> History:
    """The history of the last `days` days, whichever of the badge's names is given.

    `now` is in seconds since 1970. Raises `StorageError`.

    The days are read before the live views: views folded in between are in neither, and the sum is
    too low for a moment. The other way round they would be in both, and a history must never say
    more than there is.
    """
    origin = Origin.of(table, badge_id)
    # A clock set back behind the reset: views are then dated at the reset (`View.taken`).
    present = max(_moment(now * 1000), _moment(origin.reset))
    starts = by.buckets(days, present)
    first_day = _first_day(table, origin, present)
    views = _folded(table, origin, starts[0], present, by)
    live = _live(table, origin)
    views.update(map(by.start, live))
    since = min([moment.date() for moment in (first_day, *live[:1]) if moment], default=None)
    return History(by, days, since, tuple(Bucket(start, views[start]) for start in starts))


def document(badge_id: str, history: History) -> dict[str, Any]:
    """A history as JSON.

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


def _day_key(moment: datetime) -> str:
    return keys.DAY + By.DAY.label(moment)


def _first_day(table: Table, origin: Origin, present: datetime) -> datetime | None:
    """The first day with a folded view: the first item, or the second behind one that was reset."""
    items = _days(table, origin, _moment(origin.reset), present, limit=2)
    return next((_start(item) for item in items if number(item, "views") > 0), None)


def _folded(
    table: Table, origin: Origin, first: datetime, present: datetime, by: By
) -> Counter[datetime]:
    """The folded views of each bucket; those of the day of the reset begin anew in its item."""
    views: Counter[datetime] = Counter()
    first = max(first, _moment(origin.reset))
    for item in _days(table, origin, first, present, limit=By.DAY.most_days):
        day = _start(item)
        if by is By.DAY:
            views[day] = number(item, "views")
        else:
            views.update(
                {day.replace(hour=h): number(item, f"h{h:02}") for h in range(HOURS_OF_DAY)}
            )
    return views


def _days(
    table: Table, origin: Origin, first: datetime, last: datetime, limit: int
) -> Sequence[Item]:
    return table.query(origin.partition, first=_day_key(first), last=_day_key(last), limit=limit)


def _start(item: Item) -> datetime:
    day = text(item, "SK").removeprefix(keys.DAY)
    return datetime.fromisoformat(day).replace(tzinfo=UTC)


def _live(table: Table, origin: Origin) -> list[datetime]:
    """When each live view was taken that counts, the oldest first."""
    first = keys.VIEW + earliest(origin.reset)
    items = table.query(origin.partition, first=first, limit=MAX_ITEMS, attributes=("SK",))
    return [taken_at(text(item, "SK").removeprefix(keys.VIEW)) for item in items]
