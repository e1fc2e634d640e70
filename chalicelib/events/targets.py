"""The sender to an event's target: a URL, a queue that the operator has listed, or the log."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chalicelib import telemetry
from chalicelib.events.event import DeliveryResult, Event, TargetKind
from chalicelib.outgoing.webhooks import NO_SECRET
from chalicelib.settings import SettingsError
from chalicelib.storage.errors import StorageError
from chalicelib.storage.ports import Queue

if TYPE_CHECKING:
    from chalicelib.events.webhooks.sender import Sender


@dataclass(frozen=True, slots=True)
class TargetSender:
    """The sender of events to their targets; a failure is part of the result, never raised.

    `sender` returns the sender of webhooks, or None without a secret to sign them with. It is
    called only for a POST, so that a malformed setting fails no other event.
    """

    queue: Callable[[str], Queue | None]
    sender: Callable[[], Sender | None]

    def __call__(self, event: Event) -> DeliveryResult:
        match event.target.kind:
            case TargetKind.URL:
                return self._post(event)
            case TargetKind.QUEUE:
                return self._enqueue(event)
            case TargetKind.LOG:
                telemetry.event(
                    logging.INFO, "event_logged", event_id=event.event_id, payload=printed(event)
                )
                return DeliveryResult()

    def _post(self, event: Event) -> DeliveryResult:
        try:
            sender = self.sender()
        except SettingsError as wrong:
            return DeliveryResult(error=f"nothing can be sent: {wrong}")
        if sender is None:
            return DeliveryResult(error=NO_SECRET)
        body = (event.payload or json.dumps({"id": event.event_id})).encode()
        return sender.post(event.target.address, event.event_id, body)

    def _enqueue(self, event: Event) -> DeliveryResult:
        queue = self.queue(event.target.address)
        if queue is None:
            return DeliveryResult(error=f"EVENT_QUEUES has no queue {event.target.address}")
        try:
            queue.send(event.payload or json.dumps({"id": event.event_id}))
        except StorageError as error:
            return DeliveryResult(error=f"the queue does not take it: {error}"[:200])
        return DeliveryResult()


def printed(event: Event) -> object:
    """Return a payload for the log: a text as it is, any other value as JSON."""
    return json.loads(event.payload) if event.payload else None
