"""The delivery of an event: a worker claims it, attempts it, and writes the result.

A claim is a conditional write on the number of attempts, so only one of two workers can claim an
event. No other worker delivers while the claim is held (`Claims`), and a worker whose claim is
about to end does not begin. So no two workers deliver an event at the same time, and an event
whose worker died is claimed again. If anything fails, the event stays active and in the index,
where the sweep finds it.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from chalicelib import telemetry
from chalicelib.events.event import (
    IS_ACTIVE,
    LEASE_SECONDS,
    Attempt,
    Claims,
    DeliveryResult,
    Event,
    Status,
    attempts_value,
    batch,
    key,
)
from chalicelib.events.schedule import enqueue_soon
from chalicelib.storage.conditions import attr, unchanged
from chalicelib.storage.items import Value, text
from chalicelib.storage.ports import Queue, Table
from chalicelib.storage.writes import ConditionFailedError, Update
from chalicelib.ulids import new_ulid
from chalicelib.units import Milliseconds, Seconds, to_milliseconds

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
        event, now = Event.of(item), self._now()
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
                self.release(claimed)
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

    def release(self, event: Event) -> None:
        """Release a claimed event after its result is written, or if it won't be."""
        self.claims.release(event.claim)

    def attempt(self, event: Event) -> EndedAttempt | None:
        """Send a claimed event; return None if the claim may end before the attempt does."""
        now = self._now()
        if now > self.claims.held_until(event, now) - to_milliseconds(DELIVERY_SECONDS):
            telemetry.event(logging.WARNING, "claim_too_late", event_id=event.event_id)
            return None
        result = self.send(event)
        last = replace(event.attempts[-1], ended=self._now(), code=result.code, error=result.error)
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
            self._try_again(event, max(event.at, ended + self._wait(event, result)), ended)

    def _end(self, event: Event, status: Status, now: Milliseconds) -> bool:
        settled = self._settle(event, event.end(status, now))
        if settled and status is Status.ERROR:
            telemetry.event(
                logging.WARNING, "event_failed", event_id=event.event_id, tries=event.tries
            )
            telemetry.count(events_failed=1)
        return settled

    def _try_again(self, event: Event, next_at: Milliseconds, now: Milliseconds) -> None:
        if self._settle(event, {"next_at": next_at, "due": next_at}):
            telemetry.count(attempts_failed=1)
            enqueue_soon([replace(event, next_at=next_at)], self.queue, now)

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

    def _wait(self, event: Event, result: DeliveryResult) -> Milliseconds:
        """Return the time to wait: at least as long as the receiver asks for."""
        scheduled = self.schedule[event.tries - event.round - 1] * (1 + JITTER * self.jitter())
        return round(1000 * max(scheduled, result.retry_after))

    def _now(self) -> Milliseconds:
        return to_milliseconds(self.clock())


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
