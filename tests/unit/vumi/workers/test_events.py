"""The delivery of events on one machine: none waits for another, and none is lost."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from chalicelib import telemetry
from chalicelib.concurrency import MapParallel
from chalicelib.events import schedule
from chalicelib.events.claims import LEASE_SECONDS
from chalicelib.events.consumers import DeliveryTask
from chalicelib.events.delivery import DeliveryResult, EventDelivery
from chalicelib.events.event import Event, Status, Target, TargetKind, message
from chalicelib.events.webhooks.sender import PostOutcome, Sender
from chalicelib.storage.errors import Unavailable
from chalicelib.storage.ports import Message, Queue
from simulation.clocks import NOON
from simulation.logs import counting_metrics
from simulation.queues import FakeQueue
from simulation.resources import MISSING, GivenResources
from simulation.scheduled_events import AT, an_event
from vumi.storage.database import FILE, Database
from vumi.storage.queue import SqliteQueue
from vumi.storage.table import SqliteTable
from vumi.workers.events import (
    MILESTONES_QUEUE,
    TIMERS_QUEUE,
    EventWorker,
    ProcessClaims,
    find_queue,
)
from vumi.workers.messages import IDLE_SECONDS

PATIENCE = 30.0
VISIBILITY = 90.0
WEBHOOKS = ("webhooks_delivered", "webhooks_refused", "webhooks_unanswered")


@dataclass
class Receiver:
    """A queue that takes one event at a time, and only after the test has opened it."""

    is_open: threading.Event = field(default_factory=threading.Event)
    begun: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    taken: list[str] = field(default_factory=list)

    def send(self, body: str, *, delay: float = 0.0) -> None:
        assert not delay
        self.begun.release()
        assert self.is_open.wait(PATIENCE)
        self.taken.append(body)

    def send_all(self, messages: Sequence[Message]) -> None:
        raise AssertionError(f"{messages} came together")


class WatchedClaims(ProcessClaims):
    """Claims that show a test which ones are held."""

    def __init__(self) -> None:
        super().__init__()
        self.held: set[str] = set()

    def hold(self, claim: str) -> None:
        super().hold(claim)
        self.held.add(claim)

    def release(self, claim: str) -> None:
        super().release(claim)
        self.held.discard(claim)


@dataclass
class World(GivenResources):
    """Resources with a clock that stands still, and receivers of events."""

    table: SqliteTable = MISSING
    delivery_queue: SqliteQueue = MISSING
    slow: Receiver = field(default_factory=Receiver)
    fast: FakeQueue = field(default_factory=FakeQueue)
    claims: WatchedClaims = field(default_factory=WatchedClaims)
    now: float = NOON

    def __post_init__(self) -> None:
        self.clock = lambda: self.now

    def event_queue(self, name: str) -> Queue | None:
        return self.slow if name == "slow" else self.fast

    def accept(self, name: str, target: Target, at: int = AT) -> None:
        event = Event(name, at, AT, target, '"x"', name, next_at=at)
        schedule.accept(event, self.table, self.delivery_queue, AT)

    def status(self, name: str) -> Status:
        return schedule.read(self.table, name).status


SLOW, FAST, LOG = (
    Target(TargetKind.QUEUE, "slow"),
    Target(TargetKind.QUEUE, "fast"),
    Target(TargetKind.LOG),
)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with closing(Database(tmp_path / FILE)) as database:
        queue = SqliteQueue(database, "timers", lambda: made.now, visibility_timeout=VISIBILITY)
        made = World(
            table=SqliteTable(database), delivery_queue=queue, map_parallel=database.map_in_commits
        )
        yield made


@pytest.fixture
def workers(world: World) -> Iterator[Callable[[int], EventWorker]]:
    made: list[EventWorker] = []

    def make(threads: int) -> EventWorker:
        made.append(EventWorker(world.delivery_queue, world, threads))
        return made[-1]

    yield make
    world.slow.is_open.set()
    for one in made:
        one.stop()
    assert world.claims.held == set(), "nothing is delivered any more"


Make = Callable[[int], EventWorker]


def until(holds: Callable[[], bool], step: Callable[[], object]) -> None:
    """Repeat a step until a condition holds."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        step()
        time.sleep(0.001)


