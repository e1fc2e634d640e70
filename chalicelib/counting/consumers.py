"""The consumers of views: `store_views` stores them, `fold_badges` folds them into the count."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from chalicelib import telemetry
from chalicelib.counting.view import Counting, CountingResources, View
from chalicelib.lazy import lazy
from chalicelib.storage.errors import StorageError
from chalicelib.storage.items import Key
from chalicelib.storage.messages import MalformedError, lag_seconds
from chalicelib.units import Seconds, WholeSeconds

if TYPE_CHECKING:
    from chalicelib.counting import folding, storing
else:
    folding, storing = lazy("chalicelib.counting.folding"), lazy("chalicelib.counting.storing")


@dataclass(frozen=True, slots=True)
class MarkerRemoval:
    """The removal of a window's marker.

    `mark` ends the window and `removed_at` is when the marker was removed, 0 if unknown.
    """

    badge_id: str
    mark: WholeSeconds
    removed_at: Seconds

    @classmethod
    def of(cls, key: Key, removed_at: Seconds) -> MarkerRemoval:
        """Return the removal of the marker under a key. Raises `MalformedError`."""
        try:
            _, mark, badge_id = key.pk.split("#", 2)
            return cls(badge_id, int(mark), removed_at)
        except ValueError as error:
            raise MalformedError(f"expected the key of a window's marker: {error!r}") from error


@dataclass(frozen=True, slots=True)
class FoldOutcome:
    """The number of views that one badge's fold counted.

    The fold is repeated after the next removal of its marker, or after the same removal again.
    """

    folded: int
    is_postponed: bool = False
    is_failed: bool = False


def store_views(views: Iterable[View], resources: CountingResources) -> set[View]:
    """Store views, or count them at once, by their age; return those to deliver again.

    A badge whose fold is overdue is folded if one of its views asks for that.
    """
    views = list(dict.fromkeys(views))
    counting = Counting.of(resources)
    failures = storing.store(counting, views)
    errors = [error for error in failures.values() if not isinstance(error, storing.InBetweenError)]
    for error in errors:
        telemetry.event(logging.WARNING, "view_not_stored", reason=str(error))
    overdue = list(dict.fromkeys(view.badge_id for view in views if view.fold))
    telemetry.count(
        views_put=len(views) - len(failures),
        views_waiting=len(failures) - len(errors),
        views_folded_early=sum(counting.map_parallel(partial(_fold_all, counting), overdue)),
    )
    return set(failures)


def _fold_all(counting: Counting, badge_id: str) -> int:
    """Fold a badge. A failure is logged, and the next request for the badge asks again."""
    try:
        return folding.BadgeFold(counting, badge_id).fold_all()
    except Exception as failure:  # noqa: BLE001  the views of the batch are stored nevertheless
        telemetry.event(logging.WARNING, "badge_not_folded", badge=badge_id, reason=repr(failure))
        return 0


def fold_badges(
    removals: Sequence[MarkerRemoval], resources: CountingResources
) -> list[MarkerRemoval]:
    """Fold the badges whose markers were removed; return the removals to deliver again.

    A badge that is folded already does not change.
    """
    counting = Counting.of(resources)
    now = counting.clock()
    marks: dict[str, WholeSeconds] = {}
    for removal in removals:
        marks[removal.badge_id] = max(removal.mark, marks.get(removal.badge_id, 0))
    fold = partial(_fold, counting)
    outcomes = dict(zip(marks, counting.map_parallel(fold, marks.items()), strict=True))
    telemetry.count(
        views_folded=sum(outcome.folded for outcome in outcomes.values()),
        folds_postponed=sum(outcome.is_postponed for outcome in outcomes.values()),
        fold_lag_seconds=lag_seconds((one.removed_at for one in removals), now),
    )
    return [one for one in removals if outcomes[one.badge_id].is_failed]


def _fold(counting: Counting, removed: tuple[str, int]) -> FoldOutcome:
    """Fold one badge. If that fails, put the marker again, so that its next removal folds again.

    The marker is also put again if by this clock the grace was not over before the fold, because
    TTL's clock may be ahead. So a failed badge delays no other. The removal is delivered again only
    if the table refuses the marker too.
    """
    badge_id, mark = removed
    badge = folding.BadgeFold(counting, badge_id)
    folded, is_over = 0, mark <= counting.foldable()
    try:
        folded = badge.fold(mark)
        if is_over:
            return FoldOutcome(folded)
    except Exception as failure:  # noqa: BLE001  a failure of one badge must not delay others
        telemetry.event(logging.ERROR, "badge_not_folded", badge=badge_id, reason=repr(failure))
    try:
        badge.postpone(mark)
    except StorageError:
        return FoldOutcome(folded, is_failed=True)
    return FoldOutcome(folded, is_postponed=True)
