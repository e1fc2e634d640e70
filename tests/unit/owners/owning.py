"""Requests of owners for the badge of the tests, at noon unless a test says otherwise."""

from __future__ import annotations

from typing import Any

from chalicelib.counting import badge_count, keys
from chalicelib.http.tokens import digest
from chalicelib.owners import changing, claiming, finding
from chalicelib.owners.changing import BadgeChange
from chalicelib.owners.finding import OwnedBadge
from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.items import Item, Value
from chalicelib.storage.ports import Table
from simulation.clocks import NOON
from simulation.storage import FaultyTable, once
from simulation.views import BADGE, WINDOWS, store

AHEAD = 5_000
"""Milliseconds that the end of a life is after the clock."""
LATER = NOON + 3_600
OWN_DIGEST = digest("a secret of the owner's own")
LOST = UnavailableError("no answer")


def claim(table: Table, badge_id: str = BADGE, base: int = 0, now: float = NOON) -> str:
    return claiming.claim(table, badge_id, base, now)


def claimed(table: Table, badge_id: str = BADGE, base: int = 0) -> OwnedBadge:
    return finding.authenticate(table, badge_id, claim(table, badge_id, base))


def change(table: Table, owned: OwnedBadge, now: float = NOON, **wanted: Any) -> None:
    """Change a badge; `wanted` has the fields of a `BadgeChange`."""
    changing.change(table, owned, BadgeChange(**wanted), now)


def rename(table: Table, owned: OwnedBadge, *names: str) -> OwnedBadge:
    for name in names:
        change(table, owned, name=name)
    return again(table, owned)


def delete(table: Table, owned: OwnedBadge, now: float = NOON) -> None:
    changing.delete(table, owned, now, WINDOWS.retention)


def again(table: Table, owned: OwnedBadge) -> OwnedBadge:
    """Return the badge as a request that comes now finds it."""
    return OwnedBadge.of(owned.badge_id, owner(table, owned.badge_id))


def visit(table: Table, now: float = NOON, badge_id: str = BADGE, times: int = 1) -> None:
    for _ in range(times):
        view = badge_count.read(table, badge_id).view(WINDOWS, now)
        assert store(table, view, now=now) == {}


def owner(table: Table, badge_id: str = BADGE) -> Item:
    return table.get(keys.owner(badge_id)) or {}


def items(table: Table, badge_id: str = BADGE) -> list[Item]:
    return table.query(keys.partition(badge_id), limit=1000)


def put_day(table: Table, day: str, **attributes: Value) -> None:
    table.put_all([keys.day(BADGE, day).item(**attributes)])


def deleted_meanwhile(table: Table, owned: OwnedBadge, *, is_claimed: bool) -> FaultyTable:
    """Return a table in which a badge is deleted before the next write, and perhaps claimed."""

    def act() -> None:
        delete(table, owned)
        if is_claimed:
            claim(table, base=3)

    return FaultyTable(table, before_write=once(act))


def renamed_meanwhile(table: Table, owned: OwnedBadge, step: str) -> FaultyTable:
    """Return a table in which a badge is renamed to `mona` before a write, or the second read."""
    raced = FaultyTable(table)
    other = once(lambda: change(table, owned, name="mona"), after=int(step == "before_read"))
    setattr(raced, step, other)
    return raced