def test_due_events_are_fired_and_their_messages_deleted(world: World, workers: Make) -> None:
    names = [f"e{number}" for number in range(30)]
    for name in names:
        world.accept(name, FAST)
    step = workers(8).step
    until(lambda: world.delivery_queue.size() == 0, step)
    assert len(world.fast.bodies) == len(names)
    assert {world.status(name) for name in names} == {Status.SUCCESS}


def test_a_receiver_that_hangs_delays_no_other(world: World, workers: Make) -> None:
    world.accept("slow", SLOW)
    step = workers(2).step
    step()
    assert world.slow.begun.acquire(timeout=PATIENCE)
    for number in range(20):
        world.accept(f"e{number}", FAST)
    until(lambda: len(world.fast.bodies) == 20, step)
    assert world.status("slow") is Status.ACTIVE
    world.slow.is_open.set()
    until(lambda: world.status("slow") is Status.SUCCESS, step)


def test_events_beyond_the_limit_of_concurrent_deliveries_wait_in_the_queue(
    world: World, workers: Make
) -> None:
    for number in range(5):
        world.accept(f"e{number}", SLOW)
    step = workers(3).step
    assert step() == 0.0
    for _ in range(3):
        assert world.slow.begun.acquire(timeout=PATIENCE)
    assert step() == IDLE_SECONDS
    assert not world.slow.begun.acquire(blocking=False)
    assert sum(schedule.read(world.table, f"e{number}").tries for number in range(5)) == 3
    world.slow.is_open.set()
    until(lambda: world.delivery_queue.size() == 0, step)
    assert len(world.slow.taken) == 5


def test_the_limit_of_concurrent_deliveries_stays_the_same(world: World, workers: Make) -> None:
    for number in range(4):
        world.accept(f"e{number}", FAST)
    step = workers(2).step
    until(lambda: world.delivery_queue.size() == 0, step)
    for number in range(5):
        world.accept(f"slow{number}", SLOW)
    for _ in range(3):
        step()
    assert sum(schedule.read(world.table, f"slow{number}").tries for number in range(5)) == 2


def test_the_step_after_the_signal_of_an_attempt_settles_it(world: World, workers: Make) -> None:
    told = threading.Event()
    delivery = workers(1)
    delivery.on_attempt = told.set
    world.accept("e", LOG)
    delivery.step()
    assert told.wait(PATIENCE)
    delivery.step()
    assert world.status("e") is Status.SUCCESS
    assert world.delivery_queue.size() == 0


def test_it_rests_until_the_next_event_and_no_longer(world: World, workers: Make) -> None:
    step = workers(2).step
    assert step() == IDLE_SECONDS
    world.accept("e", LOG, AT + 4_000)
    assert step() == pytest.approx(4.0)
    world.now += 3.999
    assert step() == 0.005


def test_a_message_of_an_unknown_event_is_deleted_and_a_malformed_one_redelivered(
    world: World, workers: Make
) -> None:
    step = workers(2).step
    world.delivery_queue.send(message("nobody"))
    world.delivery_queue.send("not JSON")
    step()
    assert world.delivery_queue.size() == 1
    world.now += VISIBILITY
    assert [one.body for one in world.delivery_queue.receive(9)] == ["not JSON"]


def test_a_delivery_is_queued_by_the_id_of_its_event(world: World) -> None:
    world.delivery_queue.route = find_queue
    world.delivery_queue.send_all([Message(message(one)) for one in ("milestone-a", "b")])
    world.delivery_queue.send(message("milestone-c"))
    found = {
        name: [one.body for one in world.delivery_queue.sibling(name).receive(9)]
        for name in (TIMERS_QUEUE, MILESTONES_QUEUE)
    }
    assert found == {
        TIMERS_QUEUE: [message("b")],
        MILESTONES_QUEUE: [message("milestone-a"), message("milestone-c")],
    }


