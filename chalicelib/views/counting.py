"""What a badge shows, and the taking of a view: the part of the way that a visitor waits for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from chalicelib.ports import Item, Queue, StorageError, Table, number, text
from chalicelib.views import keys, storing
from chalicelib.views.storing import Lifetime
from chalicelib.views.view import View, earliest

MAX_ITEMS = 8_000
"""Items read of one badge, `USER` included: 7,999 live views."""
HOT = 1_000
"""From so many live views on a badge is hot: each visitor reads them all, so no more are made."""
HOT_SECONDS = 3_600
"""For so long it stays hot, and its visitors read nothing but its count once those have ended."""
FIRST_READ = 100
"""A badge with fewer items costs one read; what lies behind is counted, not decoded."""
ATTRIBUTES = ("SK", "count", "floor", "base", "reset", "frozen", "alias", "hot")


@dataclass(frozen=True, slots=True)
class Count:
    """The views of a badge: folded into the count, still live, and the floor under both.

    `badge_id` is where they are: another id than the one asked for, if that was its new name.
    `base` is what the owner adds to what is shown, `frozen` that he counts nothing more. `reset` is
    when he let the count begin anew, in milliseconds since 1970: no view before it counts. `hot` is
    until when it is so, as it was seen before, in seconds since 1970.
    """

    folded: int
    live: int
    floor: int
    base: int = 0
    reset: int = 0
    frozen: bool = False
    hot: int = field(default=0, compare=False)
    badge_id: str = field(default="", compare=False)

    @property
    def counted(self) -> int:
        """Never less than the floor: a removed view that is not yet folded is in neither sum."""
        return max(self.folded + self.live, self.floor)

    @property
    def shown(self) -> int:
        return self.base + self.counted

    def hot_until(self, now: float) -> int:
        """Until when a view of it is to be counted at once; 0 where it is to be stored."""
        if self.live >= HOT:
            return int(now) + HOT_SECONDS
        return self.hot if self.hot > now else 0


def read(table: Table, badge_id: str) -> Count:
    """Count the views of a badge, whichever of its names is given. Raises `StorageError`.

    `USER` is read no later than the views, so that a fold in between makes the sum too low, where
    the floor holds, and never too high.
    """
    partition = keys.partition(badge_id)
    items = table.query(partition, first=keys.USER, limit=FIRST_READ, attributes=ATTRIBUTES)
    user = items[0] if items and items[0]["SK"] == keys.USER else {}
    if alias := text(user, "alias"):
        return read(table, alias)
    reset = number(user, "reset")
    return Count(
        folded=number(user, "count"),
        live=_live(table, partition, items, keys.VIEW + earliest(reset)),
        floor=number(user, "floor"),
        base=number(user, "base"),
        reset=reset,
        frozen=number(user, "frozen") == 1,
        hot=number(user, "hot"),
        badge_id=badge_id,
    )


def _live(table: Table, partition: str, items: Sequence[Item], first: str) -> int:
    """Live views with a sort key from `first` on: those decoded, and behind them those counted."""
    live = sum(text(item, "SK") >= first for item in items)
    if len(items) == FIRST_READ:
        last = text(items[-1], "SK")
        live += table.count(partition, after=max(last, first), limit=MAX_ITEMS - FIRST_READ)
    return live


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
