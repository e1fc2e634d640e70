"""The client of users' URLs, against real servers on this machine and names that change."""

from __future__ import annotations

import io
import socket
import struct
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.outgoing import http_client
from chalicelib.outgoing.http_client import Deadline, HttpClient
from chalicelib.outgoing.urls import Record
from simulation.clocks import FakeTime
from simulation.resources import Names
from tests.unit.outgoing.receivers import (
    LATE,
    LOOPBACK,
    OK,
    SHORT,
    SOON,
    Found,
    Script,
    drips,
    post,
    receive,
    receiver,
    silent,
)

CHUNKED = b"HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\nRetry-After: 7\r\n\r\n"


def answered(answer: bytes | Script, **settings: Any) -> Found:
    """Return what is found on a server with this answer."""
    with receiver(answer) as server:
        found = post(server.url(), **settings)
        assert len(server.requests) == 1
    return found


def test_a_request_has_its_headers_and_body_and_names_its_host() -> None:
    with receiver() as server:
        assert post(server.url()) == 200
    assert server.requests == [
        b"POST /hook?a=b HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUser-Agent: vu-mi\r\nAccept: */*\r\n"
        b"Connection: close\r\nContent-Length: 3\r\nX-Tea: green\r\n\r\ntea" % server.port
    ]


def resets(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


EARLY = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
CLOSED, NO_HTTP = "the connection was closed before a response", "the response is not HTTP"
TOO_LONG = "the response is longer than 64 KiB"


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (b"HTTP/1.1 999 Some Words\r\n\r\n", 999),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + EARLY * 2 + OK, 200),
        (drips(EARLY * 5_000, EARLY * 100), TOO_LONG),
        (b"HTTP/1.1 200 " + b"a" * 65_536, TOO_LONG),
        (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 65_536, TOO_LONG),
        (resets, CLOSED),
        (b"", CLOSED),
        (b"SSH-2.0-OpenSSH_9.6\r\n", NO_HTTP),
        (b"<html>secret</html>", NO_HTTP),
        (b"HTTP/2 200\r\n\r\n", NO_HTTP),
        (b"HTTP/1.1 20\r\n\r\n", NO_HTTP),
        (b"HTTP/1.1 two hundred\r\n\r\n", NO_HTTP),
        (b"\x00\x00\x12\x04\x00\x00\x00\x00\x00", NO_HTTP),
        (b"HTTP/1.1 200 OK\r\n" + b"X: secret\r\n" * 200 + b"\r\n", NO_HTTP),
    ],
)
def test_any_answer_is_a_status_or_an_error_that_quotes_nothing(
    answer: bytes | Script, found: Found
) -> None:
    assert answered(answer) == found


