"""The most viewed ids of one machine that begin with a prefix, read from the file in one pass."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, timedelta
from functools import partial
from itertools import islice
from threading import Lock

from chalicelib.counting.badge_count import MAX_LIVE, Count
from chalicelib.counting.ids import Patterns
from chalicelib.counting.summary import HOURS, Summary, hour_of
from chalicelib.history.routes import TopBadge, TopQuery
from chalicelib.http.errors import BadRequestError
from chalicelib.owners.finding import OwnedBadge
from chalicelib.storage.errors import UnavailableError
from chalicelib.units import Seconds, to_milliseconds
from vumi.operate.admin.overview import finished_days, live_views, views_by_day
from vumi.storage.badges import BadgeItems, Read, read_badges

MAX_IDS = 10_000
"""The ids of a prefix that are read for a request."""
MAX_READ = 1_000_000
"""Its ids times its days: so many take about four seconds of processor time."""
WAIT_SECONDS = 1.0
"""The longest wait for the end of another request's read."""
FRESH_FACTOR = 10.0
"""The badges of a result serve all requests for so many times the time that it took to read.

They are counted again for each request, so that no number falls. Reads come one after another, so
the results that still serve are few.
"""


class MostViewed:
    """The `chalicelib.history.routes.Top` of a file, for the prefixes that the `patterns` match.

    One request reads at a time, so that many of them leave the processor to the views.
    `is_counted` says whether an id is counted here.
    """

    def __init__(
        self,
        read: Read,
        patterns: Sequence[str],
        is_counted: Callable[[str], bool],
        stopwatch: Callable[[], Seconds] = time.monotonic,
        wait_seconds: Seconds = WAIT_SECONDS,
    ) -> None:
        self._read, self._patterns, self._is_counted = read, Patterns(patterns), is_counted
        self._stopwatch, self._wait_seconds = stopwatch, wait_seconds
        self._lock = Lock()
        self._cached: dict[TopQuery, tuple[Seconds, Sequence[TopBadge]]] = {}

    def is_public(self, prefix: str) -> bool:
        return self._patterns.cover(prefix)

    def read(self, query: TopQuery, now: Seconds) -> Sequence[TopBadge]:
        """Return the badges with the most views; those with the same number are in order of id.

        Raises `BadRequestError` if the prefix has too many ids, and `StorageError`.
        """
        if not self._lock.acquire(timeout=self._wait_seconds):
            raise UnavailableError("other requests read the most viewed ids")
        try:
            began = self._stopwatch()
            self._cached = {one: made for one, made in self._cached.items() if began < made[0]}
            if query in self._cached:
                return _rank(self._count_again(query, now), query)
            found = _rank(self._count_all(query, now), query)
            ended = self._stopwatch()
            self._cached[query] = ended + FRESH_FACTOR * (ended - began), found
            return found
        finally:
            self._lock.release()

    def _count_all(self, query: TopQuery, now: Seconds) -> Iterator[TopBadge]:
        first, today = _days(query, now)
        most = min(MAX_IDS, MAX_READ // query.days)
        read = partial(read_badges, self._read, first, HOURS[0])
        for name, items in _named(read, query.prefix, most):
            if self._is_counted(name):
                yield _count(name, items, first, today)

    def _count_again(self, query: TopQuery, now: Seconds) -> Iterator[TopBadge]:
        """Count badges that were found before, but those that have lost their names."""
        first, today = _days(query, now)
        read = partial(read_badges, self._read, first, HOURS[0], badges_in_a_query=1)
        for badge in self._cached[query][1]:
            for name, items in islice(_named(read, badge.badge_id, MAX_IDS), 1):
                if name == badge.badge_id and self._is_counted(name):
                    yield _count(name, items, first, today)


def _days(query: TopQuery, now: Seconds) -> tuple[str, str]:
    today = hour_of(to_milliseconds(now)).day
    return f"{date.fromisoformat(today) - timedelta(days=query.days - 1)}", today


def _rank(badges: Iterable[TopBadge], query: TopQuery) -> list[TopBadge]:
    viewed = (badge for badge in badges if badge.views)
    return heapq.nsmallest(query.limit, viewed, key=lambda badge: (-badge.views, badge.badge_id))


def _named(
    read: Callable[..., Iterator[BadgeItems]], prefix: str, most: int
) -> Iterator[tuple[str, BadgeItems]]:
    """Yield each badge whose present name begins with a prefix, and this name.

    The items of a renamed badge are under its first id, and its name is an alias.
    """
    for place, found in enumerate(read(prefix=prefix)):
        if place == most:
            raise BadRequestError(
                f"prefix: more than {most:,} ids begin with it: give a longer one, or fewer days"
            )
        name, items = found.badge_id, found
        if alias := Summary.of(name, found.summary).alias:
            items = next(read(prefix=alias, badges_in_a_query=1), found)
        if OwnedBadge.of(items.badge_id, items.owner).names[-1] == name:
            yield name, items


def _count(name: str, items: BadgeItems, first: str, today: str) -> TopBadge:
    summary = Summary.of(items.badge_id, items.summary)
    live = live_views(summary, items.views)
    by_day = views_by_day(summary, finished_days(summary, items), live, today)
    views = sum(number for day, number in by_day.items() if day >= first)
    return TopBadge(name, Count(summary, min(len(live), MAX_LIVE), live).shown, views)
