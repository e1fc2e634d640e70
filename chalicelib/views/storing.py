"""Storing views: the floor under the count, then each view as an item with a time to live.

In this order the put is the last that can fail: a view that is reported as failed is, but for a
lost answer, not stored, and one whose badge has no floor above what it showed never was.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from chalicelib.concurrency import Each
from chalicelib.ports import (
    ConditionFailed,
    Item,
    NotStored,
    StorageError,
    Table,
    Update,
    attribute,
    key_of,
)
from chalicelib.settings import Settings
from chalicelib.views import keys
from chalicelib.views.view import View


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


def store_one(view: View, table: Table, lifetime: Lifetime, now: float) -> None:
    """Store a view that no queue has taken. Raises `StorageError`.

    It is taken by its put alone, so here the put comes first: a floor that counted it would stay
    if that failed, and the badge would show a view too many.
    """
    table.put_all([_item(view, lifetime.ttl(now))])
    _raise_floor(view.badge_id, view.shown + 1, table, now)


def store(
    views: Sequence[View],
    table: Table,
    lifetime: Lifetime,
    now: float,
    each: Each,
) -> dict[View, Exception]:
    """Raise the floors of the badges of views, then store these; returns who failed, and why.

    The views are taken, by their messages, so that a floor may count them before they are stored.
    A failure of one badge leaves the others stored. Storing a view again changes nothing but
    when it expires. `each` works through the badges, concurrently if it likes.
    """
    failed = _raise_floors(views, table, now, each)
    return failed | _put([view for view in views if view not in failed], table, lifetime.ttl(now))


def _raise_floors(
    views: Sequence[View], table: Table, now: float, each: Each
) -> dict[View, Exception]:
    """Once a badge, to one above the highest count that a visitor of these views saw."""
    floors: dict[str, int] = {}
    for view in views:
        floors[view.badge_id] = max(view.shown + 1, floors.get(view.badge_id, 0))
    outcomes = each(lambda floor: _failure_to_raise(*floor, table, now), floors.items())
    failures = dict(zip(floors, outcomes, strict=True))
    return {view: why for view in views if (why := failures[view.badge_id]) is not None}


def _failure_to_raise(badge_id: str, floor: int, table: Table, now: float) -> Exception | None:
    try:
        _raise_floor(badge_id, floor, table, now)
    except Exception as failure:  # noqa: BLE001  whatever fails one badge must not delay the others
        return failure
    return None


def _raise_floor(badge_id: str, floor: int, table: Table, now: float) -> None:
    """Let a badge never again show less than this. Raises `StorageError`.

    A floor that is as high already stays: the condition then fails, and that is well.
    """
    lower = attribute("floor").not_exists() | attribute("floor").lt(floor)
    update = Update(
        keys.user(badge_id),
        values={"floor": floor},
        defaults={"created": int(now)},
        condition=lower,
    )
    with suppress(ConditionFailed):
        table.write(update)


def _put(views: Sequence[View], table: Table, ttl: int) -> dict[View, Exception]:
    try:
        table.put_all([_item(view, ttl) for view in views])
    except NotStored as failure:
        missing = {key_of(item) for item in failure.items}
        return {view: failure for view in views if keys.view(view.badge_id, view.ulid) in missing}
    except StorageError as failure:
        return dict.fromkeys(views, failure)
    return {}


def _item(view: View, ttl: int) -> Item:
    key = keys.view(view.badge_id, view.ulid)
    return {"PK": key.pk, "SK": key.sk, "ttl": ttl}
