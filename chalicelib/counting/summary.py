"""The summary of a badge: its count, its watermark, and its owner's settings.

Every write of a summary increments its `version`, on the condition that the version is the one that
was read. So in every order of folds, counts and owners' requests, a write succeeds only if the
summary has not changed since the read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import NamedTuple

from chalicelib.counting import keys
from chalicelib.storage.conditions import attr, unchanged
from chalicelib.storage.items import Item, Value, number, text
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Check, Put, Update
from chalicelib.units import Milliseconds, Seconds, WholeSeconds

HOURS_OF_DAY = 24
HOURS = {hour: f"h{hour:02}" for hour in range(HOURS_OF_DAY)}
"""The attributes of a day that have the views of each hour."""
HOUR_OF = {name: hour for hour, name in HOURS.items()}


class Hour(NamedTuple):
    """One hour in UTC: a day, written yyyy-mm-dd, and 0 to 23."""

    day: str
    hour: int


def hour_of(milliseconds: Milliseconds) -> Hour:
    """Return the hour of a time."""
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return Hour(moment.date().isoformat(), moment.hour)


@dataclass(frozen=True, slots=True)
class Day:
    """The views of one day (UTC) by hour; `day` is written yyyy-mm-dd, empty for no day yet."""

    day: str = ""
    hours: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, day: str, attributes: Mapping[str, Value]) -> Day:
        """Decode a day from the attributes `h00` to `h23`."""
        hours = {HOUR_OF[name]: number(attributes, name) for name in attributes if name in HOUR_OF}
        return cls(day, {hour: views for hour, views in hours.items() if views})

    @property
    def views(self) -> int:
        return sum(self.hours.values())

    @property
    def attributes(self) -> dict[str, Value]:
        return {HOURS[hour]: views for hour, views in sorted(self.hours.items())}

    @property
    def item(self) -> dict[str, Value]:
        """Return the day as an attribute of a summary."""
        return {"day": self.day, **self.attributes}

    def plus(self, counted: Mapping[Hour, int]) -> Day:
        """Return the day with more views; those of another day count in its first hour."""
        hours = Counter(self.hours)
        for (day, hour), views in counted.items():
            hours[hour if day == self.day else 0] += views
        return replace(self, hours=hours)


NO_DAY = Day()


class Summary(NamedTuple):
    """The summary of a badge.

    Views up to the watermark are in `count`, views up to `reset` belong to an earlier life of the
    id. `today` is the day of the latest counted view. `base` is the number that the owner adds to
    the count. `milestone` is the lowest of the badge's milestones that is not reached yet, or 0.
    `hot` is the time until which new views are counted at once. `alias` is the id of the badge, if
    this id is another name of it. `deleted` is the digest of the secret that deleted the badge.
    """

    badge_id: str
    count: int = 0  # type: ignore[assignment]  # in place of the method of tuples
    watermark: Milliseconds = 0
    today: Day = NO_DAY
    version: int = 0
    base: int = 0
    reset: Milliseconds = 0
    frozen: bool = False
    hot: WholeSeconds = 0
    milestone: int = 0
    alias: str = ""
    deleted: str = ""

    @classmethod
    def of(cls, badge_id: str, item: Mapping[str, Value]) -> Summary:
        """Decode a summary from an item; an empty item is a new summary.

        Raises `TypeError` if an attribute has another type.
        """
        today = item.get("today", {})
        if not isinstance(today, dict):
            raise TypeError(f"today is {today!r}, expected a map")
        return cls(
            badge_id=badge_id,
            count=number(item, "count"),
            watermark=number(item, "watermark"),
            today=Day.of(text(today, "day"), today),
            version=number(item, "version"),
            base=number(item, "base"),
            reset=number(item, "reset"),
            frozen=number(item, "frozen") == 1,
            hot=number(item, "hot"),
            milestone=number(item, "milestone"),
            alias=text(item, "alias"),
            deleted=text(item, "deleted"),
        )

    @property
    def unchanged(self) -> Check:
        """Return the check that the summary has not been written since it was read."""
        return Check(keys.summary(self.badge_id), unchanged("version", self.version))

    def update(
        self, now: Seconds, values: Mapping[str, Value], remove: tuple[str, ...] = ()
    ) -> Update:
        """Return the write that changes the summary, unless it has changed since it was read.

        A summary with a `ttl` is the tombstone of a deleted badge; other changes remove the `ttl`.
        """
        tombstone = () if "ttl" in values else ("ttl",)
        return Update(
            keys.summary(self.badge_id),
            values={**values, "version": self.version + 1},
            defaults={"created": int(now)},
            remove=(*tombstone, *remove),
            condition=self.unchanged.condition,
        )

    def add_views(self, now: Seconds, views: Mapping[Hour, int], **more: Value) -> Update:
        """Return the write that adds views to the count and the history; `more` are attributes.

        All views are of one day, and are counted on `today` or on a new day. Those of an earlier
        day, by a clock that is behind, count on `today`.
        """
        today = self.day_with(views).plus(views)
        return self.update(now, {"count": self._count_with(views), "today": today.item, **more})

    def add_views_to(
        self, finished: Day, now: Seconds, views: Mapping[Hour, int], **more: Value
    ) -> tuple[Update, Put]:
        """Return the writes that add views to the count and to a finished day, together.

        The day must have been read after the summary. It gets the next version of the summary.
        """
        counted = self.update(now, {"count": self._count_with(views), **more})
        return counted, self.store_day(finished.plus(views))

    def store_day(self, finished: Day) -> Put:
        """Return the write of a finished day that changes together with the summary."""
        return Put(self._item(finished, self.version + 1))

    def day_with(self, views: Mapping[Hour, int]) -> Day:
        """Return the `today` of the summary after adding views: the same day, or a new one."""
        latest = max(hour.day for hour in views)
        return self.today if latest <= self.today.day else Day(latest)

    def finished_day(self, views: Mapping[Hour, int]) -> Put | None:
        """Return the write that stores `today` if these views enter a new day.

        It must come before the summary's write, so that no day is missing. Its condition keeps a
        day that a later version of the summary has stored. A day whose views an owner has removed
        is stored too, because an earlier version of it may be there with them.
        """
        if self.today.day in {"", self.day_with(views).day}:
            return None
        earlier = attr("version").missing() | (attr("version") <= self.version)
        return Put(self._item(self.today, self.version), condition=earlier)

    def _count_with(self, views: Mapping[Hour, int]) -> int:
        return self.count + sum(views.values())

    def _item(self, day: Day, version: int) -> Item:
        numbers: Item = {"views": day.views, "version": version, "reset": self.reset}
        return keys.day(self.badge_id, day.day).item(**numbers, **day.attributes)


def read(table: Table, badge_id: str) -> Summary:
    """Read the summary of an id. Raises `StorageError`."""
    return Summary.of(badge_id, table.get(keys.summary(badge_id)) or {})


def read_day(table: Table, summary: Summary, day: str) -> Day:
    """Read a finished day of the badge's present life. Raises `StorageError`."""
    item = table.get(keys.day(summary.badge_id, day)) or {}
    return Day.of(day, item if number(item, "reset") == summary.reset else {})
