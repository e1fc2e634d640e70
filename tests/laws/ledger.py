"""What the five laws are checked against: every view that was taken, every count that was shown."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from chalicelib.ports import Table, number
from chalicelib.views import counting, keys


class Ledger:
    """Knows of each badge the views taken, and the lowest count it may ever show again."""

    def __init__(self) -> None:
        self.taken: defaultdict[str, set[str]] = defaultdict(set)
        self.lowest: defaultdict[str, int] = defaultdict(int)
        self.acknowledged: defaultdict[str, int] = defaultdict(int)

    def take(self, badge_id: str, ulid: str) -> None:
        """The storage has this view, as a message or as an item."""
        self.taken[badge_id].add(ulid)

    def put_done(self, badge_id: str, shown: int) -> None:
        """The put of a shown count is done: no later response may be lower."""
        self.lowest[badge_id] = max(self.lowest[badge_id], shown)

    def check_badge(self, badge_id: str, body: dict[str, Any], taken_before: int) -> None:
        """Laws 2 and 3 for one response."""
        if body.get("isError"):
            return
        shown = int(body["message"])
        assert shown <= taken_before, f"over: {shown} shown, {taken_before} taken before"
        assert shown >= self.lowest[badge_id], f"down: {shown} shown after {self.lowest[badge_id]}"

    def check_quiet(self, table: Table) -> None:
        """Law 1 once every view is folded, and the history with it."""
        for badge_id, views in self.taken.items():
            count = counting.read(table, badge_id)
            assert count.live == 0
            assert count.folded == len(views), f"{count.folded} counted, {len(views)} taken"
            assert count.shown == len(views)
            assert self.acknowledged[badge_id] <= len(views)
            assert _history(table, badge_id) == len(views)


def _history(table: Table, badge_id: str) -> int:
    days = table.query(keys.partition(badge_id), first=keys.DAY, last=keys.DAY + "~", limit=10_000)
    for day in days:
        hours = sum(number(day, name) for name in day if name.startswith("h"))
        assert hours == number(day, "views")
    return sum(number(day, "views") for day in days)
