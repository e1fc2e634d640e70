"""The days of views, as clients know them: the days on which a view may count, and a history's.

The clock is the machine's, which the run sets. The clock of views never goes back. So a view is
taken no earlier than the clock showed during its request, or during one that was answered before,
and is counted no later than the clock ever showed before its put. Both are in UTC.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import accumulate

from chaos.checker.history import LAST_DAY, Kind, Operation, Span
from chaos.faults import Jump

TOLERANCE_SECONDS = 0.05
"""The most by which the server's clock differs from the computed one."""
AHEAD_SECONDS = 60.0
"""A reset begins a life 5 s ahead of the clock, or 1 s after the beginning of the life before it.
So the views of a badge with resets, and those that were taken unread, may be ahead of the clock."""


class Highest:
    """The highest of some values up to a time, or 0."""

    def __init__(self, values: Iterable[tuple[float, float]] = ()) -> None:
        ordered = sorted(values)
        self._times = [at for at, _ in ordered]
        self._highest = list(accumulate((value for _, value in ordered), max))

    def by(self, time: float) -> float:
        place = bisect_right(self._times, time)
        return self._highest[place - 1] if place else 0


def with_spans(operations: Sequence[Operation], jumps: Sequence[Jump]) -> Iterator[Operation]:
    """Yield the operations, the hits with the days on which their views may count."""
    clock = _ViewClock(operations, jumps)
    for one in operations:
        yield replace(one, span=clock.span(one)) if one.attempted else one


def find_misplaced(
    days: Mapping[str, int], certain: Iterable[Span], possible: Iterable[Span]
) -> str:
    """Return consecutive days with too few or too many views, empty if there are none.

    They have all certain views that may count on no other day, and no more than the possible views
    that may count on them. If that holds for all such days, each view can be on a day of its own.
    """
    least, most = Counter(certain), Counter(possible)
    known = sorted({*days, *(day for span in most for day in span)})
    for place, first in enumerate(known):
        for last in known[place:]:
            views = sum(n for day, n in days.items() if first <= day <= last)
            own = sum(n for span, n in least.items() if first <= span[0] and span[1] <= last)
            some = sum(n for span, n in most.items() if span[0] <= last and first <= span[1])
            if not own <= views <= some:
                return f"{views} views from {first} to {last}, {own} acknowledged, {some} attempted"
    return ""


class _ViewClock:
    """The bounds of the server's clock of views at each time of a run."""

    def __init__(self, operations: Iterable[Operation], jumps: Sequence[Jump]) -> None:
        self._jumps = jumps
        self._times = [jump.at for jump in jumps]
        self._left = Highest((jump.at, jump.before) for jump in jumps)
        self._kept = Highest(
            (one.completed, self._lowest(one))
            for one in operations
            if one.acknowledged and one.shown is not None
        )
        self._reset = {one.badge_id for one in operations if one.kind is Kind.RESET}

    def span(self, hit: Operation) -> Span:
        first = max(self._lowest(hit), self._kept.by(hit.invoked)) - TOLERANCE_SECONDS
        if hit.put_by is None:
            return _day(first), LAST_DAY
        last = max(self._at(hit.put_by), self._left.by(hit.put_by)) + TOLERANCE_SECONDS
        may_be_ahead = hit.shown is None or hit.badge_id in self._reset
        return _day(first), _day(last + AHEAD_SECONDS * may_be_ahead)

    def _at(self, time: float) -> float:
        jump = self._jumps[bisect_right(self._times, time) - 1]
        return jump.after + time - jump.at

    def _lowest(self, one: Operation) -> float:
        """Return the lowest time that the clock showed during an operation."""
        begin, end = (bisect_right(self._times, at) for at in (one.invoked, one.completed))
        return min([self._at(one.invoked), *(jump.after for jump in self._jumps[begin:end])])


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()
