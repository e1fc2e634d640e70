"""The targets of events, and the sender of webhooks, whose signatures verify."""

from __future__ import annotations

import base64
import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from cryptography.x509 import DNSName
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from chalicelib import telemetry
from chalicelib.events import schedule
from chalicelib.events.delivery import deliver, send
from chalicelib.events.event import DeliveryResult, Event, Status, Target, TargetKind
from chalicelib.events.sender import Sender, Signer, new_secret, seconds_to_wait, sender_of
from chalicelib.outgoing.http_client import HttpClient
from chalicelib.outgoing.webhooks import NO_SECRET
from chalicelib.settings import Settings, SettingsError
from chalicelib.storage.errors import StorageRefusedError, UnavailableError
from chalicelib.storage.ports import Message
from simulation.authority import Authority
from simulation.clocks import NOON
from simulation.logs import logged_events
from simulation.resources import GivenResources, Names
from simulation.scheduled_events import AT
from simulation.storage import FakeQueue, FaultyTable, MemoryTable
from tests.unit.outgoing.receivers import LOOPBACK, receiver

SECRET = new_secret()
BODY = b'{"event": "tea"}'


def answered(head: str) -> DeliveryResult:
    """Return the result of a post to a server with this answer, at noon."""
    with receiver(f"HTTP/1.1 {head}\r\n\r\n".encode()) as server:
        sender = Sender(Signer([SECRET]), HttpClient(LOOPBACK), lambda: NOON)
        return sender.post(server.url(), "evt_1", BODY)


def test_a_receiver_gets_a_signed_post() -> None:
    with receiver() as server:
        sender = Sender(Signer([SECRET]), HttpClient(LOOPBACK))
        assert sender.post(server.url(), "evt_1", BODY) == DeliveryResult(200)
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    assert first == "POST /hook?a=b HTTP/1.1"
    assert headers["Content-Type"] == "application/json"
    assert headers["webhook-id"] == "evt_1"
    assert Webhook(SECRET).verify(body, headers) == {"event": "tea"}


def test_a_post_is_signed_for_the_time_of_the_clock() -> None:
    with receiver() as server:
        Sender(Signer([SECRET]), HttpClient(LOOPBACK), lambda: NOON + 0.9).post(
            server.url(), "evt_1", BODY
        )
    assert f"webhook-timestamp: {NOON:.0f}\r\n".encode() in server.requests[0]


REDIRECT = "answered {}, and redirects are not followed"
WAIT = DeliveryResult(503, "answered 503", retry_after=30.0)


@pytest.mark.parametrize(
    ("head", "result"),
    [
        *((f"{one} Some Words", DeliveryResult(one)) for one in (200, 201, 202, 204, 299)),
        *(
            (f"{one} Some Words", DeliveryResult(one, f"answered {one}"))
            for one in (400, 404, 409, 411, 429, 500, 503, 999)
        ),
        *((f"{one} Found", DeliveryResult(one, REDIRECT.format(one))) for one in (300, 302, 399)),
        ("410 Gone", DeliveryResult(410, "answered 410", is_final=True)),
        ("503 Busy\r\nretry-after: 30", WAIT),
        ("503 Busy\r\nretry-after: Sat, 14 Mar 2026 12:00:30 GMT", WAIT),
    ],
)
def test_2xx_is_a_delivery_410_the_end_and_others_are_tried_again(
    head: str, result: DeliveryResult
) -> None:
    assert answered(head) == result


def test_a_failed_call_has_no_status() -> None:
    sender = Sender(Signer([SECRET]), HttpClient(LOOPBACK, Names([])))
    result = sender.post("https://a.example/", "evt_1", BODY)
    assert result == DeliveryResult(error="a.example does not resolve to an address")


def test_an_error_has_at_most_200_characters_however_long_the_name(tmp_path: Path) -> None:
    authority, name = Authority.create(tmp_path), ".".join(["a" * 60] * 4)
    client = HttpClient(LOOPBACK, Names(["127.0.0.1"]), trust=authority.trusted)
    with receiver(tls=authority.server(DNSName("other.example"))) as server:
        result = Sender(Signer([SECRET]), client).post(server.url("https", name), "evt_1", BODY)
    assert len(result.error) == 200


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("0", 0.0),
        ("1", 1.0),
        (" 120 ", 120.0),
        ("86400", 86_400.0),
        ("86401", 86_400.0),
        ("9" * 6000, 86_400.0),
        ("Sat, 14 Mar 2026 12:01:00 GMT", 60.0),
        ("Saturday, 14-Mar-26 12:01:00 GMT", 60.0),
        ("Sat Mar 14 12:01:00 2026", 60.0),
        ("Sat, 14 Mar 2026 12:01:00 -0000", 60.0),
        ("Sat, 14 Mar 2026 11:59:00 GMT", 0.0),
        ("Sun, 15 Mar 2026 12:00:01 GMT", 86_400.0),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 0.0),
        *((malformed, 0.0) for malformed in ("", "-1", "1.5", "\uff11", "soon")),
        ("Sat, 14 Mar 99999 12:01:00 GMT", 0.0),
        ("Sat, 14 Mar 2026 12:01:00 +99999999999999999999", 0.0),
        ("Sat, 99 Mar 2026 12:01:00 GMT", 0.0),
    ],
)
def test_retry_after_is_seconds_or_a_date_at_noon(header: str, seconds: float) -> None:
    assert seconds_to_wait(header, NOON) == seconds


