"""The fold: removed views become the count and the history of their badge, each exactly once.

Two deliveries of one batch, drawn with the badge's `folded` before and after each write:

    folded   absent ──────────────▶ 7 ────────────────────────▶ 9
    first    [5 7] absent or < 5: folds 2
    second   [5 7 9] absent or < 5 fails, answers folded = 7
             drops 5 and 7         [9] folded is still 7: folds 1
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chalicelib.ports import (
    MAX_TRANSACTION_WRITES,
    ConditionFailed,
    Table,
    Unavailable,
    Update,
    attribute,
    text,
)
from chalicelib.views import keys
from chalicelib.views.removals import Removal

if TYPE_CHECKING:
    from boto3.dynamodb.conditions import ConditionBase

TRIES = 5
"""Each failed try means that another fold of the same badge came in between."""


@dataclass(frozen=True, slots=True)
class Folded:
    """What became of the removals of one badge."""

    folded: int = 0
    dropped: int = 0
    failed: tuple[Removal, ...] = ()
    reason: str = ""


def fold(removals: Sequence[Removal], table: Table, now: float) -> Folded:
    """Fold removals of one badge, in the order of the stream; a failure leaves the rest to fold."""
    waiting = sorted(set(removals))
    given, folded = len(removals), 0
    try:
        for part in _transactions(waiting):
            folded += _fold_part(part, table, now)
            waiting = waiting[len(part) :]
    except Exception as failure:  # noqa: BLE001  whatever fails one badge must not delay the others
        failed = tuple(waiting)
        return Folded(folded, given - folded - len(failed), failed, repr(failure))
    return Folded(folded, given - folded)


def _transactions(removals: Sequence[Removal]) -> Iterator[Sequence[Removal]]:
    """Cut removals so that no transaction writes more than the badge and 99 days."""
    start, days = 0, set[str]()
    for place, removal in enumerate(removals):
        day = keys.day(removal.badge_id, removal.taken_at).sk
        if len(days | {day}) >= MAX_TRANSACTION_WRITES:
            yield removals[start:place]
            start, days = place, set()
        days.add(day)
    if removals:
        yield removals[start:]


def _fold_part(removals: Sequence[Removal], table: Table, now: float) -> int:
    """Fold removals in one transaction; returns how many were not folded before."""
    unfolded: ConditionBase = attribute("folded").not_exists() | attribute("folded").lt(
        removals[0].position
    )
    for _ in range(TRIES):
        try:
            table.write(*_writes(removals, unfolded, now))
        except ConditionFailed as failed:
            position = text(failed.items[0] or {}, "folded")
            removals = [removal for removal in removals if removal.position > position]
            if not removals:
                return 0
            unfolded = attribute("folded").eq(position)
        else:
            return len(removals)
    raise Unavailable(f"{TRIES} other folds came in between")


def _writes(removals: Sequence[Removal], unfolded: ConditionBase, now: float) -> Iterator[Update]:
    """The badge first: its condition alone can fail."""
    badge_id = removals[0].badge_id
    yield Update(
        keys.user(badge_id),
        values={"folded": removals[-1].position},
        defaults={"created": int(now)},
        add={"count": len(removals)},
        condition=unfolded,
    )
    hours = Counter((keys.day(badge_id, r.taken_at), f"h{r.taken_at:%H}") for r in removals)
    for day in sorted({day for day, _ in hours}):
        counts = {hour: views for (of_day, hour), views in hours.items() if of_day == day}
        yield Update(day, add={"views": sum(counts.values()), **counts})
