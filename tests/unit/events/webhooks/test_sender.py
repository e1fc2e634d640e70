"""The sender of webhooks, against real servers on this machine and names that change."""

from __future__ import annotations

import io
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any, cast

import pytest
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook

from chalicelib.events.webhooks.sender import PostOutcome, Sender, seconds_to_wait
from chalicelib.events.webhooks.signing import BadWebhookIdError, Signer, new_secret
from chalicelib.outgoing import http_client
from chalicelib.outgoing.addresses import Allowed
from chalicelib.outgoing.http_client import Deadline, HttpClient
from chalicelib.outgoing.urls import Record
from simulation.authority import Authority
from simulation.clocks import NOON, FakeTime
from simulation.resolver import Names

NOTHING = Allowed()
LOOPBACK = Allowed.parse("127.0.0.0/8,::1")
SECRET = new_secret()
BODY = b'{"event": "tea"}'
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
SHORT = 0.3
"""The time for posts that must reach their deadline."""
SOON = 3.0
"""The time for posts that must end earlier."""


# Servers

Script = Callable[[socket.socket], None]


@dataclass
class Receiver:
    """A server on this machine that records requests and TLS server names."""

    port: int
    requests: list[bytes] = field(default_factory=list)
    names: list[str | None] = field(default_factory=list)

    def url(self, scheme: str = "http", host: str = "127.0.0.1") -> str:
        return f"{scheme}://{host}:{self.port}/hook?a=b"


def says(answer: bytes) -> Script:
    return lambda connection: connection.sendall(answer)


def drips(start: bytes, part: bytes) -> Script:
    """Send a part immediately, then a little every 10 ms until the client closes."""

    def script(connection: socket.socket) -> None:
        connection.sendall(start)
        while True:
            connection.sendall(part)
            time.sleep(0.01)

    return script


TLS_HANDSHAKE = b"\x16"


def _receive(connection: socket.socket) -> bytes:
    request = b""
    while b"\r\n\r\n" not in request:
        part = connection.recv(65_536)
        if not part:
            return request
        request += part
        if request.startswith(TLS_HANDSHAKE):
            return request
    head, _, body = request.partition(b"\r\n\r\n")
    left = int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0]) - len(body)
    while left > 0:
        part = connection.recv(min(left, 65_536)) or bytes(left)
        request, left = request + part, left - len(part)
    return request


