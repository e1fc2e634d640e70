"""Storing views: the floor under the count, then each view as an item with a time to live.

In this order the put is the last that can fail: a view that is reported as failed is, but for a
lost answer, not stored, and one whose badge has no floor above what it showed never was.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from chalicelib.concurrency import Each
from chalicelib.ports import (
    ConditionFailed,
    Item,
    Key,
    NotStored,
    StorageError,
    Table,
    Update,
    attribute,
    key_of,
    text,
    unchanged,
)
from chalicelib.settings import Settings
from chalicelib.views import keys
from chalicelib.views.view import View

if TYPE_CHECKING:
    from boto3.dynamodb.conditions import ConditionBase


@dataclass(frozen=True, slots=True)
class Lifetime:
    """How long a view lives as an item, in seconds."""

    window: int
    redelivery: int

    @classmethod
    def of(cls, settings: Settings) -> Lifetime:
        return cls(settings.view_window_seconds, settings.redelivery_seconds)

    def ttl(self, now: float) -> int:
        """The first mark, a multiple of the window, at least `redelivery` seconds away.

        -(-x // w) * w rounds x up to a multiple of w.
        """
        return int(-(-(now + self.redelivery) // self.window) * self.window)


class FloorNotRaised(StorageError):
    """The view is stored; that no later count is lower than with it can't be promised."""


def store_one(view: View, table: Table, lifetime: Lifetime, now: float) -> None:
    """Store a view that no queue has taken. Raises `FloorNotRaised` and `StorageError`.

    It is taken by its put alone, so here the put comes first: a floor that counted it would stay
    if that failed, and the badge would show a view too many.
    """
    ttl = lifetime.ttl(now)
    if view.hot:
        _count_at_once([view], view.badge_id, table, ttl, now)
    else:
        table.put_all([to_item(view, view.badge_id, ttl)])
    try:
        badge_id = _raise_floor(view.badge_id, [view], table, now)
    except StorageError as failure:
        raise FloorNotRaised(str(failure)) from failure
    if badge_id != view.badge_id and not view.hot:
        table.put_all([to_item(view, badge_id, ttl)])


def store(
    views: Sequence[View],
    table: Table,
    lifetime: Lifetime,
    now: float,
    each: Each,
) -> dict[View, Exception]:
    """Raise the floors of the badges of views, then store these; returns who failed, and why.

    Hot views are not stored but counted.

    The views are taken, by their messages, so that a floor may count them before they are stored.
    A failure of one badge leaves the others stored. Storing a view again changes nothing but
    when it expires. `each` works through the badges, concurrently if it likes.
    """
    badges: defaultdict[str, list[View]] = defaultdict(list)
    for view in views:
        badges[view.badge_id].append(view)
    ttl = lifetime.ttl(now)
    outcomes = list(each(lambda badge: _prepared(*badge, table, ttl, now), badges.items()))
    items = {view: item for outcome in outcomes for view, item in outcome.items.items()}
    failed = {view: failure for outcome in outcomes for view, failure in outcome.failed.items()}
    return failed | _put(items, table)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What is to be stored of the views of a badge, and which of them failed, and why."""

    items: Mapping[View, Item] = field(default_factory=dict)
    failed: Mapping[View, Exception] = field(default_factory=dict)


def _prepared(
    badge_id: str, views: Sequence[View], table: Table, ttl: int, now: float
) -> _Prepared:
    """Raise the floor of a badge, and count those of its views that are hot."""
    try:
        stored_under = _raise_floor(badge_id, views, table, now)
    except Exception as failure:  # noqa: BLE001  whatever fails one badge must not delay the others
        return _Prepared(failed=dict.fromkeys(views, failure))
    items = {view: to_item(view, stored_under, ttl) for view in views if not view.hot}
    hot = [view for view in views if view.hot]
    try:
        _count_at_once(hot, stored_under, table, ttl, now)
    except Exception as failure:  # noqa: BLE001  the same
        return _Prepared(items, dict.fromkeys(hot, failure))
    return _Prepared(items)


def _count_at_once(
    views: Sequence[View], badge_id: str, table: Table, ttl: int, now: float
) -> None:
    if views:
        from chalicelib.views import early  # noqa: PLC0415  few badges are ever hot

        early.count(views, badge_id, table, ttl, now)


def _raise_floor(badge_id: str, views: Sequence[View], table: Table, now: float) -> str:
    """Let a badge never again show less than the visitors of these views saw, and one.

    Returns the id to store them under: another, where the badge has it by this name now.
    A floor that is as high already stays, and one of a count that has begun anew is of no use: the
    condition then fails, and that is well. Raises `StorageError`.
    """
    reset = max(view.reset for view in views)
    floor = max(view.shown for view in views if view.reset == reset) + 1
    update = Update(
        keys.user(badge_id),
        values={"floor": floor},
        defaults={"created": int(now)},
        condition=_lower(floor) & unchanged("reset", reset) & attribute("alias").not_exists(),
    )
    try:
        table.write(update)
    except ConditionFailed as failed:
        if alias := text(failed.items[0] or {}, "alias"):
            return _raise_floor(alias, views, table, now)
    return badge_id


def _lower(floor: int) -> ConditionBase:
    return attribute("floor").not_exists() | attribute("floor").lt(floor)


def _put(items: Mapping[View, Item], table: Table) -> dict[View, Exception]:
    try:
        table.put_all(list(items.values()))
    except NotStored as failure:
        missing = {key_of(item) for item in failure.items}
        return {view: failure for view, item in items.items() if key_of(item) in missing}
    except StorageError as failure:
        return dict.fromkeys(items, failure)
    return {}


def place(view: View, badge_id: str) -> Key:
    """Where a view lies in the table: itself, or of a hot one what shows that it is counted."""
    return keys.seen(view.ulid) if view.hot else keys.view(badge_id, view.ulid)


def to_item(view: View, badge_id: str, ttl: int) -> Item:
    """What lies in the table of a view; what is under no badge's key names it."""
    key = place(view, badge_id)
    badge: Item = {"badge": badge_id} if view.hot else {}
    return {"PK": key.pk, "SK": key.sk, **badge, "ttl": ttl}
