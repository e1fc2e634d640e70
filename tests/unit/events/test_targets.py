"""Where an event goes, and how each way there can end."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from chalicelib import telemetry
from chalicelib.events.delivery import Delivery
from chalicelib.events.event import Event, Kind, Target
from chalicelib.events.targets import NO_SECRET, Deliverer
from chalicelib.events.webhooks.sender import PostOutcome, Sender
from chalicelib.settings import SettingsError
from chalicelib.storage.ports import Refused
from tests.unit.event_builders import AT
from tests.unit.fakes import FakeQueue

URL = "https://example.com/hook"


@dataclass
class FakeSender:
    """A sender that is answered as told, and keeps what it posted."""

    outcome: PostOutcome
    posted: list[tuple[Any, ...]] = field(default_factory=list)

    def post(self, *what: Any) -> PostOutcome:
        self.posted.append(what)
        return self.outcome


def event(kind: Kind, address: str = "", payload: str = "") -> Event:
    return Event("e", AT, AT, Target(kind, address), payload, "digest")


def posted(outcome: PostOutcome, payload: str = "") -> tuple[Delivery, Sequence[Any]]:
    sender = FakeSender(outcome)
    deliver = Deliverer(lambda _: None, lambda: cast("Sender", sender))
    delivery = deliver(event(Kind.URL, URL, payload))
    [what] = sender.posted
    return delivery, what


@pytest.mark.parametrize("payload", ['{"a":[1,2.5,null]}', '"ü"', "null"])
def test_a_url_gets_the_payload_as_json_under_the_id_of_the_event(payload: str) -> None:
    delivery, what = posted(PostOutcome(204), payload)
    assert delivery == Delivery(code=204)
    assert what == (URL, "e", payload.encode())


def test_without_a_payload_a_url_gets_the_id() -> None:
    _, (_, _, body) = posted(PostOutcome(200))
    assert json.loads(body) == {"id": "e"}


@pytest.mark.parametrize(
    ("outcome", "delivery"),
    [
        (PostOutcome(500, "status 500"), Delivery(500, "status 500")),
        (PostOutcome(302, "status 302"), Delivery(302, "status 302")),
        (PostOutcome(None, "no answer"), Delivery(0, "no answer")),
        (PostOutcome(410, "status 410"), Delivery(410, "status 410", is_final=True)),
        (PostOutcome(429, "status 429", 7.5), Delivery(429, "status 429", retry_after=7.5)),
        (PostOutcome(503, ""), Delivery(503, "status 503")),
    ],
)
def test_what_is_no_success_is_told(outcome: PostOutcome, delivery: Delivery) -> None:
    assert posted(outcome)[0] == delivery


def test_without_a_secret_nothing_is_posted() -> None:
    assert Deliverer(lambda _: None, lambda: None)(event(Kind.URL, URL)) == Delivery(
        error=NO_SECRET
    )


def test_a_wrong_setting_of_webhooks_is_told_where_one_is_sent_and_fails_nothing_else() -> None:
    def sender() -> Sender:
        raise SettingsError("WEBHOOK_ALLOW must be networks")

    deliver = Deliverer(lambda _: None, sender)
    assert deliver(event(Kind.LOG)) == Delivery()
    said = "nothing can be sent: WEBHOOK_ALLOW must be networks"
    assert deliver(event(Kind.URL, URL)) == Delivery(error=said)


def test_a_queue_gets_the_payload() -> None:
    queue = FakeQueue()
    deliver = Deliverer({"orders": queue}.get, lambda: None)
    assert deliver(event(Kind.QUEUE, "orders", '{"a":1}')) == Delivery()
    assert deliver(event(Kind.QUEUE, "orders")) == Delivery()
    assert queue.bodies == ['{"a":1}', '{"id": "e"}']


def test_a_queue_that_fails_is_told_briefly() -> None:
    deliver = Deliverer(lambda _: FakeQueue(Refused("x" * 1000)), lambda: None)
    delivery = deliver(event(Kind.QUEUE, "orders"))
    assert delivery.error.startswith("the queue does not take it: xxx")
    assert len(delivery.error) == 200
    assert not delivery.is_final


def test_a_queue_that_is_not_listed_any_more_is_told() -> None:
    delivery = Deliverer(lambda _: None, lambda: None)(event(Kind.QUEUE, "orders"))
    assert delivery == Delivery(error="EVENT_QUEUES has no queue orders")


@pytest.mark.parametrize(
    ("payload", "printed"), [('"said"', "said"), ('{"a":1}', {"a": 1}), ("", None)]
)
def test_the_log_gets_the_payload(
    caplog: pytest.LogCaptureFixture, payload: str, printed: object
) -> None:
    with caplog.at_level(logging.INFO, logger=telemetry.log.name):
        assert (
            Deliverer(lambda _: None, lambda: None)(event(Kind.LOG, payload=payload)) == Delivery()
        )
    [record] = caplog.records
    fields = vars(record)["fields"]
    assert (record.getMessage(), record.levelname) == ("an event", "INFO")
    assert (fields["event_id"], fields["payload"]) == ("e", printed)
