"""The overview of all badges: their views in total, this month, today and now, as a stream.

Each badge shows the number that its visitors see: base + count + live views.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from itertools import groupby
from operator import add
from typing import Any

from chalicelib.counting import keys
from chalicelib.counting.badge_count import MAX_LIVE, Count, first_live
from chalicelib.counting.summary import HOURS, HOURS_OF_DAY, Hour, Summary, hour_of
from chalicelib.history.history import is_finished
from chalicelib.owners.finding import OwnedBadge
from chalicelib.storage.items import Item, number, text
from chalicelib.ulids import earliest, milliseconds
from chalicelib.units import Milliseconds, Seconds, WholeSeconds, to_iso8601, to_milliseconds
from vumi.storage.badges import BadgeItems, Read, count_seen, read_badges

NOW_SECONDS: WholeSeconds = 300
"""The views of this time until now are those of "now"."""
DAYS = 30
"""The days of an overview, up to today."""
BURST_VIEWS = 1_000
BURST_FACTOR = 20
"""An hour with more views, and more than so many times the mean hour of the days, is a burst."""
HOUR_MS: Milliseconds = 3_600_000


class By(StrEnum):
    """The number by which badges are sorted, the highest first."""

    NOW = "now"
    TODAY = "today"
    MONTH = "month"
    TOTAL = "total"


@dataclass(frozen=True, slots=True)
class BadgeOverview:
    """The numbers of one badge; `names` has all its names, the current one last.

    `total` is the number that the badge shows. `month`, `today` and `days`, the latest 30 days with
    the oldest first, are in UTC. `hour` has the views of the last full hour. `created` is 0 if no
    view is counted yet.
    """

    badge_id: str
    names: tuple[str, ...]
    total: int
    month: int
    today: int
    now: int
    frozen: bool = False
    owned: bool = False
    created: WholeSeconds = 0
    days: tuple[int, ...] = (0,) * DAYS
    hour: int = 0

    @property
    def mean_hour(self) -> float:
        """Return the mean views of an hour of the 30 days."""
        return sum(self.days) / (DAYS * HOURS_OF_DAY)

    @property
    def is_burst(self) -> bool:
        """Return whether the last full hour is far above the badge's own month."""
        return self.hour > BURST_VIEWS and self.hour > BURST_FACTOR * self.mean_hour

    @property
    def name(self) -> str:
        """Return the current name."""
        return self.names[-1]

    def has(self, searched: str) -> bool:
        """Return whether a name contains a text, in any case."""
        return any(searched.casefold() in name.casefold() for name in self.names)

    def to_json(self) -> dict[str, Any]:
        """Return the badge as JSON; `created` is missing if it is not known."""
        document: dict[str, Any] = {
            "id": self.badge_id,
            "name": self.name,
            "names": list(self.names),
            "total": self.total,
            "month": self.month,
            "today": self.today,
            "now": self.now,
            "frozen": self.frozen,
            "owned": self.owned,
            "days": [*self.days],
            "last_hour": self.hour,
            "mean_hour": round(self.mean_hour, 2),
            "burst": self.is_burst,
        }
        return document | ({"created": to_iso8601(self.created * 1000)} if self.created else {})


@dataclass(frozen=True, slots=True)
class Periods:
    """The days up to today, written as in keys, the last full hour, and the beginning of "now"."""

    days: tuple[str, ...]
    hour: Hour
    hour_began: Milliseconds
    since: Milliseconds

    @classmethod
    def of(cls, now: Seconds) -> Periods:
        """Return the periods of a time."""
        at = to_milliseconds(now)
        began = at - at % HOUR_MS - HOUR_MS
        today = date.fromisoformat(hour_of(at).day)
        days = tuple(f"{today - timedelta(days=ago)}" for ago in reversed(range(DAYS)))
        return cls(days, hour_of(began), began, at - NOW_SECONDS * 1000)

    @property
    def today(self) -> str:
        return self.days[-1]

    @property
    def month(self) -> str:
        """Return the first day of the month."""
        return f"{self.today[:7]}-01"


def summarise(
    badges: Iterable[BadgeItems], seen: Mapping[str, int], periods: Periods
) -> Iterator[BadgeOverview]:
    """Yield the numbers of badges; `seen` has the latest views that were counted at once, by id.

    An alias is a name of its badge, not a badge of its own. A deleted badge without new views is
    left out.
    """
    for items in badges:
        summary = Summary.of(items.badge_id, items.summary)
        if summary.alias:
            continue
        overview = _summarise(summary, items, seen, periods)
        if overview.total or not summary.deleted:
            yield overview


@dataclass(slots=True)
class Totals:
    """The sums over the badges that passed, and their number."""

    badges: int = 0
    total: int = 0
    month: int = 0
    today: int = 0
    now: int = 0
    days: tuple[int, ...] = (0,) * DAYS

    def passing(self, badges: Iterable[BadgeOverview]) -> Iterator[BadgeOverview]:
        """Pass badges on and add their numbers."""
        for badge in badges:
            self.badges += 1
            self.total += badge.total
            self.month += badge.month
            self.today += badge.today
            self.now += badge.now
            if any(badge.days):
                self.days = tuple(map(add, self.days, badge.days))
            yield badge


