"""The events of webhooks that other features send (`outgoing.webhooks`)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from chalicelib.lazy import lazy
from chalicelib.storage.conditions import attr
from chalicelib.storage.writes import Put
from chalicelib.units import Seconds, to_milliseconds

if TYPE_CHECKING:
    from chalicelib.events import event, schedule
    from chalicelib.outgoing.webhooks import Webhook
    from chalicelib.storage.ports import Queue
else:
    event, schedule = lazy("chalicelib.events.event"), lazy("chalicelib.events.schedule")


class EventSchedule:
    """The `WebhookSchedule` over the queue of deliveries, which is opened on first use.

    A function that folds badges makes one at each cold start, so it imports no module of events
    before there is an event.
    """

    def __init__(self, queue: Callable[[], Queue], clock: Callable[[], Seconds]) -> None:
        self._queue = queue
        self._clock = clock

    def put(self, webhook: Webhook) -> Put:
        now = to_milliseconds(self._clock())
        created = event.Event(
            event_id=webhook.webhook_id,
            at=now,
            created=now,
            target=event.Target(event.TargetKind.URL, webhook.url),
            payload=webhook.payload,
            request=hashlib.sha256(webhook.webhook_id.encode()).hexdigest(),
        )
        return Put(created.new_item(), attr("SK").missing())

    def enqueue(self, written: Sequence[Put]) -> None:
        events = [event.Event.of(put.item) for put in written]
        schedule.enqueue_soon(events, self._queue(), to_milliseconds(self._clock()))