@given(st.binary(max_size=300), st.sampled_from([b"", b"HTTP/1.1 ", b"HTTP/1.1 200 OK\r\n"]))
def test_any_bytes_are_read_or_refused(rest: bytes, start: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(start + rest)
        theirs.shutdown(socket.SHUT_WR)
        with suppress(http_client.CallError, ConnectionError):
            assert 200 <= http_client.read_reply(ours, deadline()).status <= 999


@pytest.mark.parametrize("status", [301, 307])
def test_a_redirect_is_not_followed(status: int) -> None:
    with receiver() as other:
        assert answered(b"HTTP/1.1 %d\r\nLocation: %b\r\n\r\n" % (status, other.url().encode()))
        assert other.requests == []


def test_no_proxy_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with receiver() as proxy, receiver() as server:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        assert post(server.url()) == 200
        assert (len(server.requests), proxy.requests) == (1, [])


# ---- addresses


def test_a_name_is_resolved_only_once() -> None:
    names = Names(["127.0.0.1"], ["127.0.0.9"])
    with receiver() as server:
        assert post(server.url(host="rebound.example"), resolver=names) == 200
    assert names.asked == [("rebound.example", server.port)]
    assert f"Host: rebound.example:{server.port}\r\n".encode() in server.requests[0]


@pytest.mark.parametrize(
    ("addresses", "found"),
    [
        (["127.0.0.1", "10.0.0.1"], "not called: a.example resolves to an address that is not"),
        ([], "a.example does not resolve to an address"),
    ],
)
def test_a_name_that_may_not_be_called_is_an_error(addresses: list[str], found: str) -> None:
    assert str(post("https://a.example/", resolver=Names(addresses))).startswith(found)


def test_a_resolver_that_does_not_answer_is_not_waited_for() -> None:
    released = threading.Event()

    def stuck(*_: object, **__: object) -> list[Record]:
        released.wait()
        return []

    found = post("https://example.com/", resolver=stuck, seconds=0.01)
    assert found == "example.com was not resolved in time"
    released.set()


def test_strangers_send_few_concurrent_requests_to_an_address() -> None:
    """Its names don't matter. The kernel accepts connections, and nobody answers."""
    client = HttpClient(LOOPBACK, Names(["127.0.0.1"]), seconds=SOON)
    shared = client.for_strangers()
    with socket.create_server(("0.0.0.0", 0), backlog=32) as listener:  # noqa: S104
        url = f"http://{{}}:{listener.getsockname()[1]}/".format

        def accept() -> socket.socket:
            connection, _ = listener.accept()
            receive(connection)
            return connection

        with ThreadPoolExecutor(16) as threads:

            def begin(host: str, client: HttpClient = shared) -> Future[Found]:
                return threads.submit(post, url(host), client=client)

            begun = [begin(f"h{number}.example") for number in range(8)]
            accepted = [accept() for _ in begun]
            refused = post(url("h8.example"), client=shared)
            assert refused == "8 other requests are sent to this address"
            elsewhere = begin("127.0.0.2")
            own = begin("h9.example", client)
            for connection in (*accepted, *(accept() for _ in range(3))):
                with connection, suppress(ConnectionError):
                    connection.sendall(OK)
            assert {one.result() for one in [*begun, elsewhere, own]} == {200}


@pytest.mark.parametrize(
    ("tried", "found"), [((2, 3, 1), 200), ((2, 3, 4, 5, 1), "the connection was refused")]
)
def test_the_first_of_four_addresses_that_accepts_is_called(
    tried: tuple[int, ...], found: Found
) -> None:
    """No server listens on 127.0.0.2 to 127.0.0.5."""
    with receiver() as server:
        names = Names([f"127.0.0.{last}" for last in tried])
        assert post(server.url(host="a.example"), resolver=names, seconds=SOON) == found


def test_a_silent_address_uses_only_its_share_of_the_time() -> None:
    """A server with a full backlog, on an address that no other test uses: a connect waits."""
    silent = "127.77.0.2"
    with ExitStack() as open_ones:
        server = open_ones.enter_context(receiver())
        open_ones.enter_context(socket.create_server((silent, server.port), backlog=0))
        for _ in range(4):
            waiting = open_ones.enter_context(socket.socket())
            waiting.setblocking(False)  # noqa: FBT003
            waiting.connect_ex((silent, server.port))
        names = Names([silent, "127.0.0.1"])
        assert post(server.url(host="a.example"), resolver=names, seconds=2 * SHORT) == 200


# ---- the deadline


def deadline(seconds: float = SOON) -> Deadline:
    return Deadline(time.monotonic() + seconds, time.monotonic)


def test_nothing_is_left_when_the_deadline_is_reached() -> None:
    clock = FakeTime(now=100.0)
    ten = Deadline(110.0, clock.monotonic)
    clock.sleep(9.5)
    assert ten.seconds_left() == 0.5
    for _ in range(2):
        clock.sleep(0.5)
        with pytest.raises(TimeoutError):
            ten.seconds_left()


@pytest.mark.parametrize(
    ("script", "found"),
    [
        (silent, LATE),
        (drips(b"", b"H"), LATE),
        (drips(b"HTTP/1.1 200 ", b"O"), LATE),
        (drips(b"HTTP/1.1 200 OK\r\nX: ", b"y"), LATE),
        (drips(b"HTTP/1.1 100 Continue\r\n\r\n", EARLY), LATE),
        (drips(b"HTTP/1.1 200 OK\r\n\r\n", b"a"), 200),
        (drips(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n", b"a"), 200),
    ],
)
def test_no_answer_takes_longer_than_the_deadline_and_a_head_is_enough(
    script: Script, found: Found
) -> None:
    assert answered(script, seconds=SHORT) == found


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
        assert post(url, body, seconds=SHORT) == LATE
        released.set()
        thread.join()
    assert sum(received) < len(body) / 2


# ---- bodies


def test_a_large_body_is_sent_whole() -> None:
    body = b"0123456789" * 1_000_000
    with receiver() as server:
        assert post(server.url(), body) == 200
    assert server.requests[0].endswith(b"\r\n\r\n" + body)


def test_a_huge_body_is_not_read_to_its_end() -> None:
    heard: list[bool] = []

    def huge(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 500 Oh\r\n\r\n")
        with suppress(ConnectionError):
            while True:
                connection.sendall(b"a" * 65_536)
        heard.append(True)

    assert answered(huge) == 500
    assert heard == [True]


def test_a_receiver_is_not_cut_off_while_it_answers() -> None:
    heard: list[bytes] = []

    def thorough(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")
        for _ in range(10):
            time.sleep(0.005)
            connection.sendall(b"a")
        heard.append(connection.recv(1))

    assert answered(thorough) == 200
    assert heard == [b""]


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


MALFORMED_SIZES = [b"-5", b"", b" ", b"zz", b"0x", b"-" + b"f" * 5_000]


@pytest.mark.parametrize(
    "body",
    [
        b"5\r\nhello\r\n0\r\n\r\n",
        b"5;name=value\r\nhello\r\n0\r\nTrailer: x\r\n\r\n",
        b"0\r\n\r\n and more",
        *(size + b"\r\n" for size in MALFORMED_SIZES),
        b"a" * 65_536 + b"\r\n",
    ],
)
def test_a_body_is_read_to_its_end_and_no_further(body: bytes) -> None:
    """A chunked body has an end, and a malformed one ends where it is malformed."""
    wire = Wire(CHUNKED + body)
    answer = http_client.read_reply(cast("socket.socket", wire), deadline())
    assert (answer.status, answer.headers["retry-after"]) == (202, "7")
    assert not wire.waited


@pytest.mark.parametrize(
    "head",
    [
        *(CHUNKED + size for size in (*MALFORMED_SIZES, b"5", b"-1", b"7fffffffffffffff")),
        CHUNKED + b"f" * 5_000,
        *(
            b"HTTP/1.1 202 OK\r\nContent-Length: " + length + b"\r\n"
            for length in (b"-5", b"", b"zz", b"99999999", b"9" * 5_000, b"1, 2")
        ),
    ],
)
def test_the_head_is_the_answer_whatever_its_length_or_the_size_of_a_chunk_is(head: bytes) -> None:
    """The connection ends after three bytes."""
    assert answered(head + b"\r\nhel") == 202


@pytest.mark.parametrize("size", [b"-1", b"7fffffffffffffff"])
def test_an_endless_chunk_is_read_up_to_64_kib(size: bytes) -> None:
    assert answered(drips(CHUNKED + size + b"\r\n", b"a" * 65_536)) == 202
