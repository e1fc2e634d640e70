"""The storing of views, which depends on their age.

A young view is stored, after its window's marker if it is the first of the window. An old view and
a view of a hot badge are counted at once. A view in between fails, so that its message is delivered
again when it is old. A failure of one badge delays no other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial

from chalicelib.counting import count_at_once, keys
from chalicelib.counting.view import View
from chalicelib.counting.windows import Counting, Windows, marker_item
from chalicelib.storage.errors import StorageError, UnavailableError
from chalicelib.storage.items import Item, Key, key_of
from chalicelib.storage.ports import NotStoredError, Table
from chalicelib.units import Milliseconds

Failures = dict[View, Exception]


class InBetweenError(UnavailableError):
    """The view is too old to be stored and too young to be counted at once. Deliver it again."""


def store(counting: Counting, views: Iterable[View]) -> Failures:
    """Store or count each view; return the failed views, each with its reason.

    It is safe to repeat.
    """
    windows, now = counting.windows, counting.clock()
    young: list[tuple[View, Milliseconds]] = []
    at_once: defaultdict[str, list[View]] = defaultdict(list)
    failures: Failures = {}
    for view in views:
        taken_at = view.milliseconds
        if view.hot or view.unmarked or windows.is_old(taken_at, now):
            at_once[view.badge_id].append(view)
        elif windows.is_young(taken_at, now):
            young.append((view, taken_at))
        else:
            failures[view] = InBetweenError("the view is between young and old; deliver it again")
    failures |= _put_young(counting, young)
    for failed in counting.map_parallel(partial(_count, counting), at_once.values()):
        failures |= failed
    return failures


def _put_young(counting: Counting, views: Sequence[tuple[View, Milliseconds]]) -> Failures:
    """Put the markers of windows, then the views whose markers are stored."""
    table, windows = counting.table, counting.windows
    markers = [(view, _marker(view, at, windows)) for view, at in views if view.first]
    failures = _put(table, markers)
    if failures:
        views = [(view, at) for view, at in views if view not in failures]
    items = [
        (view, keys.view(view.badge_id, view.ulid).item(ttl=windows.view_ttl(at)))
        for view, at in views
    ]
    return failures | _put(table, items)


def _put(table: Table, items: Sequence[tuple[View, Item]]) -> Failures:
    """Put one item per view; return the views whose items are not stored."""
    unique = {(item["PK"], item["SK"]): item for _, item in items}
    try:
        if unique:
            table.put_all(list(unique.values()))
    except NotStoredError as failure:
        missing: set[Key] = {key_of(item) for item in failure.items}
        return {view: failure for view, item in items if key_of(item) in missing}
    except StorageError as failure:
        return {view: failure for view, _ in items}
    return {}


def _count(counting: Counting, views: Sequence[View]) -> Failures:
    try:
        count_at_once.count(counting, views[0].badge_id, views)
    except Exception as failure:  # a failure of one badge must not delay others
        if views[0].unmarked:
            raise
        return dict.fromkeys(views, failure)
    return {}


def _marker(view: View, taken_at: Milliseconds, windows: Windows) -> Item:
    mark = windows.mark(taken_at)
    return marker_item(view.badge_id, mark, windows.marker_ttl(mark))
