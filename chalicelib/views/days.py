"""The history of a badge: which views are of which day, and what the item of a day adds up."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

from chalicelib.ports import Key
from chalicelib.views import keys


class Taken(Protocol):
    """A view, or what tells of one."""

    @property
    def taken_at(self) -> datetime: ...


AnyTaken = TypeVar("AnyTaken", bound=Taken)


def by_day(badge_id: str, views: Iterable[AnyTaken]) -> list[tuple[Key, list[AnyTaken]]]:
    """The views of each day (UTC), the first day first, each day in the order given."""
    days: defaultdict[Key, list[AnyTaken]] = defaultdict(list)
    for view in views:
        days[keys.day(badge_id, view.taken_at)].append(view)
    return sorted(days.items())


def sums(views: Sequence[Taken]) -> dict[str, int]:
    """What the item of a day adds: its views, and those of each hour."""
    return {"views": len(views), **Counter(f"h{view.taken_at:%H}" for view in views)}