def test_a_message_of_an_unknown_event_uses_no_thread(world: World, workers: Make) -> None:
    delivery = workers(1)
    attempted: list[None] = []
    delivery.on_attempt = lambda: attempted.append(None)
    world.delivery_queue.send(message("nobody"))
    delivery.step()
    delivery.stop()
    assert attempted == []


def test_log_events_of_a_delivery_name_its_function(
    world: World, workers: Make, caplog: pytest.LogCaptureFixture
) -> None:
    telemetry.begin("another", None)
    world.accept("e", LOG)
    with caplog.at_level(logging.INFO, "vu-mi"):
        until(lambda: len(caplog.records) >= 2, workers(1).step)
    logged = [(record.message, vars(record)["fields"]["function"]) for record in caplog.records]
    assert logged == [("event_logged", "fire_timers"), ("metrics", "another")]


def test_stopping_waits_for_running_deliveries_and_settles_them(
    world: World, workers: Make
) -> None:
    world.accept("e", SLOW)
    delivery = workers(2)
    delivery.step()
    assert world.slow.begun.acquire(timeout=PATIENCE)
    threading.Timer(0.05, world.slow.is_open.set).start()
    delivery.stop()
    assert world.status("e") is Status.SUCCESS
    assert world.delivery_queue.size() == 0


