"""The consumers of events: they sweep, distribute and deliver, and the targets of deliveries."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from chalicelib import telemetry
from chalicelib.concurrency import map_parallel
from chalicelib.events import sweep
from chalicelib.events.delivery import EndedAttempt, EventDelivery
from chalicelib.events.event import DeliveryResult, Event, TargetKind
from chalicelib.events.sweep import SweepResult, SweptGroup
from chalicelib.outgoing.webhooks import NO_SECRET
from chalicelib.settings import SettingsError
from chalicelib.storage.errors import StorageError
from chalicelib.storage.ports import Queue
from chalicelib.units import to_milliseconds

if TYPE_CHECKING:
    from chalicelib.events.routes import EventResources
    from chalicelib.events.sender import Sender

Result = TypeVar("Result")


def sweep_events(resources: EventResources) -> SweepResult:
    """Send the events that are due soon to the distribution. Raises `StorageError`.

    The next sweep sends the events that a failed sweep did not send.
    """
    now = to_milliseconds(resources.clock())
    return sweep.sweep(resources.table, resources.distribution_queue, now, resources.map_parallel)


def distribute(groups: Iterable[SweptGroup], resources: EventResources) -> list[SweptGroup]:
    """Enqueue each event of the groups for its time; return the groups to deliver again."""
    failed = []
    for group in groups:
        try:
            sweep.distribute(group, resources.delivery_queue, to_milliseconds(resources.clock()))
        except StorageError as error:
            telemetry.event(logging.WARNING, "events_not_distributed", reason=str(error))
            failed.append(group)
    return failed


def deliver(event_ids: Iterable[str], resources: EventResources) -> set[str]:
    """Deliver events whose time has come; return the ids of those to deliver again.

    Each event has its own thread, so that no event waits for the receiver of another.
    """
    delivery = delivery_over(resources)
    tasks = [DeliveryTask(delivery, event_id) for event_id in event_ids]
    list(resources.map_parallel(DeliveryTask.claim, tasks))
    map_parallel(DeliveryTask.run, tasks, threads=max(1, len(tasks)))
    return {task.event_id for task in tasks if not task.is_done}


def delivery_over(resources: EventResources) -> EventDelivery:
    """Return the delivery of events over the resources of a process."""
    return EventDelivery(
        table=resources.table,
        queue=resources.delivery_queue,
        send=lambda event: send(event, resources.event_queue, lambda: resources.sender),
        claims=resources.claims,
        clock=resources.clock,
        schedule=resources.settings.retry_seconds,
    )


class DeliveryTask:
    """The delivery of one event, in steps.

    A failed step is logged, the task is not done then, and no other event is delayed. A step runs
    again if its transaction failed.
    """

    __slots__ = ("_attempt", "_delivery", "_event", "event_id", "is_done")

    def __init__(self, delivery: EventDelivery, event_id: str) -> None:
        self.event_id = event_id
        self.is_done = True
        self._delivery = delivery
        self._event: Event | None = None
        self._attempt: EndedAttempt | None = None

    @property
    def is_claimed(self) -> bool:
        """Return whether there is an event to attempt."""
        return self._event is not None

    @property
    def webhook(self) -> DeliveryResult | None:
        """Return the result of the last attempt if it was for a URL, else None."""
        event, result = self._attempt or (None, None)
        return result if event and event.target.kind is TargetKind.URL else None

    def claim(self) -> None:
        """Claim the event for this worker if it is due."""
        self.release()
        self._event = self._do(lambda: self._delivery.claim(self.event_id))

    def attempt(self) -> None:
        """Attempt to deliver the event if it was claimed."""
        if event := self._event:
            self._attempt = self._do(lambda: self._delivery.attempt(event))

    def settle(self) -> None:
        """Write the result of the attempt, if there was one."""
        if attempt := self._attempt:
            self._do(lambda: self._delivery.settle(attempt))

    def release(self) -> None:
        """Release the event if it was claimed, because no step follows."""
        if event := self._event:
            self._delivery.release(event)

    def run(self) -> None:
        """Attempt, settle and release the event."""
        self.attempt()
        self.settle()
        self.release()

    def _do(self, step: Callable[[], Result]) -> Result | None:
        self.is_done = False
        try:
            result = step()
        except StorageError as error:
            telemetry.event(
                logging.WARNING, "event_waits", event_id=self.event_id, reason=str(error)
            )
        except Exception:  # noqa: BLE001  its message is delivered again
            telemetry.event(logging.ERROR, "event_not_delivered", event_id=self.event_id)
        else:
            self.is_done = True
            return result
        return None


def send(
    event: Event, queue_of: Callable[[str], Queue | None], find_sender: Callable[[], Sender | None]
) -> DeliveryResult:
    """Send an event to its target; a failure is part of the result, never raised.

    `find_sender` returns the sender of webhooks, or None without a secret to sign them with. It is
    called only for a POST, so that a malformed setting fails no other event.
    """
    body = event.payload or json.dumps({"id": event.event_id})
    match event.target.kind:
        case TargetKind.URL:
            return _post(event, body, find_sender)
        case TargetKind.QUEUE:
            return _enqueue(body, event.target.address, queue_of)
        case TargetKind.LOG:
            payload = json.loads(event.payload or "null")
            telemetry.event(logging.INFO, "event_logged", event_id=event.event_id, payload=payload)
            return DeliveryResult()


def _post(event: Event, body: str, find_sender: Callable[[], Sender | None]) -> DeliveryResult:
    try:
        sender = find_sender()
    except SettingsError as wrong:
        return DeliveryResult(error=f"nothing can be sent: {wrong}")
    if sender is None:
        return DeliveryResult(error=NO_SECRET)
    return sender.post(event.target.address, event.event_id, body.encode())


def _enqueue(body: str, name: str, queue_of: Callable[[str], Queue | None]) -> DeliveryResult:
    queue = queue_of(name)
    if queue is None:
        return DeliveryResult(error=f"EVENT_QUEUES has no queue {name}")
    try:
        queue.send(body)
    except StorageError as error:
        return DeliveryResult(error=f"the queue does not take it: {error}"[:200])
    return DeliveryResult()
