"""The storing of views, which depends on their age.

A young view is stored, after its window's marker if it is the first of the window. An old view and
a view of a hot badge are counted at once. A view in between fails, so that its message is delivered
again when it is old. A failure of one badge delays no other.

One transaction counts up to 98 views at once: it adds them to the count and to the history, and
puts a marker (`SEEN`) for each, on the condition that it does not exist. It has fewer views if they
reach milestones. So a view counts once, however often its message is delivered. A view that is
stored as an item is skipped, because the fold counts it. A consistent read before the transaction
finds the item: a view that is old enough to be counted is no longer stored (`view`), and a hot
view is never stored.

One transaction counts all unmarked views of an id. Those of a hot badge are added to a tally of the
minute, which shows the operator how busy the badge is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from chalicelib.counting import keys
from chalicelib.counting.summary import Summary, hour_of, read
from chalicelib.counting.view import Counting, View, Windows, marker_item, view_item
from chalicelib.lazy import lazy
from chalicelib.storage.conditions import attr
from chalicelib.storage.errors import StorageError, UnavailableError
from chalicelib.storage.items import Item, Key, Value, key_of
from chalicelib.storage.ports import NotStoredError, Table
from chalicelib.storage.writes import (
    MAX_TRANSACTION_WRITES,
    ConditionFailedError,
    Put,
    Update,
    Write,
)
from chalicelib.ulids import earliest
from chalicelib.units import Milliseconds, Seconds, WholeSeconds, to_milliseconds

if TYPE_CHECKING:
    from chalicelib.counting import milestones
    from chalicelib.counting.milestones import Reached
else:
    milestones = lazy("chalicelib.counting.milestones")

Failures = dict[View, Exception]

TRIES = 10
"""A try fails if another write counted some of the views or changed the summary."""
HOT_SECONDS = 3_600
"""The time that a badge stays hot, so that its visitors read one summary and no views."""
TALLY_SECONDS = 600
AT_ONCE = MAX_TRANSACTION_WRITES - 2
"""Views in one transaction, which also has the summaries of the id and of its badge."""


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
        (view, view_item(view.badge_id, view.ulid, windows.view_ttl(at))) for view, at in views
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
        count_at_once(counting, views[0].badge_id, views)
    except Exception as failure:  # a failure of one badge must not delay others
        if views[0].unmarked:
            raise
        return dict.fromkeys(views, failure)
    return {}


def _marker(view: View, taken_at: Milliseconds, windows: Windows) -> Item:
    mark = windows.mark(taken_at)
    return marker_item(view.badge_id, mark, windows.marker_ttl(mark))


def count_at_once(counting: Counting, badge_id: str, views: Iterable[View]) -> int:
    """Count the views of one id that are not counted yet; return their number.

    Raises `StorageError` if some are not counted; calling it again counts them.
    """
    views = list(views)
    if views and views[0].unmarked:
        return _count_together(counting, badge_id, views)
    left = _skip_stored(counting.table, badge_id, {view.ulid: view for view in views})
    return sum(
        _count_together(counting, badge_id, left[start : start + AT_ONCE])
        for start in range(0, len(left), AT_ONCE)
    )


def _skip_stored(table: Table, badge_id: str, views: Mapping[str, View]) -> list[View]:
    """Return the views that are not stored as items; the fold counts the stored ones."""
    places = [keys.view(badge_id, view.ulid) for view in views.values() if not view.hot]
    stored = {key_of(item) for item in table.get_all(places)}
    return [view for view in views.values() if keys.view(badge_id, view.ulid) not in stored]


def _count_together(counting: Counting, badge_id: str, views: Sequence[View]) -> int:
    table, left = counting.table, list(views)
    for _ in range(TRIES):
        own = read(table, badge_id)
        target = read(table, own.alias) if own.alias else own
        ended = max(own.reset, target.reset)
        left = [view for view in left if view.milliseconds > ended]
        if not left:
            return 0
        now = counting.clock()
        reached = milestones.reach(table, target, len(left), now, counting.webhooks)
        if len(left) + len(reached.writes) > AT_ONCE and not left[0].unmarked:
            end = AT_ONCE - milestones.MAX_WRITES
            parts = left[:end], left[end:]
            return sum(_count_together(counting, badge_id, part) for part in parts)
        seen = _write(counting, own, target, left, reached, now)
        if seen is None:
            milestones.enqueue(reached, counting.webhooks)
            return len(left)
        left = [view for view in left if view not in seen]
    raise UnavailableError(f"{badge_id} was changed by {TRIES} other writes; try again")


def _write(  # noqa: PLR0913, PLR0917  the parts of a transaction
    counting: Counting,
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
            counting.table.write(finished)
    except ConditionFailedError:
        return set()
    hot: dict[str, Value] = {}
    if target.hot <= now and any(view.hot for view in views):  # hot for an hour from the first one
        hot["hot"] = int(now) + HOT_SECONDS
    others: list[Write] = [target.add_views(now, counted, **hot, **reached.values)]
    if own.alias:
        others.append(own.unchanged)
    others += reached.writes
    try:
        counting.table.write(*others, *_mark(views, now, counting.windows.retention))
    except ConditionFailedError as failed:
        places = enumerate(views, len(others))
        return {view for place, view in places if place in failed.items}
    return None


def _mark(views: Sequence[View], now: Seconds, retention: WholeSeconds) -> list[Write]:
    if not views[0].unmarked:
        ttl = int(now) + retention
        seen = (keys.seen(view.ulid).item(badge=view.badge_id, ttl=ttl) for view in views)
        return [Put(item, condition=attr("SK").missing()) for item in seen]
    minute_end = (int(now) // 60 + 1) * 60
    key = keys.seen(f"{earliest(minute_end * 1000)}#{views[0].badge_id}")
    values: Item = {"badge": views[0].badge_id, "ttl": minute_end + TALLY_SECONDS}
    return [Update(key, values=values, add={"views": len(views)})] if views[0].hot else []