def test_an_attempt_whose_outcome_can_not_be_written_is_repeated_with_the_same_id(
    world: World, workers: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The claim ends before its message is visible again."""
    world.accept("e", FAST)
    delivery = workers(1)
    done = threading.Event()
    delivery.on_attempt = done.set
    delivery.step()
    assert done.wait(PATIENCE)
    with monkeypatch.context() as broken:
        broken.setattr(world.table, "write", _unavailable)
        delivery.step()
    assert world.status("e") is Status.ACTIVE
    world.now += VISIBILITY
    until(lambda: world.status("e") is Status.SUCCESS, delivery.step)
    assert world.fast.bodies == ['"x"', '"x"']
    assert schedule.read(world.table, "e").tries == 2


def fails_once(world: World, step: Callable[[DeliveryTask], None]) -> MapParallel:
    """Return what runs these steps in parallel, and undoes the first one in a failed commit."""

    def broken(task: DeliveryTask) -> None:
        step(task)
        raise Unavailable("the disk is full")

    def map_parallel(function: Callable[[Any], Any], parts: Iterable[Any], /) -> Iterable[Any]:
        parts = list(parts)
        if function is not step or not parts:
            return whole(function, parts)
        world.map_parallel = whole
        return whole(broken, parts)

    whole = world.map_parallel
    return map_parallel


@pytest.mark.parametrize("failed", [DeliveryTask.claim, DeliveryTask.settle])
def test_a_failed_commit_uses_no_place_and_loses_no_event(
    world: World, workers: Make, failed: Callable[[DeliveryTask], None]
) -> None:
    world.accept("e", FAST)
    world.map_parallel = fails_once(world, failed)
    step = workers(1).step
    with pytest.raises(Unavailable):
        until(lambda: world.status("e") is Status.SUCCESS, step)
    assert schedule.read(world.table, "e").tries == (failed is DeliveryTask.settle)
    world.now += VISIBILITY
    until(lambda: world.delivery_queue.size() == 0, step)
    assert world.status("e") is Status.SUCCESS
    assert len(world.fast.bodies) == 1 + (failed is DeliveryTask.settle)


def test_stopping_leaves_unwritten_outcomes_to_the_next_start(
    world: World, workers: Make, caplog: pytest.LogCaptureFixture
) -> None:
    world.accept("e", FAST)
    delivery = workers(1)
    delivery.step()
    world.map_parallel = fails_once(world, DeliveryTask.settle)
    telemetry.begin("another", None)
    delivery.stop()
    [told] = [one for one in caplog.records if one.levelno == logging.WARNING]
    fields = {"function": "fire_timers", "reason": "the disk is full"}
    assert (told.message, vars(told)["fields"]) == ("events_left_to_next_start", fields)
    assert schedule.read(world.table, "e").claim
    world.delivery_queue.release()
    world.claims = WatchedClaims()
    until(lambda: world.status("e") is Status.SUCCESS, workers(1).step)


def test_stopping_twice_settles_once(
    world: World, workers: Make, caplog: pytest.LogCaptureFixture
) -> None:
    world.accept("e", FAST)
    delivery = workers(1)
    delivery.step()
    with caplog.at_level(logging.INFO, telemetry.metrics.name):
        delivery.stop()
        delivery.stop()
    assert [record.message for record in caplog.records] == ["metrics"]


def _unavailable(*_: object) -> None:
    raise OSError("the disk is gone")


def test_an_event_that_was_accepted_with_a_fast_clock_is_fired(world: World, workers: Make) -> None:
    """It waits for its time by the current clock."""
    schedule.accept(an_event("e", AT + 1_000), world.table, world.delivery_queue, AT + 5_000)
    step = workers(1).step
    step()
    assert world.status("e") is Status.ACTIVE
    world.now += 1.0
    until(lambda: world.status("e") is Status.SUCCESS, step)


def begin_to_hang(world: World, delivery: EventWorker) -> None:
    """Begin the delivery of an event, which hangs."""
    world.accept("e", SLOW)
    delivery.step()
    assert world.slow.begun.acquire(timeout=PATIENCE)


def cancel(world: World) -> bool:
    """Cancel the event; return whether that was in time."""
    try:
        schedule.cancel(world.table, world.claims, "e", int(world.now * 1000))
    except schedule.TooLateError:
        return False
    return True


JUMPS = [-3_600.0, 61.0, 120.0, 3_600.0]


@pytest.mark.parametrize("jump", JUMPS)
def test_a_running_delivery_can_not_be_cancelled_with_any_clock(
    world: World, workers: Make, jump: float
) -> None:
    delivery = workers(2)
    begin_to_hang(world, delivery)
    world.now += jump
    assert not cancel(world)
    world.slow.is_open.set()
    until(lambda: world.status("e") is Status.SUCCESS, delivery.step)


@pytest.mark.parametrize("jump", JUMPS)
def test_a_running_delivery_is_not_repeated_with_any_clock(
    world: World, workers: Make, jump: float
) -> None:
    """A message of it is received, such as the one that is visible again after 90 s."""
    delivery = workers(2)
    begin_to_hang(world, delivery)
    world.now += jump
    world.delivery_queue.send(message("e"))
    delivery.step()
    assert schedule.read(world.table, "e").tries == 1
    world.slow.is_open.set()
    until(lambda: world.status("e") is Status.SUCCESS, delivery.step)
    assert world.slow.taken == ['"x"']


def test_a_message_of_a_running_delivery_waits(world: World, workers: Make) -> None:
    """If the outcome of the delivery can't be written, this message leads to the next one."""
    delivery = workers(2)
    begin_to_hang(world, delivery)
    world.now += 120.0
    delivery.step()
    assert world.delivery_queue.receive(9) == []
    assert world.delivery_queue.next_visible() == world.now + LEASE_SECONDS


def test_an_event_can_not_be_cancelled_before_the_outcome_is_written(
    world: World, workers: Make
) -> None:
    world.accept("e", FAST)
    delivery = workers(1)
    ended = threading.Event()
    delivery.on_attempt = ended.set
    delivery.step()
    assert ended.wait(PATIENCE)
    world.now += 3_600.0
    whole, answers = world.map_parallel, []

    def map_parallel(function: Callable[[Any], Any], parts: Iterable[Any], /) -> Iterable[Any]:
        answers.append(cancel(world))
        return whole(function, parts)

    world.map_parallel = map_parallel
    delivery.step()
    assert answers == [False]
    assert world.status("e") is Status.SUCCESS


def test_between_two_attempts_an_event_can_be_cancelled(world: World, workers: Make) -> None:
    world.accept("e", Target(TargetKind.URL, "https://example.com/"))
    until(lambda: schedule.read(world.table, "e").last_error != "", workers(1).step)
    assert cancel(world)


@pytest.mark.parametrize("failed", [DeliveryTask.claim, DeliveryTask.settle])
def test_after_a_failed_commit_an_event_can_be_cancelled_with_any_clock(
    world: World, workers: Make, failed: Callable[[DeliveryTask], None]
) -> None:
    world.accept("e", FAST)
    world.map_parallel = fails_once(world, failed)
    with pytest.raises(Unavailable):
        until(lambda: world.status("e") is Status.SUCCESS, workers(1).step)
    world.now -= 3_600.0
    assert cancel(world)


def test_a_claim_that_is_repeated_in_a_commit_is_delivered(world: World, workers: Make) -> None:
    """A common commit may be undone, and its functions are then called again."""
    whole = world.map_parallel

    def map_parallel(function: Callable[[Any], Any], parts: Iterable[Any], /) -> Iterable[Any]:
        def twice(part: Any) -> Any:
            with pytest.raises(Unavailable):
                whole(undone, [part])
            return function(part)

        def undone(part: Any) -> None:
            function(part)
            raise Unavailable("the commit is undone")

        return whole(twice if function is DeliveryTask.claim else function, parts)

    world.map_parallel = map_parallel
    world.accept("e", FAST)
    until(lambda: world.status("e") is Status.SUCCESS, workers(1).step)
    assert schedule.read(world.table, "e").tries == 1


def delivery_of_a_process(world: World) -> EventDelivery:
    """Return the delivery of a process with claims of its own, which always succeeds."""
    return EventDelivery(
        world.table,
        world.delivery_queue,
        lambda _: DeliveryResult(),
        ProcessClaims(),
        world.clock,
        (),
    )


def test_a_claimed_event_is_delivered_even_if_the_clock_jumps(world: World) -> None:
    firing = delivery_of_a_process(world)
    world.accept("e", FAST)
    claimed = firing.claim("e")
    assert claimed is not None
    world.now += 3_600.0
    assert firing.attempt(claimed) is not None


def test_a_new_process_delivers_the_events_that_a_killed_one_claimed(
    world: World, workers: Make
) -> None:
    killed = delivery_of_a_process(world)
    world.accept("e", FAST)
    assert killed.claim("e") is not None
    until(lambda: world.status("e") is Status.SUCCESS, workers(1).step)
    assert schedule.read(world.table, "e").tries == 2


def test_a_new_process_cancels_an_event_that_a_killed_one_claimed(world: World) -> None:
    killed = delivery_of_a_process(world)
    world.accept("e", FAST)
    assert killed.claim("e") is not None
    assert cancel(world)


@pytest.mark.parametrize(
    ("outcome", "name"),
    [
        (PostOutcome(204), "webhooks_delivered"),
        (PostOutcome(500), "webhooks_refused"),
        (PostOutcome(None, "no answer"), "webhooks_unanswered"),
    ],
)
def test_attempts_of_webhooks_are_counted_by_their_outcome(
    world: World, workers: Make, outcome: PostOutcome, name: str
) -> None:
    class Posting(Sender):
        def post(self, *_: object) -> PostOutcome:
            return outcome

    world.sender = Posting.__new__(Posting)
    worker = workers(2)
    world.accept("posted", Target(TargetKind.URL, "https://example.org/"))
    world.accept("queued", Target(TargetKind.QUEUE, "fast"))
    with counting_metrics() as sums:
        until(lambda: world.status("queued") is Status.SUCCESS, worker.step)
        worker.stop()
    posted = {name: n for name, n in sums["fire_timers"].items() if name.startswith("webhooks")}
    assert posted == dict.fromkeys(WEBHOOKS, 0) | {name: 1}
