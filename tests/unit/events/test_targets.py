"""The targets of events, and the possible results of a delivery to each."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from chalicelib import telemetry
from chalicelib.events.consumers import TargetSender
from chalicelib.events.event import DeliveryResult, Event, Target, TargetKind
from chalicelib.events.webhooks.sender import Sender
from chalicelib.outgoing.webhooks import NO_SECRET
from chalicelib.storage.errors import StorageRefusedError
from simulation.queues import FakeQueue
from simulation.scheduled_events import AT

URL = "https://example.com/hook"


@dataclass
class FakeSender:
    """A sender that keeps its posts."""

    posted: list[tuple[Any, ...]] = field(default_factory=list)

    def post(self, *what: Any) -> DeliveryResult:
        self.posted.append(what)
        return DeliveryResult(204)


def event(kind: TargetKind, address: str = "", payload: str = "") -> Event:
    return Event("e", AT, AT, Target(kind, address), payload, "digest")


@pytest.mark.parametrize(("payload", "body"), [('{"a":"ü"}', '{"a":"ü"}'), ("", '{"id": "e"}')])
def test_a_url_gets_the_payload_or_the_id_as_json_under_the_id_of_the_event(
    payload: str, body: str
) -> None:
    sender = FakeSender()
    deliver = TargetSender(lambda _: None, lambda: cast("Sender", sender))
    assert deliver(event(TargetKind.URL, URL, payload)) == DeliveryResult(204)
    assert sender.posted == [(URL, "e", body.encode())]


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
    assert TargetSender(lambda _: None, lambda: None)(event(kind, address)) == DeliveryResult(
        error=said
    )


def test_a_queue_gets_the_payload() -> None:
    queue = FakeQueue()
    deliver = TargetSender({"orders": queue}.get, lambda: None)
    assert deliver(event(TargetKind.QUEUE, "orders", '{"a":1}')) == DeliveryResult()
    assert deliver(event(TargetKind.QUEUE, "orders")) == DeliveryResult()
    assert queue.bodies == ['{"a":1}', '{"id": "e"}']


def test_a_failed_queue_is_reported_briefly() -> None:
    deliver = TargetSender(lambda _: FakeQueue(StorageRefusedError("x" * 1000)), lambda: None)
    delivery = deliver(event(TargetKind.QUEUE, "orders"))
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
        assert (
            TargetSender(lambda _: None, lambda: None)(event(TargetKind.LOG, payload=payload))
            == DeliveryResult()
        )
    [record] = caplog.records
    fields = vars(record)["fields"]
    assert (record.getMessage(), record.levelname) == ("event_logged", "INFO")
    assert (fields["event_id"], fields["payload"]) == ("e", printed)
