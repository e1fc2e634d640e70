"""The delivery of an event: its claim, its stored outcome, and its attempts in order.

The laws (`tests/laws/test_events.py`) show that each event is delivered by one worker at a time,
whatever fails.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.events import delivery, schedule
from chalicelib.events.delivery import DELIVERY_SECONDS, MAX_ATTEMPTS_KEPT, EventDelivery
from chalicelib.events.event import (
    LEASE_SECONDS,
    Attempt,
    DeliveryResult,
    Event,
    Leases,
    Status,
    batch,
    key,
    message,
)
from chalicelib.outgoing.http_client import CALL_SECONDS
from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Delete, Update, Write
from simulation.logs import logged_events
from simulation.scheduled_events import AT, an_event, deliver
from simulation.storage import FakeQueue, FaultyTable, once
from vumi.engine import DELIVERY_VISIBILITY_SECONDS
from vumi.workers.events import ProcessClaims

SCHEDULE = (5, 600)
OK = DeliveryResult(code=200)
REFUSED = DeliveryResult(code=500, error="status 500")
GONE = DeliveryResult(code=410, error="status 410", is_final=True)


class World:
    """A worker, the events that it delivers, and the results of their deliveries."""

    def __init__(self, table: Table, **settings: Any) -> None:
        self.now = AT
        self.table = table
        self.queue = FakeQueue()
        self.delivered: list[Event] = []
        self.answers: list[DeliveryResult] = []
        self.during: Callable[[], object] = lambda: None
        how: dict[str, Any] = {
            "claims": Leases(),
            "clock": lambda: self.now / 1000,
            "schedule": SCHEDULE,
            "jitter": lambda: 0.0,
        }
        self.delivery = EventDelivery(table, self.queue, self._deliver, **(how | settings))

    def _deliver(self, event: Event) -> DeliveryResult:
        self.delivered.append(event)
        self.during()
        return self.answers.pop(0) if self.answers else OK

    def accept(self, name: str = "e", at: int = AT) -> Event:
        event = an_event(name, at)
        return schedule.accept(event, self.table, FakeQueue(), at - 10**9)[0]

    def step(self, name: str = "e") -> bool:
        """Handle a message of an event; return whether it led to a delivery."""
        claimed = self.delivery.claim(name)
        if claimed is not None:
            deliver(self.delivery, claimed)
        return claimed is not None

    def read(self, name: str = "e") -> Event:
        return schedule.read(self.table, name)

    def item(self, name: str = "e") -> dict[str, Any]:
        item = self.table.get(key(name))
        assert item is not None
        return item


@pytest.fixture
def world(table: Table) -> World:
    return World(table)


def test_an_event_is_claimed_delivered_and_succeeds(world: World) -> None:
    """Then it leaves the index, and expires after 30 days."""
    world.accept()
    seen: list[Event] = []

    def deliver() -> None:
        seen.append(world.read())
        world.now += 300

    world.during = deliver
    assert world.step()
    [claimed] = seen
    assert claimed.claim == world.delivered[0].claim != ""
    assert (claimed.lease, claimed.attempts) == (AT + LEASE_SECONDS * 1000, (Attempt(AT),))
    event = world.read()
    assert (event.status, event.tries, event.claim, event.lease) == (Status.SUCCESS, 1, "", 0)
    assert event.attempts == (Attempt(AT, AT + 300, 200),)
    item = world.item()
    assert (item["batch"], item["due"]) == (batch(Status.SUCCESS, "e"), AT + 300)
    assert item["ttl"] == AT // 1000 + 30 * 86_400


def test_a_second_worker_does_not_deliver_a_claimed_event(world: World) -> None:
    """Its message is delivered again after the claim ends, in case the first worker has died."""
    world.accept()
    inside: list[bool] = []
    world.during = lambda: inside.append(world.step())
    world.step()
    assert inside == [False]
    assert world.queue.bodies == [message("e") + f" after {float(LEASE_SECONDS)} s"]


def test_a_message_of_a_cancelled_or_unknown_event_is_deleted(world: World) -> None:
    assert not world.step("unknown")
    world.accept(at=AT + 1_500)
    schedule.cancel(world.table, Leases(), "e", world.now)
    assert not world.step()
    assert world.queue.bodies == []


def test_an_event_that_is_cancelled_or_removed_while_it_is_claimed_is_not_delivered(
    table: Table,
) -> None:
    for gone in (
        lambda: table.write(Delete(key("e"))),
        lambda: schedule.cancel(table, Leases(), "e", AT),
    ):
        World(table).accept()
        world = World(FaultyTable(table, before_write=once(gone)))
        assert not world.step()
        assert world.delivered == []
    assert world.read().status is Status.CANCELLED


def test_a_delivery_ends_before_its_claim_and_the_claim_before_its_message_is_visible() -> None:
    assert CALL_SECONDS < DELIVERY_SECONDS < LEASE_SECONDS < DELIVERY_VISIBILITY_SECONDS


def test_every_attempt_is_counted_by_its_outcome_and_a_failed_event_is_logged(
    world: World, counted: dict[str, int], caplog: pytest.LogCaptureFixture
) -> None:
    world.accept()
    world.answers = [REFUSED, GONE]
    world.accept("late", AT - 999_600)
    world.step()
    world.now += 5_000
    world.step()
    assert counted == {"attempts_failed": 1, "events_failed": 1}
    fields = {"event_id": "e", "tries": 2}
    assert logged_events(caplog) == [(logging.WARNING, "event_failed", fields)]
    world.now = AT
    world.step("late")
    assert (counted["events_delivered"], counted["event_lateness_seconds"]) == (1, 1_000)


def test_no_attempt_is_early_if_the_clock_is_set_back_during_the_delivery(
    world: World, counted: dict[str, int]
) -> None:
    world.accept()
    world.answers = [REFUSED, OK]
    world.during = lambda: setattr(world, "now", AT - 9_000)
    world.step()
    assert world.read().next_at == AT
    assert world.queue.bodies == [message("e") + " after 9.0 s"]
    world.now = AT
    world.step()
    assert (counted["events_delivered"], counted["event_lateness_seconds"]) == (1, 0)


@pytest.mark.parametrize(("place", "answer"), [(1, OK), (2, OK), (2, REFUSED)])
def test_a_claim_or_an_outcome_whose_answer_was_lost_is_written_once(
    table: Table, place: int, answer: DeliveryResult
) -> None:
    """The table does the write and then repeats it."""
    World(table).accept()
    world = World(twice(table, place))
    world.answers = [answer]
    assert world.step()
    assert len(world.queue.bodies) == (answer is REFUSED)
    assert world.read().status is (Status.ACTIVE if answer is REFUSED else Status.SUCCESS)


@pytest.mark.parametrize("failure", [UnavailableError("the answer was lost"), KeyboardInterrupt()])
def test_a_claim_without_a_known_result_is_not_held(table: Table, failure: BaseException) -> None:
    """Its answer was lost, or the worker ended. The next worker may deliver."""

    def lose(writes: Sequence[Write]) -> None:
        table.write(*writes)
        raise failure

    claims = ProcessClaims()
    world = World(FaultyTable(table, before_write=lose), claims=claims)
    World(table).accept()
    with pytest.raises(type(failure)):
        world.delivery.claim("e")
    assert world.read().claim
    assert claims.held_until(world.read(), AT) == 0


def twice(table: Table, place: int) -> FaultyTable:
    """Return a table that does its n-th update twice, as a retry after a lost answer does."""
    left = [place]

    def hook(writes: Sequence[Write]) -> None:
        if isinstance(writes[0], Update):
            left[0] -= 1
            if left[0] == 0:
                table.write(*writes)

    return FaultyTable(table, before_write=hook)


def test_a_failed_attempt_is_recorded_and_repeated_by_the_schedule(world: World) -> None:
    world.accept()
    world.answers = [REFUSED, REFUSED]
    world.step()
    event = world.read()
    assert (event.status, event.claim, event.lease) == (Status.ACTIVE, "", 0)
    assert event.attempts[-1] == Attempt(AT, AT, 500, "status 500")
    assert event.next_at == AT + 5_000
    assert world.item()["due"] == AT + 5_000
    assert world.queue.bodies == [message("e") + " after 5.0 s"]
    assert not world.step()
    world.now += 5_000
    world.step()
    assert world.read().next_at == world.now + 600_000
    assert len(world.queue.bodies) == 2, "the second is too far ahead for the queue"


def test_a_failed_attempt_at_the_end_of_the_schedule_is_the_last(world: World) -> None:
    world.accept()
    world.answers = [REFUSED] * 3
    for _ in range(3):
        world.step()
        world.now = world.read().next_at
    event = world.read()
    assert (event.status, event.tries) == (Status.ERROR, 3)
    assert world.item()["batch"] == batch(Status.ERROR, "e")
    assert world.item()["ttl"] > 0
    assert not world.step()


@pytest.mark.parametrize(
    ("jitter", "asked", "waited"), [(0.0, 60.0, 60_000), (0.0, 1.0, 5_000), (1.0, 0.0, 6_000)]
)
def test_a_wait_has_its_jitter_and_is_no_shorter_than_the_receiver_asks(
    table: Table, jitter: float, asked: float, waited: int
) -> None:
    world = World(table, jitter=lambda: jitter)
    world.accept()
    world.answers = [replace(REFUSED, retry_after=asked)]
    world.step()
    assert world.read().next_at == AT + waited


def crashed(world: World) -> None:
    """Claim the event as a worker that dies afterwards."""
    assert world.delivery.claim("e") is not None


def test_an_event_whose_worker_died_is_claimed_again_after_the_lease(world: World) -> None:
    world.accept()
    crashed(world)
    world.now += LEASE_SECONDS * 1000 - 1
    assert not world.step()
    world.now += 1
    assert world.step()
    assert [attempt.ended > 0 for attempt in world.read().attempts] == [False, True]
    assert world.read().tries == 2


def test_an_event_whose_workers_always_die_fails(world: World) -> None:
    world.accept()
    for _ in range(len(SCHEDULE) + 1):
        crashed(world)
        world.now += LEASE_SECONDS * 1000
    assert not world.step()
    assert world.read().status is Status.ERROR
    assert world.delivered == []


def test_a_worker_with_too_little_time_left_does_not_begin(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Its claim would end before the delivery does, so another worker could begin meanwhile."""
    world.accept()
    claimed = world.delivery.claim("e")
    assert claimed is not None
    world.now += (LEASE_SECONDS - DELIVERY_SECONDS) * 1000 + 1
    deliver(world.delivery, claimed)
    assert world.delivered == []
    assert logged_events(caplog) == [(logging.WARNING, "claim_too_late", {"event_id": "e"})]
    world.now -= 1
    deliver(world.delivery, claimed)
    assert len(world.delivered) == 1


