"""`fire_timers`: the SQS consumer that delivers the events whose time has come."""

from __future__ import annotations

import logging
from typing import Any

from chalice.app import Blueprint, SQSEvent

from chalicelib import resources, telemetry
from chalicelib.concurrency import at_once
from chalicelib.event_sources import TIMERS_QUEUE
from chalicelib.ports import StorageError
from chalicelib.resources import TimerResources
from chalicelib.timers.delivering import Deliverer
from chalicelib.timers.event import MalformedError, named_in
from chalicelib.timers.firing import Firing

blueprint = Blueprint(__name__)


@blueprint.on_sqs_message(
    queue_arn=TIMERS_QUEUE, batch_size=10, maximum_concurrency=50, name="fire_timers"
)
def fire_timers(event: SQSEvent) -> dict[str, Any]:
    """Fire the events of a batch at once; the answer names the messages to deliver again."""
    telemetry.begin("fire_timers", event.context)
    firing = _firing(resources.for_timers())
    records = event.to_dict()["Records"]
    done = at_once(lambda record: _fired(firing, record), records)
    undone = [record for record, fine in zip(records, done, strict=True) if not fine]
    return {"batchItemFailures": [{"itemIdentifier": record["messageId"]} for record in undone]}


def _firing(use: TimerResources) -> Firing:
    return Firing(
        table=use.table,
        queue=use.timers_queue,
        deliver=Deliverer(use.event_queue, use.sender),
        clock=use.clock,
        schedule=use.settings.retry_seconds,
    )


def _fired(firing: Firing, record: dict[str, Any]) -> bool:
    """Returns whether the message is done with. A failure of one holds up no other."""
    try:
        claimed = firing.claim(named_in(record.get("body")))
        if claimed is not None:
            firing.fire(claimed)
    except MalformedError:
        telemetry.event(logging.ERROR, "a malformed message", message_id=record["messageId"])
        telemetry.count(malformed=1)
        return False
    except StorageError as error:
        telemetry.event(logging.WARNING, "an event is not fired yet", reason=str(error))
        return False
    except Exception:  # noqa: BLE001  its message comes again; its neighbours are fired
        telemetry.event(logging.ERROR, "an event failed to fire", message_id=record["messageId"])
        return False
    return True
