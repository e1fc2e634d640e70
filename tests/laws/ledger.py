"""What the five laws are checked against: every view that was taken, every count that was shown."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from chalicelib.ports import Item, Table, number, text
from chalicelib.views import counting, keys
from chalicelib.views.view import earliest


@dataclass(frozen=True)
class Owned:
    """What an owner has made of a badge; an owner's `base` is added to what it shows."""

    reset: int = 0
    base: int = 0
    frozen: bool = False
    alias: str = ""

    @classmethod
    def of(cls, user: Item) -> Owned:
        frozen = number(user, "frozen") == 1
        return cls(number(user, "reset"), number(user, "base"), frozen, text(user, "alias"))


class Ledger:
    """Knows of each badge the views taken, and the lowest count it may ever show again."""

    def __init__(self) -> None:
        self.taken: defaultdict[str, set[str]] = defaultdict(set)
        self.lowest: defaultdict[str, int] = defaultdict(int)
        self.acknowledged: defaultdict[str, int] = defaultdict(int)
        self.owned: defaultdict[str, Owned] = defaultdict(Owned)

    def place(self, badge_id: str) -> str:
        """The badge that has this name now."""
        return self.owned[badge_id].alias or badge_id

    def take(self, name: str, ulid: str) -> None:
        """The storage has this view, as a message or as an item."""
        badge_id = self.place(name)
        if ulid >= earliest(self.owned[badge_id].reset):
            self.taken[badge_id].add(ulid)

    def own(self, name: str, now: Owned) -> None:
        """Its owner may have changed what a name is."""
        before, self.owned[name] = self.owned[name], now
        if now.reset != before.reset:
            self._begin_anew(name, now.reset)
        if now.alias and not before.alias:
            self._move(name)

    def _begin_anew(self, badge_id: str, reset: int) -> None:
        """The count begins anew: what was taken before is forgotten."""
        first = earliest(reset)
        self.taken[badge_id] = {ulid for ulid in self.taken[badge_id] if ulid >= first}
        self.lowest[badge_id] = self.acknowledged[badge_id] = 0

    def _move(self, name: str) -> None:
        """It is a badge's name now: views of it that were on their way are that badge's."""
        for ulid in self.taken.pop(name, set()):
            self.take(name, ulid)
        self.acknowledged[name] = self.lowest[name] = 0

    def put_done(self, name: str, counted: int, reset: int) -> None:
        """The put of a count is done: until its next reset, no later response may be lower."""
        badge_id = self.place(name)
        if reset == self.owned[badge_id].reset:
            self.lowest[badge_id] = max(self.lowest[badge_id], counted)

    def look(self, name: str) -> Look:
        """Somebody asks for a badge."""
        badge_id = self.place(name)
        names = {other: self.place(other) for other in (name, badge_id)}
        return Look(self, badge_id, len(self.taken[badge_id]), self.owned[badge_id], names)

    def check_quiet(self, table: Table) -> None:
        """Law 1 once every view is folded, and the history with it."""
        for name, views in self.taken.items():
            badge_id = self.place(name)
            if badge_id != name:
                assert not views, f"{name} leads to {badge_id}, which has its views"
                continue
            owned = self.owned[badge_id]
            count = counting.read(table, badge_id)
            assert count.live == 0
            assert count.folded == len(views), f"{count.folded} counted, {len(views)} taken"
            assert count.shown == owned.base + len(views)
            assert self.acknowledged[badge_id] <= len(views)
            assert _history(table, badge_id, owned.reset) == len(views)


@dataclass(frozen=True)
class Look:
    """A GET under way, and what was known of its badge before."""

    ledger: Ledger
    badge_id: str
    taken: int
    owned: Owned
    names: dict[str, str]

    @property
    def undisturbed(self) -> bool:
        """No owner changed the badge meanwhile."""
        names = {name: self.ledger.place(name) for name in self.names}
        return self.owned == self.ledger.owned[self.badge_id] and names == self.names

    def check(self, body: dict[str, Any]) -> None:
        """Laws 2 and 3 for the response, where nothing came in between."""
        if body.get("isError"):
            return
        shown, lowest = int(body["message"]) - self.owned.base, self.ledger.lowest[self.badge_id]
        assert shown <= self.taken, f"over: {shown} shown, {self.taken} taken before"
        assert shown >= lowest, f"down: {shown} shown after {lowest}"

    def answered(self, body: dict[str, Any], *, peek: bool) -> bool:
        """Whether it has taken a view: a frozen badge takes none, unless it can't be read.

        An error may have, for the answer of a queue that took the view may be lost.
        """
        said_taken = "view taken" in body["message"]
        if peek or (self.owned.frozen and not body.get("isError")):
            assert len(self.ledger.taken[self.badge_id]) == self.taken, "a view that was not to be"
            return False
        taken = said_taken or not body.get("isError")
        self.ledger.acknowledged[self.badge_id] += taken
        return taken


def _history(table: Table, badge_id: str, reset: int) -> int:
    """The views of all days from the one on at which the count began."""
    first = keys.day(badge_id, datetime.fromtimestamp(reset / 1000, UTC)).sk
    days = table.query(keys.partition(badge_id), first=first, last=keys.DAY + "~", limit=10_000)
    for day in days:
        hours = sum(number(day, name) for name in day if name.startswith("h"))
        assert hours == number(day, "views")
    return sum(number(day, "views") for day in days)