@pytest.mark.parametrize("answer", [OK, REFUSED, GONE])
def test_an_outcome_after_the_next_claim_changes_and_counts_nothing(
    world: World,
    caplog: pytest.LogCaptureFixture,
    counted: dict[str, int],
    answer: DeliveryResult,
) -> None:
    """A worker sleeps past its lease during a delivery, and another worker claims the event."""
    world.accept()
    world.answers = [answer]

    def sleep() -> None:
        world.during = lambda: None
        world.now += LEASE_SECONDS * 1000
        crashed(world)

    world.during = sleep
    world.step()
    event = world.read()
    assert (event.status, event.tries) == (Status.ACTIVE, 2)
    assert event.claim != world.delivered[0].claim
    assert world.queue.bodies == []
    assert counted == {}
    assert logged_events(caplog) == [(logging.WARNING, "claim_lost", {"event_id": "e"})]


def test_the_record_keeps_the_latest_attempts(world: World) -> None:
    event = world.accept()
    past: list[Any] = [{"started": n, "ended": n, "code": 500, "error": "x"} for n in range(60)]
    world.table.write(Update(key(event.event_id), values={"attempts": past}))
    world.step()
    attempts = world.read().attempts
    assert len(attempts) == MAX_ATTEMPTS_KEPT
    assert [attempts[0].started, attempts[-1].started] == [11, AT]