def of_file(read: Read, now: Seconds) -> Iterator[BadgeOverview]:
    """Yield the numbers of all badges of a file, by id; `read` returns the rows of a query."""
    periods = Periods.of(now)
    seen = count_seen(read, periods.since)
    first_day = min(periods.month, periods.days[0])  # on the 31st the month is longer
    badges = read_badges(read, first_day, HOURS[periods.hour.hour])
    return summarise(badges, seen, periods)


def of_items(items: Iterable[Item], now: Seconds) -> Iterator[BadgeOverview]:
    """Yield the numbers of all badges among the items of a table, as a scan returns them.

    Items of a partition are together. The views that are counted at once are in partitions of their
    own, so hot badges come last.
    """
    periods = Periods.of(now)
    seen: Counter[str] = Counter()
    hot = []
    for badge in group(_count_seen(items, seen, periods)):
        if number(badge.summary, "hot") > now - NOW_SECONDS:
            hot.append(badge)
        else:
            yield from summarise([badge], {}, periods)
    yield from summarise(hot, seen, periods)


def _count_seen(items: Iterable[Item], seen: Counter[str], periods: Periods) -> Iterator[Item]:
    """Pass items on, and count the latest views that were counted at once."""
    first = f"{keys.SEEN}#{earliest(periods.since)}"
    for item in items:
        if item["SK"] == keys.SEEN and text(item, "PK") >= first:
            seen[text(item, "badge")] += 1
        yield item


def group(items: Iterable[Item]) -> Iterator[BadgeItems]:
    """Yield the badges among the items of a table, in which those of a partition are together."""
    badges = (item for item in items if text(item, "PK").startswith(keys.PARTITION))
    for partition, of_badge in groupby(badges, key=lambda item: text(item, "PK")):
        singles: dict[str, Item] = {}
        days, views = [], []
        for item in of_badge:
            sk = text(item, "SK")
            if sk.startswith(keys.DAY):
                days.append(item)
            elif sk.startswith(keys.VIEW):
                views.append(sk)
            else:
                singles[sk] = item
        badge_id = partition.removeprefix(keys.PARTITION)
        summary, owner = singles.get(keys.SUMMARY, {}), singles.get(keys.OWNER, {})
        yield BadgeItems(badge_id, summary, owner, days, views)


def _summarise(
    summary: Summary, items: BadgeItems, seen: Mapping[str, int], periods: Periods
) -> BadgeOverview:
    live = live_views(summary, items.views)
    finished = finished_days(summary, items)
    by_day = views_by_day(summary, finished, live, periods.today)
    month = periods.month
    owned = OwnedBadge.of(items.badge_id, items.owner)
    seen_now = sum(seen.get(name, 0) for name in owned.names) if seen else 0
    return BadgeOverview(
        badge_id=items.badge_id,
        names=owned.names,
        total=Count(summary, min(len(live), MAX_LIVE), live).shown,
        month=sum([views for day, views in by_day.items() if day >= month]),
        today=by_day[periods.today],
        now=_count_now(summary, items.views, periods) + seen_now,
        frozen=summary.frozen,
        owned=owned.is_claimed,
        created=number(items.summary, "created"),
        days=tuple(map(by_day.__getitem__, periods.days)),
        hour=_count_last_hour(summary, finished, live, periods),
    )


def finished_days(summary: Summary, items: BadgeItems) -> dict[str, Item]:
    """Return the finished days of this life of a badge, by their dates."""
    finished = (day for day in items.days if is_finished(day, summary))
    return {text(day, "SK").removeprefix(keys.DAY): day for day in finished}


def live_views(summary: Summary, views: Sequence[str]) -> list[str]:
    """Return the views that are not in the count yet."""
    if not views:
        return []
    first = first_live(summary)
    return [view for view in views if view >= first]


def views_by_day(
    summary: Summary, finished: Mapping[str, Item], live: Iterable[str], today: str
) -> Counter[str]:
    """Return the views of each day; those of a clock that is ahead are of today."""
    views = Counter({min(summary.today.day, today): summary.today.views})
    for day, item in finished.items():
        views[min(day, today)] += number(item, "views")
    for view in live:
        views[min(hour_of(milliseconds(view.removeprefix(keys.VIEW))).day, today)] += 1
    return views


def _count_last_hour(
    summary: Summary, finished: Mapping[str, Item], live: Iterable[str], periods: Periods
) -> int:
    """Return the views of the last full hour: of its finished day or of `today`, and the live."""
    (of_day, hour), began = periods.hour, periods.hour_began
    first, after = (keys.VIEW + earliest(at) for at in (began, began + HOUR_MS))
    current = summary.today.hours.get(hour, 0) if summary.today.day == of_day else 0
    earlier = number(finished.get(of_day, {}), HOURS[hour])
    return current + earlier + sum(first <= view < after for view in live)


def _count_now(summary: Summary, views: Sequence[str], periods: Periods) -> int:
    """Return the stored views of "now" that belong to this life of the badge."""
    if not views:
        return 0
    first = keys.VIEW + earliest(max(periods.since, summary.reset + 1))
    return sum(view >= first for view in views)
