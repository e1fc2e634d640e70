"""`distribute_timers`: the SQS consumer that puts swept events on the queue, each for its time."""

from __future__ import annotations

import logging
from typing import Any

from chalice.app import Blueprint, SQSEvent

from chalicelib import telemetry
from chalicelib.aws import resources
from chalicelib.aws.event_sources import DISTRIBUTION_QUEUE
from chalicelib.storage.errors import StorageError

blueprint = Blueprint(__name__)


@blueprint.on_sqs_message(
    queue_arn=DISTRIBUTION_QUEUE, batch_size=1, maximum_concurrency=10, name="distribute_timers"
)
def distribute_timers(event: SQSEvent) -> dict[str, Any]:
    """Distribute the events of a batch; the answer names the messages to deliver again."""
    from chalicelib.events.event import MalformedError  # noqa: PLC0415  the API imports this too
    from chalicelib.events.sweep import distribute  # noqa: PLC0415

    telemetry.begin("distribute_timers", event.context)
    use = resources.for_timers()
    undone = []
    for record in event.to_dict()["Records"]:
        try:
            distribute(record.get("body"), use.timers_queue, int(use.clock() * 1000))
        except MalformedError:
            telemetry.event(logging.ERROR, "a malformed message", message_id=record["messageId"])
            telemetry.count(malformed=1)
            undone.append(record)
        except StorageError as error:
            telemetry.event(logging.WARNING, "events are not distributed yet", reason=str(error))
            undone.append(record)
    return {"batchItemFailures": [{"itemIdentifier": record["messageId"]} for record in undone]}