def failed_event(world: World) -> Event:
    world.accept()
    world.answers = [GONE]
    world.step()
    return world.read()


def test_a_redriven_event_has_the_whole_schedule_again(world: World) -> None:
    event = failed_event(world)
    world.now += 10**6
    assert delivery.redrive(world.table, world.queue, event, world.now)
    assert world.queue.bodies == [message("e")]
    item = world.item()
    assert "ttl" not in item
    assert (item["batch"], item["due"]) == (batch(Status.ACTIVE, "e"), world.now)
    assert item["next_at"] == world.now
    world.answers = [REFUSED] * len(SCHEDULE)
    for _ in SCHEDULE:
        assert world.step()
        world.now = world.read().next_at
    assert world.step()
    assert (world.read().status, world.read().tries) == (Status.SUCCESS, 4)


def test_a_redrive_with_a_slow_clock_does_not_delay_the_event(world: World) -> None:
    event = failed_event(world)
    assert delivery.redrive(world.table, world.queue, event, AT - 30_000)
    assert world.queue.bodies == [message("e")]


def test_a_redrive_of_an_event_that_was_redriven_meanwhile_does_nothing(world: World) -> None:
    event = failed_event(world)
    assert delivery.redrive(world.table, FakeQueue(), event, world.now)
    assert delivery.redrive(world.table, world.queue, event, world.now) is False
    world.answers = [GONE]
    world.step()
    assert not delivery.redrive(world.table, world.queue, event, world.now), "given up once more"
    assert world.queue.bodies == []
