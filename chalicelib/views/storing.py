"""Storing views: each as an item of its own with a time to live, then the floor under the count."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
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
    """Store one view. Raises `StorageError`."""
    for failure in store([view], table, lifetime, now, map).values():
        raise failure


def store(
    views: Sequence[View],
    table: Table,
    lifetime: Lifetime,
    now: float,
    each: Each,
) -> dict[View, Exception]:
    """Store views and raise the floors of their badges; returns those that failed, and why.

    A failure of one badge leaves the others stored. Storing a view again changes nothing but
    when it expires. `each` works through the badges, concurrently if it likes.
    """
    failed = _put(views, table, lifetime.ttl(now))
    badges: defaultdict[str, list[View]] = defaultdict(list)
    for view in views:
        if view not in failed:
            badges[view.badge_id].append(view)
    outcomes = each(lambda stored: _raise_floor(stored, table, now), badges.values())
    for stored, failure in zip(badges.values(), outcomes, strict=True):
        if failure is not None:
            failed |= dict.fromkeys(stored, failure)
    return failed


def _put(views: Sequence[View], table: Table, ttl: int) -> dict[View, Exception]:
    items: list[Item] = []
    for view in views:
        key = keys.view(view.badge_id, view.ulid)
        items.append({"PK": key.pk, "SK": key.sk, "ttl": ttl})
    try:
        table.put_all(items)
    except NotStored as failure:
        missing = {key_of(item) for item in failure.items}
        return {view: failure for view in views if keys.view(view.badge_id, view.ulid) in missing}
    except StorageError as failure:
        return dict.fromkeys(views, failure)
    return {}


def _raise_floor(stored: Sequence[View], table: Table, now: float) -> Exception | None:
    """Let the badge of these views never again show less than any of their visitors saw, and one.

    A floor that is as high already stays: the condition then fails, and that is well.
    """
    floor = max(view.shown for view in stored) + 1
    lower = attribute("floor").not_exists() | attribute("floor").lt(floor)
    update = Update(
        keys.user(stored[0].badge_id),
        values={"floor": floor},
        defaults={"created": int(now)},
        condition=lower,
    )
    try:
        table.write(update)
    except ConditionFailed:
        return None
    except Exception as failure:  # noqa: BLE001  whatever fails one badge must not delay the others
        return failure
    return None
