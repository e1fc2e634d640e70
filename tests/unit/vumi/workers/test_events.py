"""The delivery of events on one machine: none waits for another, and none is lost."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from chalicelib import telemetry
from chalicelib.events import schedule
from chalicelib.events.delivery import DeliveryTask
from chalicelib.events.event import DeliveryResult, Event, Status, Target, TargetKind, message
from chalicelib.events.sender import Sender
from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.ports import Message, Queue
from simulation.clocks import NOON
from simulation.logs import counting_metrics
from simulation.resources import MISSING, GivenResources
from simulation.scheduled_events import AT
from simulation.storage import FakeQueue
from vumi.storage.database import Database
from vumi.storage.queue import SqliteQueue
from vumi.storage.table import SqliteTable
from vumi.workers.deliveries import IDLE_SECONDS
from vumi.workers.events import EventWorker, ProcessClaims

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
    workers: list[EventWorker] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clock = lambda: self.now

    def event_queue(self, name: str) -> Queue | None:
        return self.slow if name == "slow" else self.fast

    def accept(self, name: str, target: Target, at: int = AT) -> None:
        event = Event(name, at, AT, target, '"x"', name, next_at=at)
        schedule.accept(event, self.table, self.delivery_queue, AT)

    def worker(self, threads: int) -> EventWorker:
        """Return a worker that is stopped at the end of the test."""
        self.workers.append(EventWorker(self.delivery_queue, self, threads))
        return self.workers[-1]

    def status(self, name: str) -> Status:
        return schedule.read(self.table, name).status

    def tries(self, name: str) -> int:
        return schedule.read(self.table, name).tries

    def is_done(self) -> bool:
        return self.delivery_queue.size() == 0

    def succeeds(self, worker: EventWorker) -> None:
        """Take steps until the event `e` is delivered."""
        until(lambda: self.status("e") is Status.SUCCESS, worker.step)

    def cancel(self) -> bool:
        """Cancel the event `e`; return whether that was in time."""
        try:
            schedule.cancel(self.table, self.claims, "e", int(self.now * 1000))
        except schedule.TooLateError:
            return False
        return True


SLOW, FAST = (Target(TargetKind.QUEUE, name) for name in ("slow", "fast"))
LOG = Target(TargetKind.LOG)


@pytest.fixture
def world(database: Database, table: SqliteTable) -> Iterator[World]:
    queue = SqliteQueue(database, "deliveries", lambda: made.now, visibility_timeout=VISIBILITY)
    made = World(table=table, delivery_queue=queue, map_parallel=database.map_in_commits)
    yield made
    made.slow.is_open.set()
    for one in made.workers:
        one.stop()
    assert made.claims.held == set(), "nothing is delivered any more"


def until(holds: Callable[[], bool], step: Callable[[], object]) -> None:
    """Repeat a step until a condition holds."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        step()
        time.sleep(0.001)


def begin_to_hang(world: World, worker: EventWorker) -> None:
    """Begin the delivery of an event, which hangs."""
    world.accept("e", SLOW)
    worker.step()
    assert world.slow.begun.acquire(timeout=PATIENCE)


def attempted(world: World) -> EventWorker:
    """Return a worker whose attempt has ended, and is not settled."""
    worker, ended = world.worker(1), threading.Event()
    worker.on_attempt = ended.set
    worker.step()
    assert ended.wait(PATIENCE)
    return worker


def test_due_events_are_fired_and_their_messages_deleted(world: World) -> None:
    names = [f"e{number}" for number in range(30)]
    for name in names:
        world.accept(name, FAST)
    until(world.is_done, world.worker(8).step)
    assert len(world.fast.bodies) == len(names)
    assert {world.status(name) for name in names} == {Status.SUCCESS}


def test_a_receiver_that_hangs_delays_no_other(world: World) -> None:
    worker = world.worker(2)
    begin_to_hang(world, worker)
    for number in range(20):
        world.accept(f"e{number}", FAST)
    until(lambda: len(world.fast.bodies) == 20, worker.step)
    assert world.status("e") is Status.ACTIVE
    world.slow.is_open.set()
    world.succeeds(worker)


def test_events_beyond_the_limit_of_concurrent_deliveries_wait_in_the_queue(world: World) -> None:
    step = world.worker(3).step
    for number in range(4):
        world.accept(f"before {number}", FAST)
    until(world.is_done, step)
    for number in range(5):
        world.accept(f"e{number}", SLOW)
    assert step() == 0.0
    for _ in range(3):
        assert world.slow.begun.acquire(timeout=PATIENCE)
    assert step() == IDLE_SECONDS
    assert not world.slow.begun.acquire(blocking=False)
    assert sum(world.tries(f"e{number}") for number in range(5)) == 3
    world.slow.is_open.set()
    until(world.is_done, step)
    assert len(world.slow.taken) == 5


def test_the_step_after_the_signal_of_an_attempt_settles_it(world: World) -> None:
    world.accept("e", LOG)
    attempted(world).step()
    assert world.status("e") is Status.SUCCESS
    assert world.is_done()


def test_it_rests_until_the_next_event_and_no_longer(world: World) -> None:
    step = world.worker(2).step
    assert step() == IDLE_SECONDS
    world.accept("e", LOG, AT + 4_000)
    assert step() == pytest.approx(4.0)
    world.now += 3.999
    assert step() == 0.005


