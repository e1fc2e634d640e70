"""The sender of webhooks: its signed requests, and the results of their responses."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.x509 import DNSName
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook

from chalicelib.events.event import DeliveryResult
from chalicelib.events.webhooks.sender import Sender, seconds_to_wait
from chalicelib.events.webhooks.signing import BadWebhookIdError, Signer, new_secret
from chalicelib.outgoing.http_client import HttpClient
from simulation.authority import Authority
from simulation.clocks import NOON
from simulation.hosts import Names
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


def test_an_id_that_would_add_a_header_is_refused() -> None:
    sender = Sender(Signer([SECRET]), HttpClient(LOOPBACK))
    with pytest.raises(BadWebhookIdError):
        sender.post("http://127.0.0.1/", "evt\r\nX: 1", BODY)


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_2xx_is_a_delivery(status: int) -> None:
    assert answered(f"{status} Some Words") == DeliveryResult(status)


@pytest.mark.parametrize("status", [400, 404, 409, 411, 429, 500, 503, 999])
def test_another_status_is_a_failure_that_is_tried_again(status: int) -> None:
    assert answered(f"{status} Some Words") == DeliveryResult(status, f"answered {status}")


@pytest.mark.parametrize("status", [300, 302, 399])
def test_a_redirect_is_a_failure(status: int) -> None:
    said = f"answered {status}, and redirects are not followed"
    assert answered(f"{status} Found") == DeliveryResult(status, said)


def test_410_ends_all_attempts() -> None:
    assert answered("410 Gone") == DeliveryResult(410, "answered 410", is_final=True)


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


@pytest.mark.parametrize("wait", ["30", "Sat, 14 Mar 2026 12:00:30 GMT"])
def test_a_receiver_may_ask_for_a_longer_wait(wait: str) -> None:
    expected = DeliveryResult(503, "answered 503", retry_after=30.0)
    assert answered(f"503 Busy\r\nretry-after: {wait}") == expected
