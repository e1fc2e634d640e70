"""`fire_timers`: the SQS consumer that delivers the events whose time has come."""

from __future__ import annotations

from typing import Any

from chalice.app import Blueprint, SQSEvent

from chalicelib import telemetry
from chalicelib.aws import resources
from chalicelib.aws.event_sources import TIMERS_QUEUE
from chalicelib.concurrency import at_once

NAME = "fire_timers"

blueprint = Blueprint(__name__)


@blueprint.on_sqs_message(queue_arn=TIMERS_QUEUE, batch_size=10, maximum_concurrency=50, name=NAME)
def fire_timers(event: SQSEvent) -> dict[str, Any]:
    """Fire the events of a batch at once; the answer names the messages to deliver again."""
    from chalicelib.events.consumers import Work, firing_with  # noqa: PLC0415  the API imports this too

    telemetry.begin(NAME, event.context)
    use = resources.for_timers()
    firing = firing_with(use)
    works = [Work(firing, record) for record in event.to_dict()["Records"]]
    list(use.each(Work.claim, works))
    at_once(Work.fire, works)
    undone = [work for work in works if not work.is_done]
    return {"batchItemFailures": [{"itemIdentifier": work.message_id} for work in undone]}
