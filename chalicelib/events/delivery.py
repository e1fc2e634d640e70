"""The delivery of events: a worker claims one, sends it to its target, and writes the result.

A claim is a conditional write on the number of attempts, so only one of two workers can claim an
event. No other worker delivers while the claim is held (`Claims`), and a worker whose claim is
about to end does not begin. So no two workers deliver an event at the same time, and an event
whose worker died is claimed again. If anything fails, the event stays active and in the index,
where the sweep finds it.
"""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from chalicelib import telemetry
from chalicelib.concurrency import map_parallel
from chalicelib.events.event import (
    IS_ACTIVE,
    LEASE_SECONDS,
    Attempt,
    Claims,
    DeliveryResult,
    Event,
    Status,
    TargetKind,
    attempts_value,
    batch,
    key,
)
from chalicelib.events.schedule import enqueue_soon
from chalicelib.outgoing.webhooks import NO_SECRET
from chalicelib.settings import SettingsError
from chalicelib.storage.conditions import attr, unchanged
from chalicelib.storage.errors import StorageError
from chalicelib.storage.items import Value, text
from chalicelib.storage.ports import Queue, Table
from chalicelib.storage.writes import ConditionFailedError, Update
from chalicelib.ulids import new_ulid
from chalicelib.units import Milliseconds, Seconds, to_milliseconds

if TYPE_CHECKING:
    from chalicelib.events.routes import EventResources
    from chalicelib.events.sender import Sender

Result = TypeVar("Result")
DELIVERY_SECONDS = 20
"""The longest time of a delivery, with room. No delivery begins with less left of its lease."""
MAX_ATTEMPTS_KEPT = 50
JITTER = 0.2
"""A wait is longer by up to this share, so that events that failed together are retried apart."""
EndedAttempt: TypeAlias = tuple[Event, DeliveryResult]
"""A claimed event with the attempt that has just ended, and its result."""


