"""`put_views`: the SQS consumer that stores the views which the GET enqueued."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from chalice.app import Blueprint, SQSEvent

from chalicelib import resources, telemetry
from chalicelib.event_sources import VIEWS_QUEUE
from chalicelib.views import storing
from chalicelib.views.storing import Lifetime
from chalicelib.views.view import MalformedError, View, taken_at

if TYPE_CHECKING:
    from chalicelib.resources import Resources

blueprint = Blueprint(__name__)

Record: TypeAlias = Mapping[str, Any]
"""A message as Lambda hands it on."""


@blueprint.on_sqs_message(
    queue_arn=VIEWS_QUEUE,
    batch_size=100,
    maximum_batching_window_in_seconds=1,
    maximum_concurrency=50,
    name="put_views",
)
def put_views(event: SQSEvent) -> dict[str, Any]:
    """Store a batch of views; the partial batch response names the messages to deliver again.

    A malformed message is delivered until it ends in the dead-letter queue, its neighbours are
    stored. Source of the response: the Lambda developer guide, "Handling errors for an SQS event
    source".
    """
    telemetry.begin("put_views", event.context)
    use = resources.current()
    now = use.clock()
    records = event.to_dict()["Records"]
    views, malformed = _parse(records)
    failed = storing.store(list(views), use.table, Lifetime.of(use.settings), now, use.each)
    for reason in failed.values():
        telemetry.event(logging.WARNING, "a view is not stored yet", reason=str(reason))
    hot = {view.badge_id for view in views if view.hot}
    if hot and use.ttl_lags:
        telemetry.count(views_folded_early=_fold_early(hot, use, now))
    telemetry.count(
        views_put=len(views) - len(failed),
        malformed=len(malformed),
        late_redeliveries=_late(views, now - use.settings.redelivery_seconds),
    )
    undone = malformed + [record for view in failed for record in views[view]]
    return {"batchItemFailures": [{"itemIdentifier": record["messageId"]} for record in undone]}


def _fold_early(badges: Collection[str], use: Resources, now: float) -> int:
    """Count the views of hot badges whose time is over; where TTL comes at once, it does that."""
    from chalicelib.views import early  # noqa: PLC0415  few badges are ever hot

    def fold(badge_id: str) -> int:
        try:
            return early.fold_expired(badge_id, use.table, now)
        except Exception as failure:  # noqa: BLE001  the views of the batch are stored all the same
            telemetry.event(logging.WARNING, "a hot badge is not folded yet", reason=str(failure))
            return 0

    return sum(use.each(fold, badges))


def _parse(records: Iterable[Record]) -> tuple[dict[View, list[Record]], list[Record]]:
    """The views of a batch, each with the records that carry it, and the malformed records."""
    views: defaultdict[View, list[Record]] = defaultdict(list)
    malformed: list[Record] = []
    for record in records:
        try:
            views[View.from_message(record.get("body"))].append(record)
        except MalformedError:
            telemetry.event(logging.ERROR, "a malformed message", message_id=record["messageId"])
            malformed.append(record)
    return views, malformed


def _late(views: Mapping[View, Iterable[Record]], horizon: float) -> int:
    """How many messages were delivered before and hold a view taken before a time.

    Such a view may have been removed and folded since it was first stored, and then counts twice:
    this is the most that can have been doubled.
    """
    return sum(
        _delivered_before(record) and taken_at(view.ulid).timestamp() < horizon
        for view, records in views.items()
        for record in records
    )


def _delivered_before(record: Record) -> bool:
    return int(record["attributes"]["ApproximateReceiveCount"]) > 1
