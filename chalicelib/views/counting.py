"""What a badge shows, and the taking of a view: the part of the way that a visitor waits for."""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.ports import Queue, StorageError, Table, number, text
from chalicelib.views import keys, storing
from chalicelib.views.storing import Lifetime
from chalicelib.views.view import View

MAX_ITEMS = 8_000
"""Items read of one badge, `USER` included: 7,999 live views."""
FIRST_READ = 100
"""A badge with fewer items costs one read; what lies behind is counted, not decoded."""


@dataclass(frozen=True, slots=True)
class Count:
    """The views of a badge: folded into the count, still live, and the floor under both."""

    folded: int
    live: int
    floor: int

    @property
    def shown(self) -> int:
        """Never less than the floor: a removed view that is not yet folded is in neither sum."""
        return max(self.folded + self.live, self.floor)


def read(table: Table, badge_id: str) -> Count:
    """Count the views of a badge. Raises `StorageError`.

    `USER` is read no later than the views, so that a fold in between makes the sum too low, where
    the floor holds, and never too high.
    """
    partition = keys.partition(badge_id)
    items = table.query(
        partition, first=keys.USER, limit=FIRST_READ, attributes=("SK", "count", "floor")
    )
    live = sum(text(item, "SK").startswith(keys.VIEW) for item in items)
    if len(items) == FIRST_READ:
        last = text(items[-1], "SK")
        live += table.count(partition, after=last, limit=MAX_ITEMS - FIRST_READ)
    user = items[0] if items and items[0]["SK"] == keys.USER else {}
    return Count(number(user, "count"), live, number(user, "floor"))


def take(view: View, queue: Queue, table: Table, lifetime: Lifetime, now: float) -> bool:
    """Enqueue the write of a view, or store it at once where the queue fails.

    Returns whether the queue took it. Raises `StorageError` where both fail: then it is lost, and
    its visitor must be told.
    """
    try:
        queue.send(view.to_message())
    except StorageError:
        storing.store_one(view, table, lifetime, now)
        return False
    return True