@contextmanager
def receiver(script: Script, tls: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """Serve connections one after the other: read a request, then run the script."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Receiver(listener.getsockname()[1])
        thread = threading.Thread(target=_serve, args=(listener, server, script, tls))
        thread.start()
        try:
            yield server
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _serve(
    listener: socket.socket, server: Receiver, script: Script, tls: ssl.SSLContext | None
) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with suppress(OSError), ExitStack() as open_ones:
            open_ones.enter_context(connection)
            if tls:
                connection = open_ones.enter_context(tls.wrap_socket(connection, server_side=True))
            server.requests.append(_receive(connection))
            script(connection)


def sender(clock: Callable[[], float] = time.time, **settings: Any) -> Sender:
    return Sender(Signer([SECRET]), HttpClient(LOOPBACK, **settings), clock)


def answered(answer: bytes | Script, **settings: Any) -> PostOutcome:
    """Return the outcome of a post to a server with this answer."""
    with receiver(answer if callable(answer) else says(answer)) as server:
        outcome = sender(**settings).post(server.url(), "evt_1", BODY)
        assert len(server.requests) == 1
    assert len(outcome.error) <= 200
    return outcome


def test_a_receiver_gets_a_signed_post() -> None:
    with receiver(says(OK)) as server:
        outcome = sender().post(server.url(host="127.0.0.1"), "evt_1", BODY)
    assert outcome == PostOutcome(200)
    assert outcome.delivered
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    assert first == "POST /hook?a=b HTTP/1.1"
    assert headers["Host"] == f"127.0.0.1:{server.port}"
    assert headers["User-Agent"] == "vu-mi"
    assert headers["Content-Type"] == "application/json"
    assert headers["Content-Length"] == str(len(BODY))
    assert headers["Connection"] == "close"
    assert headers["webhook-id"] == "evt_1"
    assert body == BODY
    assert Webhook(SECRET).verify(body, headers) == {"event": "tea"}


def test_a_post_is_signed_for_the_time_of_the_clock_and_has_its_content_type() -> None:
    with receiver(says(OK)) as server:
        sender(clock=lambda: NOON + 0.9).post(server.url(), "evt_1", b"tea", "text/plain")
    assert f"webhook-timestamp: {NOON:.0f}\r\n".encode() in server.requests[0]
    assert b"Content-Type: text/plain\r\n" in server.requests[0]


def test_a_content_type_that_is_not_ascii_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="the content type must be printable ASCII"):
        sender().post("http://127.0.0.1/", "evt_1", BODY, "text/plain\r\nX: 1")
    with pytest.raises(BadWebhookIdError):
        sender().post("http://127.0.0.1/", "evt\r\nX: 1", BODY)


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_2xx_counts_as_delivered(status: int) -> None:
    outcome = answered(f"HTTP/1.1 {status} Some Words\r\n\r\n".encode())
    assert outcome == PostOutcome(status)
    assert (outcome.delivered, outcome.gone) == (True, False)


@pytest.mark.parametrize("status", [300, 301, 304, 399, 400, 404, 409, 411, 429, 500, 503, 999])
def test_no_other_status_counts_as_delivered(status: int) -> None:
    outcome = answered(f"HTTP/1.1 {status} Some Words\r\n\r\n".encode())
    assert outcome.status == status
    assert outcome.error.startswith(f"answered {status}")
    assert "Words" not in outcome.error
    assert (outcome.delivered, outcome.gone) == (False, False)


def test_410_is_gone() -> None:
    outcome = answered(b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n")
    assert outcome == PostOutcome(410, "answered 410")
    assert (outcome.delivered, outcome.gone) == (False, True)


def test_without_a_status_nothing_is_delivered_or_gone() -> None:
    assert (PostOutcome(None).delivered, PostOutcome(None).gone) == (False, False)


def test_informational_responses_are_skipped() -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    again = b"HTTP/1.1 100 Continue\r\n\r\n"
    assert answered(again + early + early + again + OK) == PostOutcome(200)


def test_informational_responses_have_a_maximum() -> None:
    early = b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100
    assert answered(drips(early * 50, early)).error == "the response is longer than 64 KiB"


@pytest.mark.parametrize("field", [b"", b"OK\r\nX: "])
def test_a_line_without_an_end_is_not_read_forever(field: bytes) -> None:
    answer = b"HTTP/1.1 200 " + field + b"a" * 65_536
    assert answered(answer).error == "the response is longer than 64 KiB"


def test_a_redirect_is_not_followed() -> None:
    with receiver(says(OK)) as other:
        for status in (300, 301, 302, 303, 307, 308, 399):
            head = f"HTTP/1.1 {status} Found\r\nLocation: {other.url()}\r\n\r\n"
            outcome = answered(head.encode())
            assert outcome == PostOutcome(
                status, f"answered {status}, and redirects are not followed"
            )
        assert other.requests == []


def test_no_proxy_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with receiver(says(OK)) as proxy, receiver(says(OK)) as server:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        assert sender().post(server.url(), "evt_1", BODY).delivered
        assert (len(server.requests), proxy.requests) == (1, [])


def test_a_name_is_resolved_only_once() -> None:
    names = Names(["127.0.0.1"], ["127.0.0.9"])
    with receiver(says(OK)) as server:
        outcome = sender(resolver=names).post(server.url(host="rebound.example"), "evt_1", BODY)
    assert outcome == PostOutcome(200)
    assert names.asked == [("rebound.example", server.port)]
    assert f"Host: rebound.example:{server.port}\r\n".encode() in server.requests[0]


def test_a_name_that_leads_to_a_private_address_is_not_called() -> None:
    for addresses in (["10.0.0.1"], ["127.0.0.1", "10.0.0.1"]):
        outcome = sender(resolver=Names(addresses)).post("https://a.example/", "evt_1", BODY)
        assert outcome.status is None
        assert outcome.error.startswith("not called: a.example resolves to an address that is not")


def test_a_url_that_may_no_longer_be_called_is_an_outcome_too() -> None:
    with receiver(says(OK)) as server:
        outcome = Sender(Signer([SECRET]), HttpClient(NOTHING)).post(server.url(), "evt_1", BODY)
        assert outcome == PostOutcome(None, "not called: the URL must begin with https://")
        assert server.requests == []


def test_a_name_that_does_not_resolve_is_an_outcome_too() -> None:
    outcome = sender(resolver=Names([])).post("https://a.example/", "evt_1", BODY)
    assert outcome == PostOutcome(None, "a.example does not resolve to an address")


def test_a_resolver_that_does_not_answer_is_not_waited_for() -> None:
    released = threading.Event()

    def stuck(*_: object, **__: object) -> list[Record]:
        released.wait()
        return []

    outcome = sender(resolver=stuck, seconds=0.01).post("https://example.com/", "evt_1", BODY)
    assert outcome == PostOutcome(None, "example.com was not resolved in time")
    released.set()


def test_strangers_send_few_concurrent_webhooks_to_an_address() -> None:
    """Its names don't matter. The kernel accepts connections, and nobody answers."""
    signer, client = Signer([SECRET]), HttpClient(LOOPBACK, Names(["127.0.0.1"]), seconds=SOON)
    shared = Sender(signer, client.for_strangers())
    with socket.create_server(("0.0.0.0", 0), backlog=32) as listener:  # noqa: S104
        port = listener.getsockname()[1]

        def post(number: int, sender: Sender = shared) -> str:
            return sender.post(f"http://h{number}.example:{port}/", "evt_1", BODY).error

        def accept() -> socket.socket:
            connection, _ = listener.accept()
            _receive(connection)
            return connection

        with ThreadPoolExecutor(16) as threads:
            begun = [threads.submit(post, number) for number in range(8)]
            accepted = [accept() for _ in begun]
            assert post(8) == "8 other requests are sent to this address"
            elsewhere = threads.submit(shared.post, f"http://127.0.0.2:{port}/", "evt_1", BODY)
            own = threads.submit(post, 9, Sender(signer, client))
            for connection in (*accepted, *(accept() for _ in range(3))):
                with connection, suppress(ConnectionError):
                    connection.sendall(OK)
            assert {one.result() for one in [*begun, own]} == {""}
            assert elsewhere.result().delivered


def test_the_next_address_is_tried_where_one_does_not_answer() -> None:
    """No server listens on 127.0.0.2 to 127.0.0.5, and four addresses are tried."""
    with receiver(says(OK)) as server:
        post = partial(sender, seconds=SOON)
        url = server.url(host="a.example")
        third = Names(["127.0.0.2", "127.0.0.3", "127.0.0.1"])
        assert post(resolver=third).post(url, "evt_1", BODY).delivered
        fifth = Names(["127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5", "127.0.0.1"])
        refused = post(resolver=fifth).post(url, "evt_1", BODY)
        assert refused == PostOutcome(None, "the connection was refused")


def test_a_silent_address_uses_only_its_share_of_the_time() -> None:
    """A server with a full backlog, on an address that no other test uses: a connect waits."""
    silent = "127.77.0.2"
    with ExitStack() as open_ones:
        server = open_ones.enter_context(receiver(says(OK)))
        open_ones.enter_context(socket.create_server((silent, server.port), backlog=0))
        for _ in range(4):
            waiting = open_ones.enter_context(socket.socket())
            waiting.setblocking(False)  # noqa: FBT003
            waiting.connect_ex((silent, server.port))
        names = Names([silent, "127.0.0.1"])
        half = sender(resolver=names, seconds=2 * SHORT)
        assert half.post(server.url(host="a.example"), "evt_1", BODY).delivered


def test_a_refused_connection_is_an_outcome() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    outcome = sender().post(f"http://127.0.0.1:{port}/", "evt_1", BODY)
    assert outcome == PostOutcome(None, "the connection was refused")


def resets(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@pytest.mark.parametrize("answer", [resets, b""])
def test_a_connection_that_ends_without_an_answer_is_an_outcome(answer: bytes | Script) -> None:
    assert answered(answer) == PostOutcome(None, "the connection was closed before a response")


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"<html>secret</html>",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 20\r\n\r\n",
        b"HTTP/1.1 two hundred\r\n\r\n",
        b"\x00\x00\x12\x04\x00\x00\x00\x00\x00",
        b"HTTP/1.1 200 OK\r\n" + b"X: secret\r\n" * 200 + b"\r\n",
    ],
)
def test_an_answer_that_is_not_http_is_an_outcome_that_quotes_nothing(answer: bytes) -> None:
    assert answered(answer) == PostOutcome(None, "the response is not HTTP")


