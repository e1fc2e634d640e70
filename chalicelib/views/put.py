"""`put_views`: the SQS consumer that stores the views which the GET enqueued."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from chalice.app import Blueprint, SQSEvent

from chalicelib import resources, telemetry
from chalicelib.views import storing
from chalicelib.views.storing import Lifetime
from chalicelib.views.view import MalformedError, View, taken_at

blueprint = Blueprint(__name__)


@blueprint.on_sqs_message(queue="vu-mi-views", batch_size=10, name="put_views")
def put_views(event: SQSEvent) -> dict[str, Any]:
    """Store a batch of views; the partial batch response names the messages to deliver again.

    A malformed message is delivered until it ends in the dead-letter queue, its neighbours are
    stored. Source of the response: the Lambda developer guide, "Handling errors for an SQS event
    source".
    """
    use = resources.current()
    now = use.clock()
    records = event.to_dict()["Records"]
    messages, failures = _parse(records)
    failed = storing.store(list(messages), use.table, Lifetime.of(use.settings), now, use.each)
    for view, reason in failed.items():
        telemetry.event(logging.WARNING, "a view is not stored yet", reason=str(reason))
        failures += messages[view]
    telemetry.count(
        "put_views",
        views_put=len(messages) - len(failed),
        malformed=len(records) - sum(map(len, messages.values())),
        late_redeliveries=_late(records, now - use.settings.redelivery_seconds),
    )
    return {"batchItemFailures": [{"itemIdentifier": message} for message in failures]}


def _parse(records: Iterable[Mapping[str, Any]]) -> tuple[dict[View, list[str]], list[str]]:
    """The views of a batch with the ids of their messages, and the ids of malformed messages."""
    messages: defaultdict[View, list[str]] = defaultdict(list)
    malformed: list[str] = []
    for record in records:
        try:
            messages[View.from_message(record.get("body"))].append(record["messageId"])
        except MalformedError:
            telemetry.event(logging.ERROR, "a malformed message", message_id=record["messageId"])
            malformed.append(record["messageId"])
    return messages, malformed


def _late(records: Iterable[Mapping[str, Any]], horizon: float) -> int:
    """How many messages were delivered before and hold a view taken before a time.

    Such a view may have been removed and folded since it was first stored, and then counts twice:
    this is the most that can have been doubled.
    """
    return sum(_delivered_before(record) and _taken_before(record, horizon) for record in records)


def _delivered_before(record: Mapping[str, Any]) -> bool:
    return int(record.get("attributes", {}).get("ApproximateReceiveCount", 1)) > 1


def _taken_before(record: Mapping[str, Any], horizon: float) -> bool:
    try:
        view = View.from_message(record.get("body"))
    except MalformedError:
        return False
    return taken_at(view.ulid).timestamp() < horizon
