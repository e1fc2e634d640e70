"""`fold_views`: the stream consumer that folds the views which TTL removed into their badge."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from chalice.app import Blueprint, DynamoDBEvent

from chalicelib import resources, telemetry
from chalicelib.event_sources import TABLE_STREAM
from chalicelib.views.view import MalformedError

if TYPE_CHECKING:
    from chalicelib.views.folding import Folded
    from chalicelib.views.removals import Removal

blueprint = Blueprint(__name__)


@blueprint.on_dynamodb_record(
    stream_arn=TABLE_STREAM,
    batch_size=1000,
    maximum_batching_window_in_seconds=5,
    starting_position="TRIM_HORIZON",
    name="fold_views",
)
def fold_views(event: DynamoDBEvent) -> dict[str, Any]:
    """Fold a batch of removals; the partial batch response names where to deliver from again.

    Lambda delivers everything from the lowest reported sequence number on again, so that one is
    all it needs; the badges that are folded by then drop what they have. Source: the Lambda
    developer guide, "Configuring partial batch response with DynamoDB and Lambda".
    """
    from chalicelib.views import folding  # noqa: PLC0415  the API imports this module too

    telemetry.begin("fold_views", event.context)
    use = resources.current()
    badges, malformed = _by_badge(event.to_dict()["Records"])
    now = use.clock()
    outcomes = list(use.each(lambda badge: folding.fold(badge, use.table, now), badges))
    telemetry.count(
        views_folded=sum(outcome.folded for outcome in outcomes),
        duplicates_dropped=sum(outcome.dropped for outcome in outcomes),
        malformed=malformed,
        fold_lag_seconds=_lag(badges, now),
    )
    return {"batchItemFailures": _failures(outcomes)}


def _by_badge(records: Iterable[Mapping[str, Any]]) -> tuple[list[list[Removal]], int]:
    """The removals of each badge, and how many records are malformed.

    A malformed record is logged and passed over: delivered again, it would hold up its shard, and
    with it everybody's views, until the stream forgets them.
    """
    from chalicelib.views import removals  # noqa: PLC0415

    badges: defaultdict[str, list[Removal]] = defaultdict(list)
    malformed = 0
    for record in records:
        try:
            removal = removals.parse(record)
        except MalformedError:
            telemetry.event(logging.ERROR, "a malformed stream record", record=record)
            malformed += 1
            continue
        if removal is not None:
            badges[removal.badge_id].append(removal)
    return list(badges.values()), malformed


def _lag(badges: Iterable[Iterable[Removal]], now: float) -> int:
    """How long the first removed view of a batch waited to be folded, in seconds."""
    removed = [removal.removed_at or now for badge in badges for removal in badge]
    return max(0, round(now - min(removed, default=now)))


def _failures(outcomes: Iterable[Folded]) -> list[dict[str, str]]:
    failed: list[Removal] = []
    for outcome in outcomes:
        if outcome.failed:
            telemetry.event(logging.WARNING, "a badge is not folded yet", reason=outcome.reason)
            failed += outcome.failed
    return [{"itemIdentifier": min(failed).sequence}] if failed else []
