"""EventDelivery an event: one claim at a time, the outcome written, the attempts in their order."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from chalicelib import telemetry
from chalicelib.events import delivery, schedule
from chalicelib.events.claims import LEASE_SECONDS, Leases
from chalicelib.events.delivery import (
    DELIVERY_SECONDS,
    MAX_ATTEMPTS_KEPT,
    DeliveryResult,
    EventDelivery,
)
from chalicelib.events.event import Attempt, Event, Status, batch, key, message
from chalicelib.events.webhooks.sender import SEND_SECONDS
from chalicelib.storage.errors import StorageError, Unavailable
from chalicelib.storage.items import Key
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Delete, Update, Write
from simulation.logs import told
from simulation.memory_table import MemoryTable
from simulation.queues import FakeQueue
from simulation.scheduled_events import AT, an_event, fire
from simulation.tables import FaultyTable
from vumi.engine import DELIVERY_VISIBILITY_SECONDS
from vumi.workers.events import ProcessClaims

SCHEDULE = (5, 600)
OK = DeliveryResult(code=200)
REFUSED = DeliveryResult(code=500, error="status 500")
GONE = DeliveryResult(code=410, error="status 410", is_final=True)


@pytest.fixture
def table() -> Table:
    return MemoryTable()


class World:
    """A worker, what it delivers and what it is answered."""

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
        self.firing = EventDelivery(table, self.queue, self._deliver, **(how | settings))

    def _deliver(self, event: Event) -> DeliveryResult:
        self.delivered.append(event)
        self.during()
        return self.answers.pop(0) if self.answers else OK

    def accept(self, name: str = "e", at: int = AT) -> Event:
        event = an_event(name, at)
        return schedule.accept(event, self.table, FakeQueue(), at - 10**9).event

    def step(self, name: str = "e") -> bool:
        """A message comes; returns whether it led to a delivery."""
        claimed = self.firing.claim(name)
        if claimed is not None:
            fire(self.firing, claimed)
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


def test_an_event_is_delivered_and_done(world: World) -> None:
    world.accept()
    world.during = lambda: setattr(world, "now", world.now + 300)
    assert world.step()
    event = world.read()
    assert (event.status, event.tries, event.claim, event.lease) == (Status.SUCCESS, 1, "", 0)
    assert event.attempts == (Attempt(AT, AT + 300, 200),)


def test_what_is_done_leaves_what_is_due_and_expires_after_30_days(world: World) -> None:
    world.accept()
    assert world.item()["batch"] == batch(Status.ACTIVE, "e")
    world.now += 7_000
    world.step()
    item = world.item()
    assert (item["batch"], item["due"]) == (batch(Status.SUCCESS, "e"), AT + 7_000)
    assert item["ttl"] == AT // 1000 + 7 + 30 * 86_400
    assert world.table.query_due(batch(Status.ACTIVE, "e"), limit=9) == []


def test_while_it_is_delivered_the_claim_can_be_seen(world: World) -> None:
    world.accept()
    seen: list[Event] = []
    world.during = lambda: seen.append(world.read())
    world.step()
    [event] = seen
    assert event.claim == world.delivered[0].claim != ""
    assert event.lease == AT + LEASE_SECONDS * 1000
    assert event.attempts == (Attempt(AT),)


def test_a_message_that_comes_twice_delivers_once(world: World) -> None:
    world.accept()
    assert [world.step(), world.step()] == [True, False]
    assert len(world.delivered) == 1


def test_a_message_of_an_unknown_event_is_passed_over(world: World) -> None:
    assert not world.step("unknown")


def test_nothing_is_delivered_before_its_time(world: World) -> None:
    """Its message goes back to the queue for the time that is left."""
    world.accept(at=AT + 1_500)
    assert not world.step()
    assert world.queue.bodies == [message("e") + " after 1.5 s"]
    world.now += 1_499
    assert not world.step()
    world.now += 1
    assert world.step()


def test_a_second_worker_does_not_deliver_meanwhile(world: World) -> None:
    """But its message comes again when the claim is over, in case the first has died."""
    world.accept()
    inside: list[bool] = []
    world.during = lambda: inside.append(world.step())
    world.step()
    assert inside == [False]
    assert world.queue.bodies == [message("e") + f" after {float(LEASE_SECONDS)} s"]


def test_a_message_of_an_event_that_was_cancelled_before_its_time_is_done_with(
    world: World,
) -> None:
    world.accept(at=AT + 1_500)
    schedule.cancel(world.table, Leases(), "e", world.now)
    assert not world.step()
    assert world.queue.bodies == []


def test_of_a_delivery_nothing_need_be_told_where_it_succeeded() -> None:
    assert DeliveryResult() == DeliveryResult(code=0, error="", is_final=False, retry_after=0.0)


def test_no_delivery_outlasts_its_claim_and_no_message_comes_again_before_that() -> None:
    assert SEND_SECONDS < DELIVERY_SECONDS < LEASE_SECONDS < DELIVERY_VISIBILITY_SECONDS


def before_write(place: int, does: Callable[[], object]) -> Callable[[Sequence[Write]], None]:
    """What happens before the write of a place, and only there."""
    left = [place]

    def hook(_: Sequence[Write]) -> None:
        left[0] -= 1
        if left[0] == 0:
            does()

    return hook


@pytest.mark.parametrize("answer", [OK, REFUSED, GONE])
def test_of_two_workers_that_read_the_same_only_one_delivers(
    table: Table, answer: DeliveryResult
) -> None:
    other = World(table)
    other.accept()
    other.answers = [answer]
    first = World(FaultyTable(table, before_write=before_write(1, other.step)))
    assert not first.step()
    assert (len(first.delivered), len(other.delivered)) == (0, 1)


def test_an_event_that_is_cancelled_while_it_is_claimed_is_not_delivered(table: Table) -> None:
    World(table).accept()
    cancels = before_write(1, lambda: schedule.cancel(table, Leases(), "e", AT))
    world = World(FaultyTable(table, before_write=cancels))
    assert not world.step()
    assert world.delivered == []
    assert world.read().status is Status.CANCELLED


def test_an_event_that_is_gone_while_it_is_claimed_is_not_delivered(table: Table) -> None:
    World(table).accept()
    goes = before_write(1, lambda: table.write(Delete(key("e"))))
    world = World(FaultyTable(table, before_write=goes))
    assert not world.step()
    assert table.get(key("e")) is None


def test_an_outcome_of_an_event_that_is_gone_is_not_written(table: Table) -> None:
    world = World(table)
    world.accept()
    world.during = lambda: table.write(Delete(key("e")))
    assert world.step()
    assert table.get(key("e")) is None


def test_what_is_given_up_is_told_by_its_id_with_how_often_it_was_tried(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    given_up(world)
    fields = {"event_id": "e", "tries": 1}
    assert told(caplog) == [(logging.WARNING, "event_failed", fields)]


def test_every_attempt_is_counted_by_how_it_ended(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.accept()
    world.answers = [REFUSED, GONE]
    world.accept("late", AT - 999_600)
    with caplog.at_level(logging.INFO, telemetry.metrics.name):
        world.step()
        world.now += 5_000
        world.step()
        world.now = AT
        world.step("late")
    assert counted(caplog) == [
        {"attempts_failed": 1},
        {"events_failed": 1},
        {"events_fired": 1, "event_lateness_seconds": 1_000},
    ]


def counted(caplog: pytest.LogCaptureFixture) -> list[dict[str, int]]:
    """The metrics that were written, without the function."""
    written = [
        vars(record)["fields"] for record in caplog.records if record.name == telemetry.metrics.name
    ]
    return [{name: one[name] for name in one if name != "function"} for one in written]


def test_nothing_is_early_though_the_clock_was_set_back_during_the_delivery(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.accept()
    world.during = lambda: setattr(world, "now", AT - 9_000)
    with caplog.at_level(logging.INFO, telemetry.metrics.name):
        world.step()
    assert counted(caplog) == [{"events_fired": 1, "event_lateness_seconds": 0}]


def test_a_claim_whose_answer_was_lost_is_ones_own(table: Table) -> None:
    """The table does the write, and is asked once more."""
    world = World(twice(table, 1))
    world.accept()
    assert world.step()
    assert world.read().status is Status.SUCCESS


@pytest.mark.parametrize("failure", [Unavailable("the answer was lost"), KeyboardInterrupt()])
def test_a_claim_that_its_worker_does_not_know_of_is_not_held(
    table: Table, failure: BaseException
) -> None:
    """Its answer was lost, or the worker ended: whoever comes next may deliver."""

    def lose(writes: Sequence[Write]) -> None:
        table.write(*writes)
        raise failure

    claims = ProcessClaims()
    world = World(FaultyTable(table, before_write=lose), claims=claims)
    World(table).accept()
    with pytest.raises(type(failure)):
        world.firing.claim("e")
    assert world.read().claim
    assert claims.held_until(world.read(), AT) == 0


@pytest.mark.parametrize(("answer", "sent"), [(OK, 0), (REFUSED, 1)])
def test_an_outcome_whose_answer_was_lost_is_written_once(
    table: Table, answer: DeliveryResult, sent: int
) -> None:
    world = World(table)
    world.accept()
    world = World(twice(table, 2))
    world.answers = [answer]
    assert world.step()
    assert len(world.queue.bodies) == sent
    assert len(world.read().attempts) == 1


def twice(table: Table, place: int) -> FaultyTable:
    """A table that does its n-th update twice, as a try does whose answer was lost before."""
    left = [place]

    def hook(writes: Sequence[Write]) -> None:
        if isinstance(writes[0], Update):
            left[0] -= 1
            if left[0] == 0:
                table.write(*writes)

    return FaultyTable(table, before_write=hook)


def test_a_failed_attempt_is_told_and_tried_again_by_the_schedule(world: World) -> None:
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


def test_an_attempt_that_fails_behind_the_schedule_is_the_last(world: World) -> None:
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


def test_410_is_the_end(world: World) -> None:
    world.accept()
    world.answers = [GONE]
    world.step()
    assert (world.read().status, world.read().tries) == (Status.ERROR, 1)


def test_the_other_side_may_ask_for_a_longer_wait_not_for_a_shorter_one(world: World) -> None:
    for name, seconds, waited in (("longer", 60.0, 60_000), ("shorter", 1.0, 5_000)):
        world.accept(name)
        world.answers = [replace(REFUSED, retry_after=seconds)]
        world.step(name)
        assert world.read(name).next_at == AT + waited


def test_a_wait_is_longer_by_the_jitter(table: Table) -> None:
    world = World(table, jitter=lambda: 1.0)
    world.accept()
    world.answers = [REFUSED]
    world.step()
    assert world.read().next_at == AT + 6_000


def crashed(world: World) -> None:
    """A worker claims the event and is gone."""
    assert world.firing.claim("e") is not None


def test_an_event_whose_worker_died_is_claimed_again_when_the_lease_is_over(world: World) -> None:
    world.accept()
    crashed(world)
    world.now += LEASE_SECONDS * 1000 - 1
    assert not world.step()
    world.now += 1
    assert world.step()
    assert [attempt.ended > 0 for attempt in world.read().attempts] == [False, True]
    assert world.read().tries == 2


def test_an_event_whose_workers_die_every_time_is_given_up(world: World) -> None:
    world.accept()
    for _ in range(len(SCHEDULE) + 1):
        crashed(world)
        world.now += LEASE_SECONDS * 1000
    assert not world.step()
    assert world.read().status is Status.ERROR
    assert world.delivered == []


def test_a_worker_that_is_late_does_not_begin(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """With less of its claim left than a delivery may take, another could begin in its midst."""
    world.accept()
    claimed = world.firing.claim("e")
    assert claimed is not None
    world.now += (LEASE_SECONDS - DELIVERY_SECONDS) * 1000 + 1
    fire(world.firing, claimed)
    assert world.delivered == []
    assert told(caplog) == [(logging.WARNING, "claim_too_late", {"event_id": "e"})]
    world.now -= 1
    fire(world.firing, claimed)
    assert len(world.delivered) == 1


def test_no_attempt_is_before_its_time_though_the_clock_was_set_back_during_the_first(
    world: World,
) -> None:
    world.accept()
    world.answers = [REFUSED]
    world.during = lambda: setattr(world, "now", AT - 9_000)
    world.step()
    assert world.read().next_at == AT
    assert world.queue.bodies == [message("e") + " after 9.0 s"]


@pytest.mark.parametrize("answer", [OK, REFUSED, GONE])
def test_an_outcome_that_comes_after_the_next_claim_changes_and_counts_nothing(
    world: World, caplog: pytest.LogCaptureFixture, answer: DeliveryResult
) -> None:
    """A worker slept through its lease in the midst of a delivery; another has the event now."""
    world.accept()
    world.answers = [answer]

    def sleep() -> None:
        world.during = lambda: None
        world.now += LEASE_SECONDS * 1000
        crashed(world)

    world.during = sleep
    with caplog.at_level(logging.INFO, telemetry.metrics.name):
        world.step()
    event = world.read()
    assert (event.status, event.tries) == (Status.ACTIVE, 2)
    assert event.claim != world.delivered[0].claim
    assert world.queue.bodies == []
    assert counted(caplog) == []
    assert told(caplog) == [(logging.WARNING, "claim_lost", {"event_id": "e"})]


def test_an_event_that_is_cancelled_between_two_attempts_stays_so(world: World) -> None:
    world.accept()
    world.answers = [REFUSED]
    world.step()
    schedule.cancel(world.table, Leases(), "e", world.now)
    world.now += 10_000
    assert not world.step()
    assert world.read().status is Status.CANCELLED


@pytest.mark.parametrize("place", [1, 2])
def test_a_table_that_fails_is_told_so_that_the_message_comes_again(
    table: Table, place: int
) -> None:
    World(table).accept()
    fails = before_write(place, lambda: (_ for _ in ()).throw(Unavailable("throttled")))
    world = World(FaultyTable(table, before_write=fails))
    with pytest.raises(StorageError):
        world.step()
    assert world.read().status is Status.ACTIVE


def test_the_record_keeps_the_latest_attempts(world: World) -> None:
    event = world.accept()
    past: list[Any] = [{"started": n, "ended": n, "code": 500, "error": "x"} for n in range(60)]
    world.table.write(Update(key(event.event_id), values={"attempts": past}))
    world.step()
    attempts = world.read().attempts
    assert len(attempts) == MAX_ATTEMPTS_KEPT
    assert [attempts[0].started, attempts[-1].started] == [11, AT]


def given_up(world: World) -> Event:
    world.accept()
    world.answers = [GONE]
    world.step()
    return world.read()


def test_a_redrive_tries_anew_by_the_whole_schedule(world: World) -> None:
    event = given_up(world)
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


def test_a_redrive_by_a_clock_behind_waits_for_no_other_clock(world: World) -> None:
    event = given_up(world)
    assert delivery.redrive(world.table, world.queue, event, AT - 30_000)
    assert world.queue.bodies == [message("e")]


def test_a_redrive_of_what_was_redriven_meanwhile_does_nothing(world: World) -> None:
    event = given_up(world)
    assert delivery.redrive(world.table, FakeQueue(), event, world.now)
    assert delivery.redrive(world.table, world.queue, event, world.now) is False
    world.answers = [GONE]
    world.step()
    assert not delivery.redrive(world.table, world.queue, event, world.now), "given up once more"
    assert world.queue.bodies == []


def test_the_key_of_an_event_is_that_of_the_design() -> None:
    assert key("e") == Key("TIMER#e", "TIMER")
