"""Where an event goes: a URL, a queue that the operator has listed, or the log."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chalicelib import telemetry
from chalicelib.events.delivery import Delivery
from chalicelib.events.event import Event, Kind
from chalicelib.settings import SettingsError
from chalicelib.storage.ports import Queue, StorageError

if TYPE_CHECKING:
    from chalicelib.events.webhooks.sender import PostOutcome, Sender

NO_SECRET = "WEBHOOK_SECRETS is not set, so nothing can be signed"  # noqa: S105  says that there is none


@dataclass(frozen=True, slots=True)
class Deliverer:
    """Delivers an event to its target; a fault on the way is part of the answer, never raised.

    `sender` gives what posts webhooks, None without a secret to sign them with; it is asked when
    there is something to post, so that a wrong setting of it fails nothing else.
    """

    queue: Callable[[str], Queue | None]
    sender: Callable[[], Sender | None]

    def __call__(self, event: Event) -> Delivery:
        match event.target.kind:
            case Kind.URL:
                return self._post(event)
            case Kind.QUEUE:
                return self._enqueue(event)
            case Kind.LOG:
                telemetry.event(
                    logging.INFO, "an event", event_id=event.event_id, payload=printed(event)
                )
                return Delivery()

    def _post(self, event: Event) -> Delivery:
        try:
            sender = self.sender()
        except SettingsError as wrong:
            return Delivery(error=f"nothing can be sent: {wrong}")
        if sender is None:
            return Delivery(error=NO_SECRET)
        body = (event.payload or json.dumps({"id": event.event_id})).encode()
        return _told(sender.post(event.target.address, event.event_id, body))

    def _enqueue(self, event: Event) -> Delivery:
        queue = self.queue(event.target.address)
        if queue is None:
            return Delivery(error=f"EVENT_QUEUES has no queue {event.target.address}")
        try:
            queue.send(event.payload or json.dumps({"id": event.event_id}))
        except StorageError as error:
            return Delivery(error=f"the queue does not take it: {error}"[:200])
        return Delivery()


def printed(event: Event) -> object:
    """A payload as the log shows it: a text as it is, all else as JSON."""
    return json.loads(event.payload) if event.payload else None


def _told(outcome: PostOutcome) -> Delivery:
    """Only a 2xx is a success, and 410 the end. Source: Standard Webhooks, "Retries"."""
    return Delivery(
        code=outcome.status or 0,
        error="" if outcome.delivered else outcome.error or f"status {outcome.status}",
        is_final=outcome.gone,
        retry_after=outcome.retry_after or 0.0,
    )
