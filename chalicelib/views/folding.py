"""The fold: removed views become the count and the history of their badge, each exactly once.

Every item they are folded into, `USER` and each `DAY#`, keeps its own `folded`: the place in the
stream up to which it has them. Two deliveries of one batch, drawn with the `folded` of an item
before and after each write:

    folded   absent ──────────────▶ 7 ────────────────────────▶ 9
    first    [5 7] absent or < 5: folds 2
    second   [5 7 9] absent or < 5 fails, answers folded = 7
             drops 5 and 7         [9] folded is still 7: folds 1

A batch whose fold died between two items, delivered again:

    USER     absent ──▶ 7     [5 7] absent or < 5 fails, answers folded = 7: drops both
    DAY#     absent           [5 7] absent or < 5: folds 2 ──▶ 7
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from chalicelib.ports import (
    ConditionFailed,
    Key,
    Table,
    Unavailable,
    Update,
    Value,
    attribute,
    number,
    text,
    unchanged,
)
from chalicelib.views import keys
from chalicelib.views.days import by_day, sums
from chalicelib.views.removals import Removal

if TYPE_CHECKING:
    from boto3.dynamodb.conditions import ConditionBase

TRIES = 5
"""Each failed try means that another fold into the same item came in between."""


@dataclass(frozen=True, slots=True)
class Folded:
    """What became of the removals of one badge.

    `folded` are new in its count; `dropped` were in it already, or twice in the batch; `failed`, in
    the order of the stream, may not yet be in every item they belong to.
    """

    folded: int = 0
    dropped: int = 0
    failed: tuple[Removal, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """What one item takes of a batch: removals in the order of the stream, and what they add."""

    key: Key
    removals: Sequence[Removal]
    sums: Callable[[Sequence[Removal]], Mapping[str, int]]
    defaults: Mapping[str, Value] = field(default_factory=dict)

    def update(self, removals: Sequence[Removal], unfolded: ConditionBase) -> Update:
        """Fold some of the removals, on a condition."""
        return Update(
            self.key,
            values={"folded": removals[-1].position},
            defaults=self.defaults,
            add=self.sums(removals),
            condition=unfolded,
        )


def fold(removals: Sequence[Removal], table: Table, now: float) -> Folded:
    """Fold removals of one badge; a failure at one of its days leaves the others to be done.

    The badge comes first: it knows when its count began anew, and what was taken before that
    belongs to no day either.
    """
    if not removals:
        return Folded()
    waiting = sorted(set(removals))
    user = _outcome(_badge(waiting, now), table)
    days = [_outcome(day, table) for day in _days(waiting[0].badge_id, user.counting)]
    outcomes = [user, *days]
    return Folded(
        user.folded,
        len(removals) - user.folded - len(user.failed),
        tuple(sorted({removal for outcome in outcomes for removal in outcome.failed})),
        "; ".join(dict.fromkeys(outcome.reason for outcome in outcomes if outcome.failed)),
    )


def _badge(removals: Sequence[Removal], now: float) -> Part:
    return Part(keys.user(removals[0].badge_id), removals, _count, {"created": int(now)})


def _days(badge_id: str, removals: Sequence[Removal]) -> Iterator[Part]:
    return (Part(day, own, sums) for day, own in by_day(badge_id, removals))


def _count(removals: Sequence[Removal]) -> dict[str, int]:
    return {"count": len(removals)}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a part: how many are new in its item, and those that count by its reset."""

    folded: int = 0
    counting: Sequence[Removal] = ()
    failed: tuple[Removal, ...] = ()
    reason: str = ""


def _outcome(part: Part, table: Table) -> Outcome:
    try:
        return _fold_into_item(part, table)
    except Exception as failure:  # noqa: BLE001  whatever fails one item must not delay the others
        return Outcome(failed=tuple(part.removals), reason=repr(failure))


def _fold_into_item(part: Part, table: Table) -> Outcome:
    """Fold removals into one item by one update."""
    counting = removals = part.removals
    unfolded = _before(removals[0].position) & _begun_by(min(r.taken_at for r in removals))
    for _ in range(TRIES):
        try:
            table.write(part.update(removals, unfolded))
        except ConditionFailed as failed:
            item = failed.items[0] or {}
            position, reset = text(item, "folded"), number(item, "reset")
            counting = [
                removal for removal in part.removals if _milliseconds(removal.taken_at) >= reset
            ]
            removals = [removal for removal in counting if removal.position > position]
            if not removals:
                return Outcome(0, counting)
            unfolded = unchanged("folded", position) & unchanged("reset", reset)
        else:
            return Outcome(len(removals), counting)
    raise Unavailable(f"{TRIES} other folds came in between")


def _milliseconds(moment: datetime) -> int:
    """Since 1970, as a ULID has it."""
    return round(moment.timestamp() * 1000)


def _before(position: str) -> ConditionBase:
    return attribute("folded").not_exists() | attribute("folded").lt(position)


def _begun_by(taken_at: datetime) -> ConditionBase:
    return attribute("reset").not_exists() | attribute("reset").lte(_milliseconds(taken_at))