def test_a_message_of_an_unknown_event_is_deleted_and_a_malformed_one_redelivered(
    world: World,
) -> None:
    """Neither uses a thread."""
    worker = world.worker(2)
    attempts: list[None] = []
    worker.on_attempt = lambda: attempts.append(None)
    world.delivery_queue.send(message("nobody"))
    world.delivery_queue.send("not JSON")
    worker.step()
    worker.stop()
    assert attempts == []
    assert world.delivery_queue.size() == 1
    world.now += VISIBILITY
    assert [one.body for one in world.delivery_queue.receive(9)] == ["not JSON"]


def test_log_events_of_a_delivery_name_its_function(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    telemetry.begin("another", None)
    world.accept("e", LOG)
    with caplog.at_level(logging.INFO, "vu-mi"):
        until(lambda: len(caplog.records) >= 2, world.worker(1).step)
    logged = [(record.message, vars(record)["fields"]["function"]) for record in caplog.records]
    assert logged == [("event_logged", "deliver_events"), ("metrics", "another")]


def test_stopping_waits_for_running_deliveries_and_settles_them_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    worker = world.worker(2)
    begin_to_hang(world, worker)
    threading.Timer(0.05, world.slow.is_open.set).start()
    with caplog.at_level(logging.INFO, telemetry.metrics.name):
        worker.stop()
        worker.stop()
    assert [record.message for record in caplog.records] == ["metrics"]
    assert world.status("e") is Status.SUCCESS
    assert world.is_done()


def test_an_attempt_whose_outcome_can_not_be_written_is_repeated_with_the_same_id(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The claim ends before its message is visible again."""

    def unavailable(*_: object) -> None:
        raise OSError("the disk is gone")

    world.accept("e", FAST)
    worker = attempted(world)
    with monkeypatch.context() as broken:
        broken.setattr(world.table, "write", unavailable)
        worker.step()
    assert world.status("e") is Status.ACTIVE
    world.now += VISIBILITY
    world.succeeds(worker)
    assert world.fast.bodies == ['"x"', '"x"']
    assert world.tries("e") == 2


def fails_once(world: World, step: Callable[[DeliveryTask], None]) -> None:
    """Undo the first of these steps in a failed commit."""

    def broken(task: DeliveryTask) -> None:
        step(task)
        raise UnavailableError("the disk is full")

    def map_parallel(function: Callable[[Any], Any], parts: Iterable[Any], /) -> Iterable[Any]:
        parts = list(parts)
        if function is not step or not parts:
            return whole(function, parts)
        world.map_parallel = whole
        return whole(broken, parts)

    whole, world.map_parallel = world.map_parallel, map_parallel


@pytest.mark.parametrize("is_cancelled", [False, True])
@pytest.mark.parametrize("failed", [DeliveryTask.claim, DeliveryTask.settle])
def test_a_failed_commit_uses_no_place_loses_no_event_and_ends_its_claim(
    world: World, failed: Callable[[DeliveryTask], None], *, is_cancelled: bool
) -> None:
    """So the event can be cancelled, by any clock, or is delivered again."""
    world.accept("e", FAST)
    fails_once(world, failed)
    worker = world.worker(1)
    with pytest.raises(UnavailableError):
        world.succeeds(worker)
    assert world.tries("e") == (failed is DeliveryTask.settle)
    if is_cancelled:
        world.now -= 3_600.0
        assert world.cancel()
        return
    world.now += VISIBILITY
    until(world.is_done, worker.step)
    assert world.status("e") is Status.SUCCESS
    assert len(world.fast.bodies) == 1 + (failed is DeliveryTask.settle)


def test_stopping_leaves_unwritten_outcomes_to_the_next_start(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.accept("e", FAST)
    worker = world.worker(1)
    worker.step()
    fails_once(world, DeliveryTask.settle)
    telemetry.begin("another", None)
    worker.stop()
    [told] = [one for one in caplog.records if one.levelno == logging.WARNING]
    fields = {"function": "deliver_events", "reason": "the disk is full"}
    assert (told.message, vars(told)["fields"]) == ("events_left_to_next_start", fields)
    assert schedule.read(world.table, "e").claim
    world.delivery_queue.release()
    world.claims = WatchedClaims()
    world.succeeds(world.worker(1))


@pytest.mark.parametrize(
    ("outcome", "name"),
    [
        (DeliveryResult(204), "webhooks_delivered"),
        (DeliveryResult(500, "answered 500"), "webhooks_refused"),
        (DeliveryResult(error="no answer"), "webhooks_unanswered"),
    ],
)
def test_attempts_of_webhooks_are_counted_by_their_outcome(
    world: World, outcome: DeliveryResult, name: str
) -> None:
    class Posting(Sender):
        def post(self, *_: object) -> DeliveryResult:
            return outcome

    world.sender = Posting.__new__(Posting)
    worker = world.worker(2)
    world.accept("posted", Target(TargetKind.URL, "https://example.org/"))
    world.accept("queued", FAST)
    with counting_metrics() as sums:
        until(lambda: world.status("queued") is Status.SUCCESS, worker.step)
        worker.stop()
    posted = {name: n for name, n in sums["deliver_events"].items() if name.startswith("webhooks")}
    assert posted == dict.fromkeys(WEBHOOKS, 0) | {name: 1}