@given(st.one_of(st.text(), st.text("0123456789:+-, SatMarGMT")), st.floats(0, 4e9))
def test_any_retry_after_is_within_a_day(header: str, now: float) -> None:
    assert 0 <= seconds_to_wait(header, now) <= 86_400


# ---- signatures

# The signature that Standard Webhooks' own tests expect of these four.
KNOWN_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # noqa: S105
KNOWN_ID = "msg_p5jXN8AQM9LWM0D4loKWxJek"
KNOWN_TIME = 1_614_265_330
KNOWN_BODY = b'{"test": 2432232314}'
KNOWN_SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def now() -> int:
    """Return the real time, because the library compares a signature's time with the real clock."""
    return int(time.time())


def secret_of(size: int) -> str:
    return "whsec_" + base64.b64encode(bytes(range(size))).decode()


def test_the_signature_is_that_of_the_specification() -> None:
    assert Signer([KNOWN_SECRET]).headers(KNOWN_ID, KNOWN_TIME, KNOWN_BODY) == {
        "webhook-id": KNOWN_ID,
        "webhook-timestamp": "1614265330",
        "webhook-signature": KNOWN_SIGNATURE,
    }


@given(st.text(), st.binary(min_size=24, max_size=64))
def test_every_body_and_every_secret_verify(text: str, key: bytes) -> None:
    secret = "whsec_" + base64.b64encode(key).decode()
    headers = Signer([secret]).headers("evt_1", now(), text.encode())
    Webhook(secret).verify(text.encode(), headers, json_parse=False)


def test_while_a_secret_is_changed_receivers_of_either_verify_and_no_others() -> None:
    present, older = new_secret(), new_secret()
    headers = Signer([present, older]).headers("evt_1", now(), BODY)
    first, second = headers["webhook-signature"].split(" ")
    for secret, signature in ((present, first), (older, second)):
        Webhook(secret).verify(BODY, headers)
        Webhook(secret).verify(BODY, headers | {"webhook-signature": signature})
    with pytest.raises(WebhookVerificationError, match="No matching signature"):
        Webhook(new_secret()).verify(BODY, headers)
    with pytest.raises(WebhookVerificationError, match="No matching signature"):
        Webhook(older).verify(BODY, headers | {"webhook-signature": first})


def test_a_new_secret_is_new_and_has_32_bytes() -> None:
    secrets = {new_secret() for _ in range(50)}
    assert len(secrets) == 50
    for secret in secrets:
        assert len(base64.b64decode(secret.removeprefix("whsec_"), validate=True)) == 32
        Signer([secret])


@pytest.mark.parametrize(
    ("secret", "said"),
    [
        (secret_of(23), "must be 24 to 64 bytes in base64, not 23"),
        (secret_of(65), "must be 24 to 64 bytes in base64, not 65"),
        ("whsec_", "not 0"),
        ("", "must begin with whsec_"),
        (secret_of(32).removeprefix("whsec_"), "must begin with whsec_"),
        (secret_of(32).replace("whsec_", "WHSEC_"), "must begin with whsec_"),
        (secret_of(32).rstrip("="), "base64 with padding"),
        (secret_of(32) + "=", "base64 with padding"),
        (secret_of(32) + "\n", "base64 with padding"),
        (secret_of(64).replace("+", "-").replace("/", "_"), "base64 with padding"),
        ("whsec_" + "é" * 40, "base64 with padding"),
    ],
)
def test_a_bad_secret_is_refused_by_its_place_and_never_shown(secret: str, said: str) -> None:
    with pytest.raises(SettingsError, match=r"^WEBHOOK_SECRETS: secret 2 ") as refused:
        Signer([new_secret(), secret])
    assert said in str(refused.value)
    assert len(secret) < 10 or secret.removeprefix("whsec_")[:8] not in str(refused.value)
    assert refused.value.__suppress_context__ or refused.value.__context__ is None


@pytest.mark.parametrize("webhook_id", ["", "a.b", "a b", "a\r\nX: 1", "é", "a" * 201, "a\n"])
def test_an_id_that_could_be_read_two_ways_is_refused(webhook_id: str) -> None:
    with pytest.raises(ValueError, match="without a full stop"):
        Signer([KNOWN_SECRET]).headers(webhook_id, now(), BODY)


def test_any_other_visible_id_is_signed() -> None:
    for webhook_id in ("a", "a" * 200, "evt_01K", "!-/~"):
        headers = Signer([KNOWN_SECRET]).headers(webhook_id, now(), BODY)
        Webhook(KNOWN_SECRET).verify(BODY, headers)


@dataclass
class World(GivenResources):
    """Resources at noon, with a queue that a test can read."""

    delivery_queue: FakeQueue = field(default_factory=FakeQueue)
    clock: Callable[[], float] = lambda: NOON


@pytest.fixture
def world() -> World:
    return World(table=MemoryTable())


LOG = Target(TargetKind.LOG)


def accept(world: World, *names: str, target: Target = LOG) -> None:
    for name in names:
        event = Event(name, AT, AT, target, '"hello"', "digest")
        schedule.accept(event, world.table, FakeQueue(), AT - 10**9)


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
    accept(world, "a", "b")

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
    barrier = threading.Barrier(len(names), timeout=30)

    class Meeting(FakeQueue):
        def send_all(self, messages: Sequence[Message]) -> None:
            barrier.wait()
            super().send_all(messages)

    world.event_queues = {"orders": Meeting()}
    accept(world, *names, target=Target(TargetKind.QUEUE, "orders"))
    assert deliver(names, world) == set()


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
