"""What the five laws are checked against: every view that was taken, every count that was shown."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from typing import Any

from chalicelib.ports import Table, number
from chalicelib.views import counting, keys
from chalicelib.views.view import earliest


class Ledger:
    """Knows of each badge the views taken, and the lowest count it may ever show again."""

    def __init__(self) -> None:
        self.taken: defaultdict[str, set[str]] = defaultdict(set)
        self.lowest: defaultdict[str, int] = defaultdict(int)
        self.acknowledged: defaultdict[str, int] = defaultdict(int)
        self.reset: defaultdict[str, int] = defaultdict(int)

    def take(self, badge_id: str, ulid: str) -> None:
        """The storage has this view, as a message or as an item."""
        if ulid >= earliest(self.reset[badge_id]):
            self.taken[badge_id].add(ulid)

    def begin_anew(self, badge_id: str, reset: int) -> None:
        """Its owner let the count begin anew: what was taken before is forgotten."""
        self.reset[badge_id] = reset
        first = earliest(reset)
        self.taken[badge_id] = {ulid for ulid in self.taken[badge_id] if ulid >= first}
        self.lowest[badge_id] = self.acknowledged[badge_id] = 0

    def move(self, badge_id: str, to: str) -> None:
        """A badge has this id as its name now: views of it that were on their way are its views."""
        for ulid in self.taken.pop(badge_id, set()):
            self.take(to, ulid)
        self.acknowledged[badge_id] = 0

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
            assert _history(table, badge_id, self.reset[badge_id]) == len(views)


def _history(table: Table, badge_id: str, reset: int) -> int:
    """The views of all days from the one on at which the count began."""
    first = keys.day(badge_id, datetime.fromtimestamp(reset / 1000, UTC)).sk
    days = table.query(keys.partition(badge_id), first=first, last=keys.DAY + "~", limit=10_000)
    for day in days:
        hours = sum(number(day, name) for name in day if name.startswith("h"))
        assert hours == number(day, "views")
    return sum(number(day, "views") for day in days)
