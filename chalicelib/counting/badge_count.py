"""The count that a badge shows, and the enqueuing of a new view.

A badge shows `base + count + live`, where `live` is the number of its views after the watermark.
The summary is read before the views, so a fold in between does not change the sum: it removes no
view, and those after the old watermark are still there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import NamedTuple

from chalicelib import telemetry
from chalicelib.counting import keys, storing
from chalicelib.counting.summary import Summary
from chalicelib.counting.view import Counting, View, ViewQueue, Windows
from chalicelib.settings import HOT_VIEWS
from chalicelib.storage.errors import StorageError
from chalicelib.storage.ports import Table
from chalicelib.ulids import earliest, new_ulid
from chalicelib.units import Milliseconds, Seconds, to_milliseconds

MAX_LIVE = 8_000
"""The maximum number of live views that a badge shows; others are shown after their fold."""
SUMMARY_BYTES = 360
"""The maximum size of a summary with all attributes and 24 hours, without the id."""
VIEW_BYTES = 49
"""The size of a view, without the id."""
AHEAD_MILLISECONDS: Milliseconds = 5_000
"""A life of an id begins this long after the clock's time, because clocks differ by seconds."""
SORT_KEY = itemgetter("SK")
ULID_AT = len(keys.VIEW)
"""The place of the ULID in the sort key of a view."""
SUMMARY_ATTRIBUTES = (
    "SK",
    "count",
    "watermark",
    "base",
    "reset",
    "frozen",
    "hot",
    "alias",
)
DAY_ATTRIBUTES = ("today", "version")
"""The attributes of a summary by which its finished days are read."""


class Count(NamedTuple):
    """The views of a badge: those in its summary, and those after the watermark.

    `newest` has the ULIDs of the newest live views, newest first: one page, or all `live` views.
    `is_new` is true if the id has neither a summary nor a view.
    """

    summary: Summary
    live: int
    newest: Sequence[str]
    is_new: bool = False

    @property
    def views(self) -> int:
        """Return the number of views, without the base."""
        return self.summary.count + self.live

    @property
    def shown(self) -> int:
        return self.summary.base + self.views

    def view(self, windows: Windows, now: Seconds, hot: int = HOT_VIEWS) -> View:
        """Make a new view that is later than the watermark.

        A badge with `hot` live views is hot.
        """
        taken_at = max(to_milliseconds(now), self.summary.watermark + 1)
        first = not self._has_view_of_window(windows, taken_at)
        is_hot = self.live >= hot or self.summary.hot > now
        fold = self._is_overdue(windows, now, hot)
        return View(self.summary.badge_id, new_ulid(taken_at), first, is_hot, fold)

    def _has_view_of_window(self, windows: Windows, taken_at: Milliseconds) -> bool:
        mark = windows.mark(taken_at)
        first = earliest(to_milliseconds(mark - windows.window))
        after = earliest(to_milliseconds(mark))
        for ulid in self.newest:
            if ulid < after:
                return ulid >= first
        return False

    def _is_overdue(self, windows: Windows, now: Seconds, hot: int) -> bool:
        """Return whether more than a page of views wait for a fold that is overdue."""
        if self.live <= len(self.newest):
            return False
        unfoldable = to_milliseconds(windows.foldable(now)) + 1
        return self.live >= hot or self.newest[-1] < earliest(unfoldable)


def view_of_unread(badge_id: str, now: Seconds) -> View:
    """Make a new view of a badge that could not be read.

    Its time is as far ahead as the begin of a life is, so that a view after a reset is later.
    """
    return View(badge_id, new_ulid(to_milliseconds(now) + AHEAD_MILLISECONDS))


def read(table: Table, badge_id: str, *, with_today: bool = False, follow: bool = True) -> Count:
    """Count the views of a badge by any of its names, with one or two queries; follow one alias.

    The summary has its current day only `with_today`. Raises `StorageError`.
    """
    partition, limit = keys.partition(badge_id), page_size(table, badge_id)
    page = table.query(
        partition,
        first=keys.VIEW,
        last=keys.SUMMARY,
        limit=limit,
        attributes=(*SUMMARY_ATTRIBUTES, *DAY_ATTRIBUTES) if with_today else SUMMARY_ATTRIBUTES,
        descending=True,
    )
    has_summary = bool(page) and page[0]["SK"] == keys.SUMMARY
    summary = Summary.of(badge_id, page[0]) if has_summary else Summary(badge_id)
    if summary.alias and follow:
        return read(table, summary.alias, with_today=with_today, follow=False)
    first = first_live(summary)
    newest = [sk[ULID_AT:] for sk in map(SORT_KEY, page[has_summary:]) if sk >= first]
    live = len(newest)
    if live + has_summary == len(page) == limit:
        rest, last = MAX_LIVE - live + 1, keys.VIEW + newest[-1]
        live += table.count(partition, first=first, last=last, limit=rest) - 1
    return Count(summary, live, newest, not page)


def first_live(summary: Summary) -> str:
    """Return the first sort key that a live view of a badge can have."""
    return keys.VIEW + earliest(summary.watermark + 1)


def page_size(table: Table, badge_id: str) -> int:
    """Return the number of items that are read: the summary and the newest views."""
    length = len(badge_id.encode())
    return table.page_items(SUMMARY_BYTES + length, VIEW_BYTES + length)


def take(views: Sequence[View], queue: ViewQueue, counting: Callable[[], Counting]) -> None:
    """Enqueue the writes of a request's views, or store them directly if the queue fails.

    Raises `StorageError` if both fail: a view is lost then, and the response must say so.
    """
    try:
        queue.send(*views)
    except StorageError:
        telemetry.count(queue_refusals=1)
        _store(counting(), views)
        telemetry.event(logging.WARNING, "view_stored_directly")


def _store(counting: Counting, views: Sequence[View]) -> None:
    """Store the views of a request, on one machine in one commit: all of them or none."""

    def store(together: Sequence[View]) -> None:
        for failure in storing.store(counting, together).values():
            raise failure from None

    list(counting.map_parallel(store, [views]))
