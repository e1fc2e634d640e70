"""What the consumers and the sweep of events answer and count, over a real table."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from chalicelib import telemetry
from chalicelib.aws import resources
from chalicelib.aws.consumers import distribute_timers, fire_timers, sweep_timers
from chalicelib.concurrency import MapParallel
from chalicelib.events import schedule
from chalicelib.events.claims import Claims, Leases
from chalicelib.events.event import Event, Kind, Status, Target, message
from chalicelib.events.sweep import CURSOR
from chalicelib.events.webhooks.sender import Sender
from chalicelib.settings import Settings
from chalicelib.storage.errors import Refused, Unavailable
from chalicelib.storage.ports import Queue, Table
from simulation import aws_events as events
from simulation.clocks import NOON
from simulation.queues import FakeQueue
from simulation.scheduled_events import AT, an_event
from simulation.tables import FaultyTable, raising, sqlite_table
from vumi.workers.events import scheduled_event


@dataclass
class Use:
    """A `resources.Resources`."""

    table: Table
    timers_queue: FakeQueue = field(default_factory=FakeQueue)
    distribution_queue: FakeQueue = field(default_factory=FakeQueue)
    claims: Claims = field(default_factory=Leases)
    settings: Settings = field(default_factory=Settings)
    map_parallel: MapParallel = map
    sender: Sender | None = None
    queues: dict[str, Queue] = field(default_factory=dict)

    def clock(self) -> float:
        return NOON

    def event_queue(self, name: str) -> Queue | None:
        return self.queues.get(name)


@pytest.fixture
def use(tmp_path: Path) -> Iterator[Use]:
    with sqlite_table(tmp_path) as table:
        used = Use(table)
        resources.use(used)
        yield used
        resources.use(None)


@pytest.fixture
def counted(caplog: pytest.LogCaptureFixture) -> Iterator[dict[str, dict[str, int]]]:
    """The sums of the metrics, by function and name."""
    values: dict[str, dict[str, int]] = {}

    class Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            line = json.loads(telemetry.JsonFormatter().format(record))
            of = values.setdefault(line["function"], {})
            for metric in line["_aws"]["CloudWatchMetrics"][0]["Metrics"]:
                of[metric["Name"]] = of.get(metric["Name"], 0) + line[metric["Name"]]

    handler = Collect()
    with caplog.at_level(logging.INFO, logger=telemetry.metrics.name):
        telemetry.metrics.addHandler(handler)
        yield values
        telemetry.metrics.removeHandler(handler)


def accept(use: Use, name: str, at: int = AT, target: Target | None = None) -> Event:
    event = an_event(name, at)
    if target:
        event = Event(name, at, AT, target, event.payload, event.request)
    return schedule.accept(event, use.table, FakeQueue(), at - 10**9).event


def status(use: Use, name: str) -> Status:
    return schedule.read(use.table, name).status


def failed(answer: Mapping[str, Any]) -> list[str]:
    return [one["itemIdentifier"] for one in answer["batchItemFailures"]]


def batch(*names: str) -> dict[str, Any]:
    return events.sqs_event({f"m-{name}": message(name) for name in names})


def test_every_event_of_a_batch_is_fired_and_counted_for_the_function(
    use: Use, counted: dict[str, dict[str, int]]
) -> None:
    for name in ("a", "b", "c"):
        accept(use, name, AT - 2_000)
    assert failed(fire_timers(batch("a", "b", "c"), None)) == []
    assert {status(use, name) for name in ("a", "b", "c")} == {Status.SUCCESS}
    assert counted == {"fire_timers": {"events_fired": 3, "event_lateness_seconds": 6}}


def test_a_message_of_an_event_that_is_done_or_unknown_is_done_with(use: Use) -> None:
    accept(use, "a")
    for _ in range(2):
        assert failed(fire_timers(batch("a", "nobody"), None)) == []


def test_an_event_of_which_the_batch_has_two_messages_is_delivered_once(use: Use) -> None:
    use.queues["orders"] = orders = FakeQueue()
    accept(use, "a", target=Target(Kind.QUEUE, "orders"))
    twice = {"m-1": message("a"), "m-2": message("a")}
    assert failed(fire_timers(events.sqs_event(twice), None)) == []
    assert len(orders.bodies) == 1


@pytest.mark.parametrize("body", ["", "[]", '{"event": 7}', "not JSON", None])
def test_a_malformed_message_alone_is_delivered_again(
    use: Use, counted: dict[str, dict[str, int]], body: object
) -> None:
    accept(use, "a")
    bodies = {"m-bad": body, "m-a": message("a")}
    assert failed(fire_timers(events.sqs_event(bodies), None)) == ["m-bad"]
    assert status(use, "a") is Status.SUCCESS
    assert counted["fire_timers"]["malformed"] == 1


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str, dict[str, object]]]:
    """What was logged beside metrics: level, message and fields."""
    return [
        (record.levelno, record.message, vars(record)["fields"])
        for record in caplog.records
        if record.name == telemetry.log.name
    ]


@pytest.mark.parametrize(
    ("consumer", "name"), [(fire_timers, "fire_timers"), (distribute_timers, "distribute_timers")]
)
def test_a_malformed_message_is_told_by_its_id(
    use: Use, caplog: pytest.LogCaptureFixture, consumer: Callable[..., object], name: str
) -> None:
    consumer(events.sqs_event({"m-bad": "not JSON"}), None)
    fields = {"function": name, "message_id": "m-bad"}
    assert use.timers_queue.bodies == []
    assert told(caplog) == [(logging.ERROR, "a malformed message", fields)]


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (Unavailable("no"), (logging.WARNING, "an event has to wait", {"reason": "no"})),
        (OSError("a bug"), (logging.ERROR, "an event failed to fire", {"message_id": "m-a"})),
    ],
)
def test_only_what_is_no_fault_of_the_storage_is_told_as_an_error(
    use: Use,
    caplog: pytest.LogCaptureFixture,
    failure: Exception,
    said: tuple[int, str, dict[str, object]],
) -> None:
    accept(use, "a")
    use.table = FaultyTable(use.table, before_write=raising(failure))
    fire_timers(batch("a"), None)
    level, what, fields = said
    assert told(caplog) == [(level, what, {"function": "fire_timers"} | fields)]


@pytest.mark.parametrize("failure", [Unavailable("throttled"), Refused("no"), OSError("a bug")])
@pytest.mark.parametrize("step", ["claim", "settle"])
def test_an_event_that_fails_at_a_step_alone_is_delivered_again(
    use: Use, failure: Exception, step: str
) -> None:
    for name in ("a", "b"):
        accept(use, name)

    def fail(writes: Any) -> None:
        [write] = writes
        if write.key.pk == "TIMER#a" and ("status" in write.values) == (step == "settle"):
            raise failure

    use.table = FaultyTable(use.table, before_write=fail)
    assert failed(fire_timers(batch("a", "b"), None)) == ["m-a"]
    assert (status(use, "a"), status(use, "b")) == (Status.ACTIVE, Status.SUCCESS)


def test_an_attempt_that_failed_is_done_with_and_comes_again_by_its_schedule(use: Use) -> None:
    accept(use, "a", target=Target(Kind.URL, "https://example.com/"))
    assert failed(fire_timers(batch("a"), None)) == []
    event = schedule.read(use.table, "a")
    assert (event.status, event.tries) == (Status.ACTIVE, 1)
    assert event.next_at > AT
    [sent] = use.timers_queue.bodies
    assert sent.startswith(message("a") + " after ")


def test_wrong_settings_of_webhooks_fail_no_event_to_the_log(use: Use) -> None:
    wrong = resources.AwsResources(Settings(webhook_secrets=("no secret",)))
    accept(use, "a")
    accept(use, "b", target=Target(Kind.URL, "https://example.com/"))

    class Wrong(Use):
        @property
        def sender(self) -> Sender | None:
            return wrong.sender

        @sender.setter
        def sender(self, value: object) -> None:
            pass

    resources.use(Wrong(use.table))
    assert failed(fire_timers(batch("a", "b"), None)) == []
    assert status(use, "a") is Status.SUCCESS
    [attempt] = schedule.read(use.table, "b").attempts
    assert attempt.error.startswith("nothing can be sent: WEBHOOK_SECRETS")


def group(*dues: tuple[str, int]) -> str:
    return json.dumps({"events": dues})


def test_distribution_puts_every_event_on_the_queue_for_its_time(use: Use) -> None:
    bodies = {"g": group(("a", AT), ("b", AT + 90_500), ("c", AT - 5_000))}
    assert failed(distribute_timers(events.sqs_event(bodies), None)) == []
    assert use.timers_queue.bodies == [message("a"), message("b") + " after 90.5 s", message("c")]


def test_a_malformed_group_alone_is_delivered_again(
    use: Use, counted: dict[str, dict[str, int]]
) -> None:
    bodies = {"bad": '{"events": [["a"]]}', "good": group(("a", AT))}
    assert failed(distribute_timers(events.sqs_event(bodies), None)) == ["bad"]
    assert use.timers_queue.bodies == [message("a")]
    assert counted == {"distribute_timers": {"malformed": 1}}


def test_a_group_that_the_queue_does_not_take_is_delivered_again(
    use: Use, caplog: pytest.LogCaptureFixture
) -> None:
    use.timers_queue.failure = Unavailable("no queue")
    assert failed(distribute_timers(events.sqs_event({"g": group(("a", AT))}), None)) == ["g"]
    fields = {"function": "distribute_timers", "reason": "no queue"}
    assert told(caplog) == [(logging.WARNING, "events are not distributed yet", fields)]


def test_a_sweep_tells_what_it_found(use: Use, counted: dict[str, dict[str, int]]) -> None:
    assert sweep_timers(scheduled_event(), None) == {"sent": 0, "overdue": 0}
    accept(use, "overdue", AT - 120_000)
    accept(use, "ahead", AT + 300_001)
    assert sweep_timers(scheduled_event(), None) == {"sent": 1, "overdue": 1}
    assert counted == {"sweep_timers": {"events_swept": 0, "events_overdue": 1}}
    assert use.table.get(CURSOR) == {"PK": "TIMER", "SK": "SWEEP", "swept": AT + 300_000}


def test_a_sweep_that_fails_raises_so_that_it_is_told_as_an_error(use: Use) -> None:
    use.distribution_queue.failure = Unavailable("no queue")
    accept(use, "a")
    with pytest.raises(Unavailable):
        sweep_timers(scheduled_event(), None)
    assert use.table.get(CURSOR) is None
