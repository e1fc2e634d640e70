"""The storing of views, which depends on their age.

A young view is stored, after its window's marker if it is the first of the window. An old view and
a view of a hot badge are counted at once. A view in between fails, so that its message is delivered
again when it is old. A failure of one badge delays no other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chalicelib.concurrency import MapParallel
from chalicelib.counting import keys
from chalicelib.counting.count_at_once import AtOnceCounter
from chalicelib.counting.view import View
from chalicelib.counting.windows import Windows, marker_item
from chalicelib.storage.errors import StorageError, Unavailable
from chalicelib.storage.items import Item, Key, key_of
from chalicelib.storage.ports import NotStored, Table
from chalicelib.units import Milliseconds, Seconds

if TYPE_CHECKING:
    from chalicelib.outgoing.webhooks import WebhookSchedule

Failures = dict[View, Exception]


class InBetween(Unavailable):
    """The view is too old to be stored and too young to be counted at once. Deliver it again."""


@dataclass(frozen=True, slots=True)
class Store:
    """The store of views; `map_parallel` counts badges, and `webhooks` announce milestones."""

    table: Table
    windows: Windows
    clock: Callable[[], Seconds]
    map_parallel: MapParallel
    webhooks: WebhookSchedule | None = None

    def store(self, views: Iterable[View]) -> Failures:
        """Store or count each view; return the failed views, each with its reason.

        It is safe to repeat.
        """
        now = self.clock()
        young: dict[View, Milliseconds] = {}
        at_once: defaultdict[str, list[View]] = defaultdict(list)
        failures: Failures = {}
        for view in views:
            taken_at = view.milliseconds
            if view.hot or view.unmarked or self.windows.is_old(taken_at, now):
                at_once[view.badge_id].append(view)
            elif self.windows.is_young(taken_at, now):
                young[view] = taken_at
            else:
                failures[view] = InBetween("the view is between young and old; deliver it again")
        failures |= self._put_young(young)
        for failed in self.map_parallel(self._count, at_once.values()):
            failures |= failed
        return failures

    def _put_young(self, views: Mapping[View, Milliseconds]) -> Failures:
        """Put the markers of windows, then the views whose markers are stored."""
        markers = {view: self._marker(view, at) for view, at in views.items() if view.first}
        failures = self._put(markers)
        return failures | self._put(
            {view: self._item(view, at) for view, at in views.items() if view not in failures}
        )

    def _put(self, items: Mapping[View, Item]) -> Failures:
        """Put one item per view; return the views whose items are not stored."""
        unique = {key_of(item): item for item in items.values()}
        try:
            if unique:
                self.table.put_all(list(unique.values()))
        except NotStored as failure:
            missing: set[Key] = {key_of(item) for item in failure.items}
            return {view: failure for view, item in items.items() if key_of(item) in missing}
        except StorageError as failure:
            return dict.fromkeys(items, failure)
        return {}

    def _count(self, views: Sequence[View]) -> Failures:
        counter = AtOnceCounter(self.table, self.windows, self.clock, self.webhooks)
        try:
            counter.count(views[0].badge_id, views)
        except Exception as failure:  # a failure of one badge must not delay others
            if views[0].unmarked:
                raise
            return dict.fromkeys(views, failure)
        return {}

    def _marker(self, view: View, taken_at: Milliseconds) -> Item:
        mark = self.windows.mark(taken_at)
        return marker_item(view.badge_id, mark, self.windows.marker_ttl(mark))

    def _item(self, view: View, taken_at: Milliseconds) -> Item:
        pk, sk = keys.view(view.badge_id, view.ulid)
        return {"PK": pk, "SK": sk, "ttl": self.windows.view_ttl(taken_at)}
