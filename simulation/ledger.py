"""The record of every view taken and every count shown, against which the five laws are checked.

A moment is a time and a number of storage calls, so any two moments are ordered. A view belongs to
the life of its id at the view's own time. A view that was answered before an owner's request began
belongs to the old life. A view that was requested after that request's answer belongs to the new
life. A view in between may belong to either.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from math import inf
from typing import NamedTuple

from chalicelib.counting.summary import hour_of
from chalicelib.ulids import milliseconds
from chalicelib.units import Seconds


class Moment(NamedTuple):
    """A time, and the number of storage calls before it."""

    seconds: Seconds
    call: int = 0


FUTURE = Moment(inf)
ALL, SINCE = "all views", "since "
"""The name of the number of all views, and the beginning of the name of a period."""
APART_SECONDS = 1.0
"""A life begins up to this much later than by its clock, if the one before has just begun."""


@dataclass
class Span:
    """The beginning and end of a request; `ended` is `FUTURE` while it is under way."""

    began: Moment
    ended: Moment = FUTURE

    def overlaps(self, other: Span) -> bool:
        return self.began <= other.ended and other.began <= self.ended


@dataclass
class Taken:
    """A view that the queue or the table has, and the id that its visitor asked for.

    It is stored under the id of the badge, or `under` the alias if the table could not be read.
    """

    asked: str
    span: Span
    at: Moment
    under: str = ""
    clocks: Seconds = 0.0
    """The difference of clocks, if the view was taken while the table could not be read."""

    @property
    def life(self) -> Span:
        """The span in which the view's life was chosen, by the request or by differing clocks."""
        if not self.clocks:
            return self.span
        began, ended = self.span.began.seconds, self.span.ended.seconds
        uncertain = self.clocks + APART_SECONDS
        return Span(Moment(began - uncertain), Moment(ended + uncertain))


@dataclass
class LifeEnd:
    """The end of a life of an id by an owner's request; the id then names the badge `alias`.

    A name that a proof detaches keeps the views that are stored under it (`keeps_views`).
    """

    request: Span
    alias: str = ""
    keeps_views: bool = False


class Belongs(NamedTuple):
    """The flags that a view surely, or maybe, belongs to the present life of a badge."""

    surely: bool
    maybe: bool


SURELY = Belongs(surely=True, maybe=True)


@dataclass
class Ledger:
    """All views taken and counts shown. Ids that no owner changed have one life."""

    views: defaultdict[str, dict[str, Taken]] = field(default_factory=lambda: defaultdict(dict))
    ends: defaultdict[str, list[LifeEnd]] = field(default_factory=lambda: defaultdict(list))
    stored: set[str] = field(default_factory=set)
    """The ULIDs of views that were put as items, so that a fold counts them in their own day."""
    removals: defaultdict[str, list[Counter[str]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """The views by hour of each removal from the present life of each badge."""
    highest: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """The highest number that each badge has shown, in all and for each hour, day or period, with
    the views that were removed before."""

    def take(self, ulid: str, view: Taken) -> None:
        """Record a view; the same view recorded again is one view."""
        self.views[view.asked].setdefault(ulid, view)

    def end_life(self, badge_id: str, end: LifeEnd) -> None:
        """Record that an owner's request has ended a life of an id."""
        self.ends[badge_id].append(end)
        self.highest.pop(badge_id, None)
        self.removals.pop(badge_id, None)

    def removed(self, badge_id: str, name: str = ALL, removals: int | None = None) -> int:
        """Return how many views of an hour, a day or a period the first removals have removed."""
        hours = sum(self.removals[badge_id][:removals], Counter[str]())
        return sum(views for hour, views in hours.items() if _contains(name, hour))

    def place(self, asked: str) -> str:
        """Return the badge that an id names now."""
        ends = self.ends.get(asked)
        return (ends[-1].alias if ends else "") or asked

    def names(self, badge_id: str) -> list[str]:
        """Return every id that may have views of a badge."""
        return [
            name
            for name in set(self.views) | {badge_id}
            if name == badge_id or any(end.alias == badge_id for end in self.ends.get(name, ()))
        ]

    def bounds(
        self, badge_id: str, until: Moment = FUTURE, among: Collection[str] | None = None
    ) -> tuple[int, int]:
        """Return the least and the most views that the present life of a badge has taken.

        Some may be removed since. `among` are the ULIDs of the views to count, None for all.
        """
        least = most = 0
        for name in self.names(badge_id):
            simple = name == badge_id and not self.ends.get(name)
            for ulid, view in self.views[name].items():
                if view.at <= until and (among is None or ulid in among):
                    belongs = SURELY if simple else self._belongs(view, badge_id)
                    least += belongs.surely
                    most += belongs.maybe
        return least, most

    def stored_by_day(self) -> dict[str, set[str]]:
        """Return the ULIDs of the views that were put as items, by the day of their time."""
        days: defaultdict[str, set[str]] = defaultdict(set)
        for ulid in self.stored:
            days[hour_of(milliseconds(ulid)).day].add(ulid)
        return days

    def _belongs(self, view: Taken, badge_id: str) -> Belongs:
        surely = maybe = False
        ends = self.ends.get(view.asked, [])
        for life, (start, end) in enumerate(_lives(ends)):
            here = _within(view.life, start, end)
            alias = start.alias if start else ""
            is_kept = end is not None and end.keeps_views and view.under == view.asked
            if alias == badge_id:
                there = _within(view.life, *_lives(self.ends.get(badge_id, []))[-1])
                there = Belongs(there.surely and not is_kept, there.maybe)
            elif view.asked == badge_id and (is_kept or not alias):
                present = life + is_kept == len(ends)
                there = Belongs(present and not is_kept, present)
            else:
                continue
            surely |= here.surely and there.surely
            maybe |= here.maybe and there.maybe
        return Belongs(surely, maybe)


def _contains(name: str, hour: str) -> bool:
    if name.startswith(SINCE):
        since = datetime.fromisoformat(name.removeprefix(SINCE))
        return datetime.fromisoformat(hour) >= since
    return name == ALL or hour.startswith(name)


def _lives(ends: list[LifeEnd]) -> list[tuple[LifeEnd | None, LifeEnd | None]]:
    """Return the ends that bound each life: the one before it and its own."""
    return list(zip([None, *ends], [*ends, None], strict=True))


def _within(view: Span, start: LifeEnd | None, end: LifeEnd | None) -> Belongs:
    after = start is None or view.began > start.request.ended
    before = end is None or view.ended < end.request.began
    not_before = start is None or view.ended >= start.request.began
    not_after = end is None or view.began <= end.request.ended
    return Belongs(after and before, not_before and not_after)
