"""`put_views`: the SQS consumer that stores the views which the GET enqueued."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from chalice.app import Blueprint, SQSEvent

from chalicelib import telemetry
from chalicelib.aws import resources
from chalicelib.aws.event_sources import VIEWS_QUEUE
from chalicelib.views.storing import InBetween, Store
from chalicelib.views.view import MalformedError, View
from chalicelib.views.windows import Windows

if TYPE_CHECKING:
    from chalicelib.resources import Resources

blueprint = Blueprint(__name__)

Record: TypeAlias = Mapping[str, Any]
"""A message as Lambda passes it on."""


@blueprint.on_sqs_message(
    queue_arn=VIEWS_QUEUE,
    batch_size=100,
    maximum_batching_window_in_seconds=1,
    maximum_concurrency=50,
    name="put_views",
)
def put_views(event: SQSEvent) -> dict[str, Any]:
    """Store a batch of views; the partial batch response names the messages to deliver again.

    A malformed message is delivered until it ends in the dead-letter queue; its neighbours are
    stored. Source of the response: the Lambda developer guide, "Handling errors for an SQS event
    source".
    """
    telemetry.begin("put_views", event.context)
    use = resources.current()
    views, malformed = _parse(event.to_dict()["Records"])
    store = Store(use.table, Windows.of(use.settings), use.clock, use.each)
    failures = store.store(views)
    waiting = [view for view, reason in failures.items() if isinstance(reason, InBetween)]
    for view, reason in failures.items():
        if view not in waiting:
            telemetry.event(logging.WARNING, "view_not_stored", reason=str(reason))
    telemetry.count(
        views_put=len(views) - len(failures),
        views_waiting=len(waiting),
        malformed=len(malformed),
        views_folded_early=_fold({view.badge_id for view in views if view.fold}, use),
    )
    undone = malformed + [record for view in failures for record in views[view]]
    return {"batchItemFailures": [{"itemIdentifier": record["messageId"]} for record in undone]}


def _fold(badges: Iterable[str], use: Resources) -> int:
    """Fold badges whose fold is overdue; a failure is logged, and the next GET asks again."""
    from chalicelib.views.folding import Folder  # noqa: PLC0415  few badges are ever overdue

    folder = Folder(use.table, Windows.of(use.settings), use.clock)

    def fold(badge_id: str) -> int:
        try:
            return folder.fold_all(badge_id)
        except Exception as failure:  # noqa: BLE001  the views of the batch are stored all the same
            telemetry.event(logging.WARNING, "badge_not_folded", reason=str(failure))
            return 0

    return sum(use.each(fold, badges))


def _parse(records: Iterable[Record]) -> tuple[dict[View, list[Record]], list[Record]]:
    """Return the views of a batch, each with the records that carry it, and malformed records."""
    views: defaultdict[View, list[Record]] = defaultdict(list)
    malformed: list[Record] = []
    for record in records:
        try:
            views[View.from_message(record.get("body"))].append(record)
        except MalformedError:
            telemetry.event(logging.ERROR, "malformed_message", message_id=record["messageId"])
            malformed.append(record)
    return views, malformed
