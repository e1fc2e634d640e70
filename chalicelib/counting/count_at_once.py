"""The counting at once of views that are old or that belong to a hot badge.

One transaction adds up to 98 views to the count and to the history, and puts a marker (`SEEN`) for
each, on the condition that it does not exist. It has fewer views if they reach milestones. So a
view counts once, however often its message is delivered. A view that is stored as an item is
skipped, because the fold counts it. A consistent read before the transaction finds the item: a view
that is old enough to be counted is no longer stored (`windows`), and a hot view is never stored.

One transaction counts all unmarked views of an id. Those of a hot badge are added to a tally of the
minute, which shows the operator how busy the badge is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chalicelib.counting import keys
from chalicelib.counting.summary import Hour, Summary, hour_of, read
from chalicelib.counting.view import View, earliest
from chalicelib.counting.windows import Windows
from chalicelib.lazy import lazy
from chalicelib.storage.conditions import attr
from chalicelib.storage.errors import Unavailable
from chalicelib.storage.items import Item, key_of
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import MAX_TRANSACTION_WRITES, ConditionFailed, Put, Update, Write
from chalicelib.units import Seconds, to_milliseconds

if TYPE_CHECKING:
    from chalicelib.counting import milestones
    from chalicelib.counting.milestones import Reached
    from chalicelib.outgoing.webhooks import WebhookSchedule
else:
    milestones = lazy("chalicelib.counting.milestones")

TRIES = 10
"""A try fails if another write counted some of the views or changed the summary."""
HOT_SECONDS = 3_600
"""The time that a badge stays hot, so that its visitors read one summary and no views."""
TALLY_SECONDS = 600
AT_ONCE = MAX_TRANSACTION_WRITES - 2
"""Views in one transaction, which also has the summaries of the id and of its badge."""


@dataclass(frozen=True, slots=True)
class AtOnceCounter:
    """The counter of old and hot views.

    Without `webhooks`, it leaves the milestones that a badge reaches to the next write of a count.
    """

    table: Table
    windows: Windows
    clock: Callable[[], Seconds]
    webhooks: WebhookSchedule | None = None

    def count(self, badge_id: str, views: Iterable[View]) -> int:
        """Count the views of one id that are not counted yet; return their number.

        Raises `StorageError` if some are not counted; calling it again counts them.
        """
        views = list(views)
        if views and views[0].unmarked:
            return self._count_together(badge_id, views)
        left = self._skip_stored(badge_id, {view.ulid: view for view in views})
        return sum(
            self._count_together(badge_id, left[start : start + AT_ONCE])
            for start in range(0, len(left), AT_ONCE)
        )

    def _skip_stored(self, badge_id: str, views: Mapping[str, View]) -> list[View]:
        """Return the views that are not stored as items; the fold counts the stored ones."""
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
            now = self.clock()
            reached = milestones.reach(self.table, target, len(left), now, self.webhooks)
            if len(left) + len(reached.writes) > AT_ONCE and not left[0].unmarked:
                end = AT_ONCE - milestones.MAX_WRITES
                parts = left[:end], left[end:]
                return sum(self._count_together(badge_id, part) for part in parts)
            seen = self._write(own, target, left, reached, now)
            if seen is None:
                milestones.enqueue(reached, self.webhooks)
                return len(left)
            left = [view for view in left if view not in seen]
        raise Unavailable(f"{badge_id} was changed by {TRIES} other writes; try again")

    def _write(
        self,
        own: Summary,
        target: Summary,
        views: Sequence[View],
        reached: Reached,
        now: Seconds,
    ) -> set[View] | None:
        """Count views; return None, or the views that were counted before if the write failed."""
        # Clocks differ, and no view belongs to an hour before the life of its badge.
        counted = {hour_of(max(to_milliseconds(now), target.reset + 1)): len(views)}
        finished = target.finished_day(counted)
        try:
            if finished:
                self.table.write(finished)
        except ConditionFailed:
            return set()
        others: list[Write] = [self._add_views(target, counted, views, reached, now)]
        if own.alias:
            others.append(own.as_read)
        others += reached.writes
        try:
            self.table.write(*others, *self._mark(views, now))
        except ConditionFailed as failed:
            places = enumerate(views, len(others))
            return {view for place, view in places if place in failed.items}
        return None

    @staticmethod
    def _add_views(
        target: Summary,
        counted: Mapping[Hour, int],
        views: Sequence[View],
        reached: Reached,
        now: Seconds,
    ) -> Write:
        """Return the write that adds views; the first hot view makes its badge hot for an hour."""
        if target.hot <= now and any(view.hot for view in views):
            hot = int(now) + HOT_SECONDS
            return target.add_views(now, counted, hot=hot, **reached.values)
        return target.add_views(now, counted, **reached.values)

    def _mark(self, views: Sequence[View], now: Seconds) -> list[Write]:
        if not views[0].unmarked:
            return [self._put_seen(view, now) for view in views]
        minute_end = (int(now) // 60 + 1) * 60
        key = keys.seen(f"{earliest(minute_end * 1000)}#{views[0].badge_id}")
        values: Item = {"badge": views[0].badge_id, "ttl": minute_end + TALLY_SECONDS}
        return [Update(key, values=values, add={"views": len(views)})] if views[0].hot else []

    def _put_seen(self, view: View, now: Seconds) -> Put:
        pk, sk = keys.seen(view.ulid)
        item: Item = {
            "PK": pk,
            "SK": sk,
            "badge": view.badge_id,
            "ttl": int(now) + self.windows.retention,
        }
        return Put(item, condition=attr("SK").missing())
