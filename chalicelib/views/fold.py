"""`fold_views`: the stream consumer that folds a badge when TTL removes a window's marker."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING, Any

from chalice.app import Blueprint, DynamoDBEvent

from chalicelib import telemetry
from chalicelib.aws import resources
from chalicelib.aws.event_sources import TABLE_STREAM
from chalicelib.aws.stream_records import is_removal, padded, removed_at
from chalicelib.storage.errors import StorageError
from chalicelib.views import keys
from chalicelib.views.view import MalformedError

if TYPE_CHECKING:
    from chalicelib.views.folding import Folder

blueprint = Blueprint(__name__)


@dataclass(frozen=True, slots=True)
class MarkerRemoval:
    """A stream record of the removal of a window's marker.

    `mark` ends the window and `removed_at` is when the marker was removed (0 if unknown), both in
    seconds since 1970. `sequence` is the sequence number of the record.
    """

    badge_id: str
    mark: int
    sequence: str
    removed_at: float


class State(Enum):
    """What became of the fold of one badge."""

    DONE = auto()
    POSTPONED = auto()
    FAILED = auto()


@dataclass(frozen=True, slots=True)
class FoldOutcome:
    """What became of the fold of one badge, and how many views it counted."""

    state: State
    folded: int = 0


@blueprint.on_dynamodb_record(
    stream_arn=TABLE_STREAM,
    batch_size=1000,
    maximum_batching_window_in_seconds=5,
    starting_position="TRIM_HORIZON",
    name="fold_views",
)
def fold_views(event: DynamoDBEvent) -> dict[str, Any]:
    """Fold the badges of a batch; the partial batch response names where to deliver from again.

    Lambda delivers everything from the lowest reported sequence number on again; badges that are
    folded by then are left as they are. Source: the Lambda developer guide, "Configuring partial
    batch response with DynamoDB and Lambda".
    """
    from chalicelib.views.folding import Folder  # noqa: PLC0415  the API imports this module too
    from chalicelib.views.windows import Windows  # noqa: PLC0415

    telemetry.begin("fold_views", event.context)
    use = resources.current()
    removals, malformed = _parse(event.to_dict()["Records"])
    now = use.clock()
    folder = Folder(use.table, Windows.of(use.settings), use.clock)
    marks: dict[str, int] = {}
    for removal in removals:
        marks[removal.badge_id] = max(removal.mark, marks.get(removal.badge_id, 0))
    outcomes = dict(zip(marks, use.each(partial(_fold, folder), marks.items()), strict=True))
    telemetry.count(
        views_folded=sum(outcome.folded for outcome in outcomes.values()),
        folds_postponed=sum(outcome.state is State.POSTPONED for outcome in outcomes.values()),
        malformed=malformed,
        fold_lag_seconds=_lag(removals, now),
    )
    failed = [one for one in removals if outcomes[one.badge_id].state is State.FAILED]
    return {"batchItemFailures": _lowest(failed)}


def parse(record: Mapping[str, Any]) -> MarkerRemoval | None:
    """Return the removal of a marker that a stream record tells of, or None for another change.

    It does not matter who removed the marker. Raises `MalformedError`.
    """
    try:
        if not is_removal(record, keys.WINDOW, keys.WINDOW):
            return None
        change = record["dynamodb"]
        _, mark, badge_id = change["Keys"]["PK"]["S"].split("#", 2)
        padded(change["SequenceNumber"])
        return MarkerRemoval(badge_id, int(mark), change["SequenceNumber"], removed_at(record))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise MalformedError(f"expected a stream record of this table: {error!r}") from error


def _parse(records: Iterable[Mapping[str, Any]]) -> tuple[list[MarkerRemoval], int]:
    """Return the removals of markers, and how many records are malformed.

    A malformed record is logged and skipped: delivered again, it would delay its shard, and with
    it everybody's views, until the stream forgets it.
    """
    removals: list[MarkerRemoval] = []
    malformed = 0
    for record in records:
        try:
            removal = parse(record)
        except MalformedError:
            telemetry.event(logging.ERROR, "malformed_stream_record", record=record)
            malformed += 1
            continue
        if removal is not None:
            removals.append(removal)
    return removals, malformed


def _fold(folder: Folder, removed: tuple[str, int]) -> FoldOutcome:
    """Fold one badge. If that fails, put the marker again, so that its next removal folds again.

    The same is done if the grace was not over by this clock before the fold: TTL's may be ahead
    of it. So a badge that fails holds up no other in its shard. Only if the table does not take
    the marker either does the stream have to deliver the removal again.
    """
    badge_id, mark = removed
    folded, is_over = 0, folder.is_over(mark)
    try:
        folded = folder.fold(badge_id, mark * 1000)
        if is_over:
            return FoldOutcome(State.DONE, folded)
    except Exception as failure:  # noqa: BLE001  whatever fails one badge must not delay others
        telemetry.event(logging.ERROR, "badge_not_folded", badge=badge_id, reason=repr(failure))
    try:
        folder.postpone(badge_id, mark)
    except StorageError:
        return FoldOutcome(State.FAILED, folded)
    return FoldOutcome(State.POSTPONED, folded)


def _lag(removals: Iterable[MarkerRemoval], now: float) -> int:
    """Return how long the first removed marker of a batch waited for its fold, in seconds."""
    removed = [removal.removed_at or now for removal in removals]
    return max(0, round(now - min(removed, default=now)))


def _lowest(failed: Iterable[MarkerRemoval]) -> list[dict[str, str]]:
    lowest = min(failed, key=lambda removal: padded(removal.sequence), default=None)
    return [{"itemIdentifier": lowest.sequence}] if lowest else []
