"""The sweep, distribution and delivery of events over a real table."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from chalicelib import telemetry
from chalicelib.events import schedule
from chalicelib.events.consumers import deliver, distribute, send, sweep_events
from chalicelib.events.event import DeliveryResult, Event, Status, Target, TargetKind
from chalicelib.events.sender import Sender, sender_of
from chalicelib.events.sweep import CURSOR, SweepResult
from chalicelib.outgoing.webhooks import NO_SECRET
from chalicelib.settings import Settings
from chalicelib.storage.errors import StorageRefusedError, UnavailableError
from chalicelib.storage.ports import Message
from simulation.clocks import NOON
from simulation.logs import logged_events
from simulation.resources import GivenResources
from simulation.scheduled_events import AT, an_event
from simulation.storage import FakeQueue, FaultyTable, MemoryTable


@dataclass
class World(GivenResources):
    """Resources at noon, with queues that a test can read."""

    delivery_queue: FakeQueue = field(default_factory=FakeQueue)
    distribution_queue: FakeQueue = field(default_factory=FakeQueue)
    clock: Callable[[], float] = lambda: NOON


@pytest.fixture
def world() -> World:
    return World(table=MemoryTable())


@dataclass
class Meeting(FakeQueue):
    """A receiver that takes its events concurrently."""

    barrier: threading.Barrier = field(default_factory=lambda: threading.Barrier(1))

    def send_all(self, messages: Sequence[Message]) -> None:
        self.barrier.wait()
        super().send_all(messages)


def accept(world: World, name: str, at: int = AT, target: Target | None = None) -> Event:
    event = an_event(name, at)
    if target:
        event = Event(name, at, AT, target, event.payload, event.request)
    return schedule.accept(event, world.table, FakeQueue(), at - 10**9).event


def status(world: World, name: str) -> Status:
    return schedule.read(world.table, name).status


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (UnavailableError("no"), (logging.WARNING, "event_waits", {"reason": "no"})),
        (StorageRefusedError("no"), (logging.WARNING, "event_waits", {"reason": "no"})),
        (OSError("a bug"), (logging.ERROR, "event_not_delivered", {})),
    ],
)
@pytest.mark.parametrize("step", ["claim", "settle"])
def test_only_the_event_that_fails_at_a_step_is_logged_and_delivered_again(
    world: World,
    caplog: pytest.LogCaptureFixture,
    failure: Exception,
    said: tuple[int, str, dict[str, object]],
    step: str,
) -> None:
    for name in ("a", "b"):
        accept(world, name)

    def fail(writes: Any) -> None:
        [write] = writes
        if write.key.pk == "TIMER#a" and ("status" in write.values) == (step == "settle"):
            raise failure

    world.table = FaultyTable(world.table, before_write=fail)
    assert deliver(["a", "b"], world) == {"a"}
    assert (status(world, "a"), status(world, "b")) == (Status.ACTIVE, Status.SUCCESS)
    level, name, fields = said
    assert logged_events(caplog) == [(level, name, {"event_id": "a", **fields})]


def test_malformed_webhook_settings_fail_no_event_to_the_log(world: World) -> None:
    accept(world, "a")
    accept(world, "b", target=Target(TargetKind.URL, "https://example.com/"))

    class Wrong(World):
        @property
        def sender(self) -> Sender | None:
            return sender_of(Settings(webhook_secrets=("no secret",)))

        @sender.setter
        def sender(self, value: object) -> None:
            pass

    assert deliver(["a", "b"], Wrong(table=world.table)) == set()
    assert status(world, "a") is Status.SUCCESS
    [attempt] = schedule.read(world.table, "b").attempts
    assert attempt.error.startswith("nothing can be sent: WEBHOOK_SECRETS")


def test_no_event_waits_for_the_receiver_of_another(world: World) -> None:
    """No delivery passes the barrier until all twenty have reached it."""
    names = [f"e{number}" for number in range(20)]
    receiver = Meeting(barrier=threading.Barrier(len(names), timeout=30))
    world.event_queues = {"orders": receiver}
    for name in names:
        accept(world, name, target=Target(TargetKind.QUEUE, "orders"))
    assert deliver(names, world) == set()


def test_a_group_that_the_queue_refuses_is_delivered_again(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.delivery_queue.failure = UnavailableError("no queue")
    assert distribute([(("a", AT),)], world) == [(("a", AT),)]
    logged = (logging.WARNING, "events_not_distributed", {"reason": "no queue"})
    assert logged_events(caplog) == [logged]


def test_a_sweep_returns_the_number_of_events(world: World, counted: dict[str, int]) -> None:
    assert sweep_events(world) == SweepResult(sent=0, overdue=0)
    accept(world, "overdue", AT - 120_000)
    accept(world, "ahead", AT + 300_001)
    assert sweep_events(world) == SweepResult(sent=1, overdue=1)
    assert counted == {"events_swept": 0, "events_overdue": 1}
    assert world.table.get(CURSOR) == {"PK": "TIMER", "SK": "SWEEP", "swept": AT + 300_000}


# ---- targets

URL = "https://example.com/hook"


@dataclass
class FakeSender:
    """A sender that keeps its posts."""

    posted: list[tuple[Any, ...]] = field(default_factory=list)

    def post(self, *what: Any) -> DeliveryResult:
        self.posted.append(what)
        return DeliveryResult(204)


def no_queue(_: str) -> None:
    """No queue is listed."""


def no_sender() -> None:
    """There is no secret."""


def event(kind: TargetKind, address: str = "", payload: str = "") -> Event:
    return Event("e", AT, AT, Target(kind, address), payload, "digest")


@pytest.mark.parametrize(("payload", "body"), [('{"a":"ü"}', '{"a":"ü"}'), ("", '{"id": "e"}')])
def test_a_url_and_a_queue_get_the_payload_or_the_id_as_json(payload: str, body: str) -> None:
    sender, queue = FakeSender(), FakeQueue()
    posted = event(TargetKind.URL, URL, payload)
    assert send(posted, no_queue, lambda: cast("Sender", sender)) == DeliveryResult(204)
    assert sender.posted == [(URL, "e", body.encode())]
    queued = event(TargetKind.QUEUE, "orders", payload)
    assert send(queued, {"orders": queue}.get, no_sender) == DeliveryResult()
    assert queue.bodies == [body]


@pytest.mark.parametrize(
    ("kind", "address", "said"),
    [
        (TargetKind.URL, URL, NO_SECRET),
        (TargetKind.QUEUE, "orders", "EVENT_QUEUES has no queue orders"),
    ],
)
def test_without_a_secret_or_its_queue_nothing_is_sent(
    kind: TargetKind, address: str, said: str
) -> None:
    assert send(event(kind, address), no_queue, no_sender) == DeliveryResult(error=said)


def test_a_failed_queue_is_reported_briefly() -> None:
    full = FakeQueue(StorageRefusedError("x" * 1000))
    delivery = send(event(TargetKind.QUEUE, "orders"), lambda _: full, no_sender)
    assert delivery.error.startswith("the queue does not take it: xxx")
    assert len(delivery.error) == 200
    assert not delivery.is_final


@pytest.mark.parametrize(
    ("payload", "printed"), [('"said"', "said"), ('{"a":1}', {"a": 1}), ("", None)]
)
def test_the_log_gets_the_payload(
    caplog: pytest.LogCaptureFixture, payload: str, printed: object
) -> None:
    with caplog.at_level(logging.INFO, logger=telemetry.log.name):
        logged = event(TargetKind.LOG, payload=payload)
        assert send(logged, no_queue, no_sender) == DeliveryResult()
    [record] = caplog.records
    fields = vars(record)["fields"]
    assert (record.getMessage(), record.levelname) == ("event_logged", "INFO")
    assert (fields["event_id"], fields["payload"]) == ("e", printed)
