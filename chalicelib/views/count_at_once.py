"""Counting views at once: those of hot badges, and those that come too late to be stored.

One transaction adds up to 98 views to the count and to the history, and puts a marker (`SEEN`)
for each on the condition that there is none. So each view is counted once, however often its
message is delivered. A view whose item is in the table is left out: the fold counts it. A
consistent read before the transaction finds the item, because no view is stored any more when it
is old enough to be counted (`windows`), and a hot view is never stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from chalicelib.storage.conditions import attr
from chalicelib.storage.errors import Unavailable
from chalicelib.storage.items import Item, key_of
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import MAX_TRANSACTION_WRITES, ConditionFailed, Put, Write
from chalicelib.views import keys
from chalicelib.views.summary import Hour, Summary, hour_of, read
from chalicelib.views.view import View
from chalicelib.views.windows import Windows

TRIES = 10
"""A failed try means that others counted some of the views, or wrote the summary."""
HOT_SECONDS = 3_600
"""A badge stays hot for this long, so that its visitors read one summary and no views."""
AT_ONCE = MAX_TRANSACTION_WRITES - 2
"""Views in one transaction, beside the summaries of the id and of the badge that it names."""


@dataclass(frozen=True, slots=True)
class AtOnceCounter:
    """Counts views of a table at once; `clock` is seconds since 1970."""

    table: Table
    windows: Windows
    clock: Callable[[], float]

    def count(self, badge_id: str, views: Iterable[View]) -> int:
        """Count those views of one id that are not counted yet; return how many there were.

        Raises `StorageError`: some may be counted then, and asking again counts the others.
        """
        left = self._not_stored(badge_id, {view.ulid: view for view in views})
        return sum(
            self._count_together(badge_id, left[start : start + AT_ONCE])
            for start in range(0, len(left), AT_ONCE)
        )

    def _not_stored(self, badge_id: str, views: Mapping[str, View]) -> list[View]:
        """Leave out the views that are in the table: the fold counts them."""
        places = [keys.view(badge_id, view.ulid) for view in views.values() if not view.hot]
        stored = {key_of(item) for item in self.table.get_all(places)}
        return [view for view in views.values() if keys.view(badge_id, view.ulid) not in stored]

    def _count_together(self, badge_id: str, views: Sequence[View]) -> int:
        left = list(views)
        for _ in range(TRIES):
            own = read(self.table, badge_id)
            target = read(self.table, own.alias) if own.alias else own
            ended = max(own.reset, target.reset)
            left = [view for view in left if view.milliseconds > ended]
            if not left:
                return 0
            seen = self._write(own, target, left)
            if seen is None:
                return len(left)
            left = [view for view in left if view not in seen]
        raise Unavailable(f"{TRIES} other writes of {badge_id} came in between")

    def _write(self, own: Summary, target: Summary, views: Sequence[View]) -> set[View] | None:
        """Count views; return those that were counted before if that failed, or None."""
        now = self.clock()
        counted = {hour_of(now * 1000): len(views)}
        finished = target.finished_day(counted)
        try:
            if finished:
                self.table.write(finished)
        except ConditionFailed:
            return set()
        summaries: list[Write] = [self._counted(target, counted, views, now)]
        if own.alias:
            summaries.append(own.as_read)
        try:
            self.table.write(*summaries, *(self._seen(view, now) for view in views))
        except ConditionFailed as failed:
            places = enumerate(views, len(summaries))
            return {view for place, view in places if place in failed.items}
        return None

    def _counted(
        self, target: Summary, counted: Mapping[Hour, int], views: Sequence[View], now: float
    ) -> Write:
        """Add views to a summary; the first hot view makes its badge hot for an hour."""
        if target.hot <= now and any(view.hot for view in views):
            return target.counted(now, counted, hot=int(now) + HOT_SECONDS)
        return target.counted(now, counted)

    def _seen(self, view: View, now: float) -> Put:
        pk, sk = keys.seen(view.ulid)
        item: Item = {
            "PK": pk,
            "SK": sk,
            "badge": view.badge_id,
            "ttl": int(now) + self.windows.retention,
        }
        return Put(item, condition=attr("SK").missing())