@given(st.binary(max_size=300), st.sampled_from([b"", b"HTTP/1.1 ", b"HTTP/1.1 200 OK\r\n"]))
def test_any_answer_is_an_outcome(rest: bytes, start: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(start + rest)
        theirs.shutdown(socket.SHUT_WR)
        with suppress(http_client.MalformedReplyError, ConnectionError):
            answer = http_client.read_reply(ours, deadline())
            assert 200 <= answer.status <= 999
            seconds_to_wait(answer.retry_after, NOON)


def deadline(seconds: float = SOON) -> Deadline:
    return Deadline(time.monotonic() + seconds, time.monotonic)


# The deadline


def test_nothing_is_left_when_the_deadline_is_reached() -> None:
    clock = FakeTime(now=100.0)
    ten = Deadline(110.0, clock.monotonic)
    assert ten.seconds_left() == 10.0
    clock.sleep(9.5)
    assert ten.seconds_left() == 0.5
    for _ in range(2):
        clock.sleep(0.5)
        with pytest.raises(TimeoutError):
            ten.seconds_left()


def silent(connection: socket.socket) -> None:
    connection.recv(1)


@pytest.mark.parametrize(
    "script",
    [
        silent,
        drips(b"", b"H"),
        drips(b"HTTP/1.1 200 ", b"O"),
        drips(b"HTTP/1.1 200 OK\r\nX: ", b"y"),
        drips(b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    ],
)
def test_no_answer_takes_longer_than_the_deadline(script: Script) -> None:
    assert answered(script, seconds=SHORT) == PostOutcome(None, "no response within 0.3 s")


@pytest.mark.parametrize("length", [b"", b"Content-Length: 99999999\r\n"])
def test_a_body_that_does_not_end_by_the_deadline_changes_nothing(length: bytes) -> None:
    slow = drips(b"HTTP/1.1 200 OK\r\n" + length + b"\r\n", b"a")
    assert answered(slow, seconds=SHORT) == PostOutcome(200)


def test_a_huge_body_is_not_read_to_its_end() -> None:
    heard: list[bool] = []

    def huge(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 500 Oh\r\n\r\n")
        with suppress(ConnectionError):
            while True:
                connection.sendall(b"a" * 65_536)
        heard.append(True)

    assert answered(huge) == PostOutcome(500, "answered 500")
    assert heard == [True]


class Wire:
    """A connection that stays open and has a given answer; `waited` is set by a wait for more."""

    def __init__(self, answer: bytes) -> None:
        self._answer = io.BytesIO(answer)
        self.waited = False

    def settimeout(self, _: float) -> None:
        pass

    def recv_into(self, room: memoryview) -> int:
        received = self._answer.readinto(room)
        self.waited = self.waited or not received
        return received


MALFORMED_SIZES = [b"-5", b"-1", b"", b" ", b"zz", b"0x", b"-" + b"f" * 5_000]


@pytest.mark.parametrize(
    "body",
    [
        b"5\r\nhello\r\n0\r\n\r\n",
        b"5;name=value\r\nhello\r\n0\r\nTrailer: x\r\n\r\n",
        b"0\r\n\r\n and more",
        *(size + b"\r\n" for size in MALFORMED_SIZES if size != b"-1"),
        b"a" * 65_536 + b"\r\n",
    ],
)
def test_a_body_is_read_to_its_end_and_no_further(body: bytes) -> None:
    """A chunked body has an end, and a malformed one ends where it is malformed."""
    head = b"HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\nRetry-After: 7\r\n\r\n"
    wire = Wire(head + body)
    answer = http_client.read_reply(cast("socket.socket", wire), deadline())
    assert (answer.status, answer.retry_after) == (202, "7")
    assert not wire.waited


@pytest.mark.parametrize("status", [200, 299, 500])
@pytest.mark.parametrize("size", [*MALFORMED_SIZES, b"5", b"7fffffffffffffff", b"f" * 5_000])
def test_the_head_is_the_answer_whatever_the_size_of_a_chunk_is(status: int, size: bytes) -> None:
    head = b"HTTP/1.1 %d Words\r\nTransfer-Encoding: chunked\r\n\r\n" % status
    assert answered(head + size + b"\r\nhel").status == status


@pytest.mark.parametrize("length", [b"-5", b"", b"zz", b"99999999", b"9" * 5_000, b"1, 2"])
def test_the_head_is_the_answer_whatever_the_length_is(length: bytes) -> None:
    """The connection ends after three bytes."""
    head = b"HTTP/1.1 200 OK\r\nContent-Length: " + length + b"\r\n\r\n"
    assert answered(head + b"hel") == PostOutcome(200)


@pytest.mark.parametrize("size", [b"-1", b"7fffffffffffffff"])
def test_an_endless_chunk_is_read_up_to_64_kib(size: bytes) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert answered(drips(head + size + b"\r\n", b"a" * 65_536)) == PostOutcome(200)


def test_a_receiver_is_not_cut_off_while_it_answers() -> None:
    heard: list[bytes] = []

    def thorough(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")
        for _ in range(10):
            time.sleep(0.005)
            connection.sendall(b"a")
        heard.append(connection.recv(1))

    assert answered(thorough) == PostOutcome(200)
    assert heard == [b""]


def test_a_large_body_is_sent_whole() -> None:
    body = b"0123456789" * 1_000_000
    with receiver(says(OK)) as server:
        assert sender().post(server.url(), "evt_1", body).delivered
    assert server.requests[0].endswith(b"\r\n\r\n" + body)


@pytest.mark.parametrize("reads", [0, 262_144])
def test_a_receiver_that_hardly_reads_is_not_waited_for(reads: int) -> None:
    """The body is 60 MB; at 256 KiB every 10 ms it would take 2.3 s."""
    body, received = b"a" * 60_000_000, [0]

    def deaf(listener: socket.socket, released: threading.Event) -> None:
        connection, _ = listener.accept()
        with connection:
            while not released.wait(0.01):
                if reads:
                    received.append(len(connection.recv(reads)))

    released = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=deaf, args=(listener, released))
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        outcome = sender(seconds=SHORT).post(url, "evt_1", body)
        released.set()
        thread.join()
    assert sum(received) < len(body) / 2
    assert outcome == PostOutcome(None, "no response within 0.3 s")


def test_a_receiver_that_is_silent_instead_of_tls_is_not_waited_for() -> None:
    with receiver(silent) as server:
        outcome = sender(seconds=SHORT).post(server.url("https"), "evt_1", BODY)
    assert outcome == PostOutcome(None, "no response within 0.3 s")


# TLS


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority.create(tmp_path)


@contextmanager
def secure_receiver(
    authority: Authority, *names: x509.GeneralName, script: Script | None = None
) -> Iterator[Receiver]:
    tls = authority.server(*names)
    with receiver(script or says(OK), tls) as server:

        def greeted(_: object, name: str | None, __: object) -> None:
            server.names.append(name)

        tls.sni_callback = greeted
        yield server


def test_tls_verifies_the_name_of_a_connection_to_the_address(authority: Authority) -> None:
    names = Names(["127.0.0.1"], ["127.0.0.9"])
    with secure_receiver(authority, x509.DNSName("hooks.example")) as server:
        secure = sender(resolver=names, trust=authority.trusted)
        outcome = secure.post(server.url("https", "HOOKS.example."), "evt_1", BODY)
    assert outcome == PostOutcome(200)
    assert server.names == ["hooks.example"]
    assert names.asked == [("hooks.example", server.port)]
    assert f"\r\nHost: hooks.example:{server.port}\r\n".encode() in server.requests[0]


def test_a_certificate_may_be_for_an_address(authority: Authority) -> None:
    with secure_receiver(authority, x509.IPAddress(ip_address("127.0.0.1"))) as server:
        outcome = sender(trust=authority.trusted).post(server.url("https"), "evt_1", BODY)
    assert outcome == PostOutcome(200)


def test_a_certificate_for_another_name_is_refused(authority: Authority) -> None:
    with secure_receiver(authority, x509.DNSName("other.example")) as server:
        secure = sender(resolver=Names(["127.0.0.1"]), trust=authority.trusted)
        outcome = secure.post(server.url("https", "hooks.example"), "evt_1", BODY)
        assert server.requests == []
    assert outcome.status is None
    assert outcome.error.startswith("the certificate is not accepted: Hostname mismatch")


def test_an_error_has_at_most_200_characters_however_long_the_name(authority: Authority) -> None:
    name = ".".join(["a" * 60] * 4)
    with secure_receiver(authority, x509.DNSName("other.example")) as server:
        secure = sender(resolver=Names(["127.0.0.1"]), trust=authority.trusted)
        outcome = secure.post(server.url("https", name), "evt_1", BODY)
    assert len(outcome.error) == 200


def test_a_certificate_of_an_unknown_authority_is_refused(authority: Authority) -> None:
    with secure_receiver(authority, x509.DNSName("hooks.example")) as server:
        secure = sender(resolver=Names(["127.0.0.1"]))
        outcome = secure.post(server.url("https", "hooks.example"), "evt_1", BODY)
        assert server.requests == []
    assert outcome.error.startswith("the certificate is not accepted: ")


def test_plain_http_instead_of_tls_is_an_outcome(authority: Authority) -> None:
    with receiver(says(OK)) as server:
        outcome = sender(trust=authority.trusted).post(server.url("https"), "evt_1", BODY)
    assert outcome.status is None
    assert outcome.error.startswith("TLS failed: ")


def test_a_slow_answer_over_tls_is_cut_at_the_deadline(authority: Authority) -> None:
    slow = drips(b"HTTP/1.1 200 OK\r\nX: ", b"y")
    with secure_receiver(authority, x509.IPAddress(ip_address("127.0.0.1")), script=slow) as server:
        secure = sender(trust=authority.trusted, seconds=SHORT)
        outcome = secure.post(server.url("https"), "evt_1", BODY)
    assert outcome == PostOutcome(None, "no response within 0.3 s")


def test_the_system_decides_which_certificates_to_trust_from_tls_1_2_on() -> None:
    context = sender().http.trust()
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname


# Retry-After


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
        ("", None),
        ("-1", None),
        ("1.5", None),
        ("\uff11", None),
        ("soon", None),
        ("Sat, 14 Mar 99999 12:01:00 GMT", None),
        ("Sat, 14 Mar 2026 12:01:00 +99999999999999999999", None),
        ("Sat, 99 Mar 2026 12:01:00 GMT", None),
    ],
)
def test_retry_after_is_seconds_or_a_date_at_noon(header: str, seconds: float | None) -> None:
    assert seconds_to_wait(header, NOON) == seconds


@given(st.one_of(st.text(), st.text("0123456789:+-, SatMarGMT")), st.floats(0, 4e9))
def test_any_retry_after_is_nothing_or_within_a_day(header: str, now: float) -> None:
    wait = seconds_to_wait(header, now)
    assert wait is None or 0 <= wait <= 86_400


def test_retry_after_is_kept_with_the_status() -> None:
    busy = b"HTTP/1.1 503 Busy\r\nretry-after: Sat, 14 Mar 2026 12:00:30 GMT\r\n\r\n"
    assert answered(busy, clock=lambda: NOON) == PostOutcome(503, "answered 503", 30.0)
    limited = b"HTTP/1.1 429 Slow\r\nRetry-After: 7\r\n\r\n"
    assert answered(limited) == PostOutcome(429, "answered 429", 7.0)
