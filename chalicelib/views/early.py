"""The early fold: views of a hot badge become part of its count in transactions, not by their TTL.

Each visitor of a badge reads all its live views. So of a hot badge no more are made: a view that is
new is counted at once, and what shows that it was is a marker in a partition of its own, which
nobody reads and which lives as long as the view would. Views from before are counted as soon as
their time is over, whenever TTL comes.

    a new view       its marker is put, on the condition that there is none
    an expired view  it is removed, on the condition that it is as it was read

The badge stays hot for an hour: once the old views have ended, its count alone is read.

Either is in one transaction with the count and the history. So a view is counted once, however
often its message comes, whoever folds beside this, and whether TTL or this removes it: such a
removal is none of TTL's own, and the stream's consumer passes it over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import islice

from chalicelib.ports import (
    MAX_TRANSACTION_WRITES,
    ConditionFailed,
    Delete,
    Put,
    Table,
    Unavailable,
    Update,
    attribute,
    number,
    text,
    unchanged,
)
from chalicelib.views import keys
from chalicelib.views.days import by_day, sums
from chalicelib.views.storing import to_item
from chalicelib.views.view import View, earliest, is_ulid, taken_at

TRIES = 10
"""Each failed try means that others took some of the views, or that the count began anew."""
TRANSACTIONS = 4
"""How many of them remove expired views at one call."""


@dataclass(frozen=True, slots=True)
class Step:
    """A view, and the write that can be done but once and takes it into the count."""

    ulid: str
    taken_at: datetime
    write: Put | Delete

    @classmethod
    def of_new(cls, view: View, badge_id: str, ttl: int) -> Step:
        marker = to_item(view, badge_id, ttl)
        put = Put(marker, condition=attribute("SK").not_exists())
        return cls(view.ulid, taken_at(view.ulid), put)

    @classmethod
    def of_expired(cls, badge_id: str, ulid: str, ttl: int) -> Step:
        delete = Delete(keys.view(badge_id, ulid), condition=attribute("ttl").eq(ttl))
        return cls(ulid, taken_at(ulid), delete)


def count(views: Sequence[View], badge_id: str, table: Table, ttl: int, now: float) -> int:
    """Count new views of one badge at once; returns how many were not counted before.

    Raises `StorageError`: then some may be counted, and asking again counts the others.
    """
    once = {view.ulid: Step.of_new(view, badge_id, ttl) for view in views}
    reset = max((view.reset for view in views), default=0)
    fold = Fold(table, int(now), max((view.hot for view in views), default=0))
    return sum(fold.take(badge_id, reset, steps) for steps in _transactions(once.values()))


def fold_expired(badge_id: str, table: Table, now: float) -> int:
    """Count and remove the oldest views whose time is over; returns how many were counted.

    At most `TRANSACTIONS` of them, so that a batch of messages is not held up for long. Raises
    `StorageError`.
    """
    user = table.get(keys.user(badge_id)) or {}
    if alias := text(user, "alias"):
        return fold_expired(alias, table, now)
    fold, reset = Fold(table, int(now), number(user, "hot")), number(user, "reset")
    transactions = islice(_transactions(_expired(badge_id, table, now)), TRANSACTIONS)
    return sum(fold.take(badge_id, reset, steps) for steps in transactions)


def _expired(badge_id: str, table: Table, now: float) -> Iterator[Step]:
    """The oldest first; what is no view, or has no time to live, is left to whoever wrote it."""
    items = table.query(
        keys.partition(badge_id),
        first=keys.VIEW,
        limit=TRANSACTIONS * MAX_TRANSACTION_WRITES,
        attributes=("SK", "ttl"),
    )
    for item in items:
        ulid, ttl = text(item, "SK").removeprefix(keys.VIEW), number(item, "ttl")
        if 0 < ttl < now and is_ulid(ulid):
            yield Step.of_expired(badge_id, ulid, ttl)


def _transactions(steps: Iterable[Step]) -> Iterator[list[Step]]:
    """As many at once as a transaction takes, beside the badge and the days that they are of."""
    part: list[Step] = []
    days: set[date] = set()
    for step in steps:
        day = step.taken_at.date()
        if 1 + len(days | {day}) + len(part) + 1 > MAX_TRANSACTION_WRITES:
            yield part
            part, days = [], set()
        part.append(step)
        days.add(day)
    if part:
        yield part


@dataclass(frozen=True, slots=True)
class Fold:
    """Takes views into counts at a time; `hot` is until when their badge is so."""

    table: Table
    now: int
    hot: int

    def take(self, badge_id: str, reset: int, steps: Sequence[Step]) -> int:
        """Take views into a count in one transaction; those that are in it already are left out.

        What was taken before the count began anew belongs to it no more, nor to any day.
        """
        left = list(steps)
        for _ in range(TRIES):
            first = earliest(reset)
            counting = [step for step in left if step.ulid >= first]
            days = [Update(day, add=sums(own)) for day, own in by_day(badge_id, counting)]
            badge = self._badge(badge_id, reset, len(counting))
            try:
                self.table.write(badge, *days, *(step.write for step in left))
            except ConditionFailed as failed:
                if 0 in failed.items:
                    user = failed.items[0] or {}
                    badge_id, reset = text(user, "alias") or badge_id, number(user, "reset")
                places = enumerate(left, 1 + len(days))
                left = [step for place, step in places if place not in failed.items]
                if not left:
                    return 0
            else:
                return len(counting)
        raise Unavailable(f"{TRIES} other folds of {badge_id} came in between")

    def _badge(self, badge_id: str, reset: int, views: int) -> Update:
        return Update(
            keys.user(badge_id),
            values={"hot": self.hot},
            add={"count": views},
            defaults={"created": self.now},
            condition=unchanged("reset", reset) & attribute("alias").not_exists(),
        )