@dataclass(frozen=True, slots=True)
class EventDelivery:
    """The steps of a delivery: claim an event, attempt it, and write the result.

    `send` sends an event to its target. `schedule` has the waits after the first failed attempt,
    the second and so on; the attempt after the last wait is the last.
    """

    table: Table
    queue: Queue
    send: Callable[[Event], DeliveryResult]
    claims: Claims
    clock: Callable[[], Seconds]
    schedule: Sequence[Seconds]
    jitter: Callable[[], float] = random.random

    def claim(self, event_id: str) -> Event | None:
        """Claim an event for this worker; return None if there is nothing to deliver now.

        An event that is not due yet goes back to the queue. So does an event that another worker
        delivers, because that worker may die. Raises `StorageError`.
        """
        item = self.table.get(key(event_id))
        if item is None:
            return None
        event, now = Event.of(item), to_milliseconds(self.clock())
        if event.status is not Status.ACTIVE:
            return None
        if (later := max(event.next_at, self.claims.held_until(event, now))) > now:
            enqueue_soon([replace(event, next_at=later)], self.queue, now)
            return None
        if event.tries - event.round > len(self.schedule):
            self._end(event, Status.ERROR, now)  # its worker died during the last attempt
            return None
        return self._claim(event, now)

    def _claim(self, event: Event, now: Milliseconds) -> Event | None:
        claimed = replace(
            event,
            claim=new_ulid(now),
            lease=now + to_milliseconds(LEASE_SECONDS),
            tries=event.tries + 1,
            attempts=(*event.attempts, Attempt(started=now))[-MAX_ATTEMPTS_KEPT:],
        )
        is_written = False
        self.claims.hold(claimed.claim)
        try:
            is_written = self._write_claim(claimed, event.tries)
        finally:
            if not is_written:
                self.claims.release(claimed.claim)
        return claimed if is_written else None

    def _write_claim(self, claimed: Event, tries: int) -> bool:
        """Write a claim if the event has this number of tries; return whether the table has it."""
        values: dict[str, Value] = {
            "claim": claimed.claim,
            "lease": claimed.lease,
            "tries": claimed.tries,
            "attempts": attempts_value(claimed.attempts),
        }
        condition = IS_ACTIVE & unchanged("tries", tries)
        try:
            self.table.write(Update(key(claimed.event_id), values=values, condition=condition))
        except ConditionFailedError as failed:
            # If the answer to an earlier try was lost, the claim in the table is this one.
            return text(failed.items[0] or {}, "claim") == claimed.claim
        return True

    def attempt(self, event: Event) -> EndedAttempt | None:
        """Send a claimed event; return None if the claim may end before the attempt does."""
        now = to_milliseconds(self.clock())
        if now > self.claims.held_until(event, now) - to_milliseconds(DELIVERY_SECONDS):
            telemetry.event(logging.WARNING, "claim_too_late", event_id=event.event_id)
            return None
        result, ended = self.send(event), to_milliseconds(self.clock())
        last = replace(event.attempts[-1], ended=ended, code=result.code, error=result.error)
        return replace(event, attempts=(*event.attempts[:-1], last)), result

    def settle(self, attempt: EndedAttempt) -> None:
        """Write the result of an attempt. Raises `StorageError`."""
        event, result = attempt
        ended = event.attempts[-1].ended
        if not result.error:
            if self._end(event, Status.SUCCESS, ended):
                lateness = max(0, round((ended - event.at) / 1000))
                telemetry.count(events_delivered=1, event_lateness_seconds=lateness)
        elif result.is_final or event.tries - event.round > len(self.schedule):
            self._end(event, Status.ERROR, ended)
        else:
            # The event's own time is the earliest: the clock may be set back during the delivery.
            # The receiver may ask for a longer wait.
            scheduled = self.schedule[event.tries - event.round - 1] * (1 + JITTER * self.jitter())
            wait = round(1000 * max(scheduled, result.retry_after))
            next_at = max(event.at, ended + wait)
            if self._settle(event, {"next_at": next_at, "due": next_at}):
                telemetry.count(attempts_failed=1)
                enqueue_soon([replace(event, next_at=next_at)], self.queue, ended)

    def _end(self, event: Event, status: Status, now: Milliseconds) -> bool:
        settled = self._settle(event, event.end(status, now))
        if settled and status is Status.ERROR:
            telemetry.event(
                logging.WARNING, "event_failed", event_id=event.event_id, tries=event.tries
            )
            telemetry.count(events_failed=1)
        return settled

    def _settle(self, event: Event, values: dict[str, Value]) -> bool:
        """Write the new state of a claimed event; return whether the claim still held."""
        attempts = attempts_value(event.attempts)
        update = Update(
            key(event.event_id),
            values={**values, "attempts": attempts},
            remove=("claim", "lease"),
            condition=IS_ACTIVE & unchanged("claim", event.claim),
        )
        try:
            self.table.write(update)
        except ConditionFailedError as failed:
            # If the answer to an earlier try was lost, the table has these attempts.
            if (failed.items[0] or {}).get("attempts") == attempts:
                return True
            telemetry.event(logging.WARNING, "claim_lost", event_id=event.event_id)
            return False
        return True


class DeliveryTask:
    """The delivery of one event, in the steps of an `EventDelivery`.

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
            self._delivery.claims.release(event.claim)

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


def redrive(table: Table, queue: Queue, event: Event, now: Milliseconds) -> bool:
    """Try a failed event again, by the whole schedule.

    Return False if another redrive was first. Raises `StorageError`.
    """
    update = Update(
        key(event.event_id),
        values={
            "status": str(Status.ACTIVE),
            "batch": batch(Status.ACTIVE, event.event_id),
            "due": now,
            "next_at": now,
            "round": event.tries,
        },
        remove=("ttl",),
        condition=(attr("status") == str(Status.ERROR)) & unchanged("tries", event.tries),
    )
    try:
        table.write(update)
    except ConditionFailedError:
        return False
    enqueue_soon([replace(event, next_at=now)], queue, now)
    return True


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
