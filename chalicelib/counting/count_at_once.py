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

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from chalicelib.counting import keys
from chalicelib.counting.summary import Summary, hour_of, read
from chalicelib.counting.view import View
from chalicelib.counting.windows import Counting
from chalicelib.lazy import lazy
from chalicelib.storage.conditions import attr
from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.items import Item, Value, key_of
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import (
    MAX_TRANSACTION_WRITES,
    ConditionFailedError,
    Put,
    Update,
    Write,
)
from chalicelib.ulids import earliest
from chalicelib.units import Seconds, WholeSeconds, to_milliseconds

if TYPE_CHECKING:
    from chalicelib.counting import milestones
    from chalicelib.counting.milestones import Reached
else:
    milestones = lazy("chalicelib.counting.milestones")

TRIES = 10
"""A try fails if another write counted some of the views or changed the summary."""
HOT_SECONDS = 3_600
"""The time that a badge stays hot, so that its visitors read one summary and no views."""
TALLY_SECONDS = 600
AT_ONCE = MAX_TRANSACTION_WRITES - 2
"""Views in one transaction, which also has the summaries of the id and of its badge."""


def count(counting: Counting, badge_id: str, views: Iterable[View]) -> int:
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
