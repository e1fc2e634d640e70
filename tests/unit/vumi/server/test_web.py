"""The web server over real sockets: connections, limits, ports and stops."""

from __future__ import annotations

import asyncio
import errno
import gc
import http.client
import json
import re
import select
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from chalicelib.http.fields import MAX_BYTES
from chalicelib.http.messages import Response
from vumi.server.asgi import MAX_HEAD_BYTES, Application, BodyExpected, Read
from vumi.server.connections import Connections, Limits
from vumi.server.web import WebServer

PATIENCE = 10.0
"""Seconds after which a step counts as hung."""
LIMITS = Limits()
LARGE = 12_000_000
"""More bytes than the buffers of a socket take."""


@dataclass
class Small:
    """An application that echoes its requests; `/slow` waits for `go_on`."""

    entered: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event = field(default_factory=threading.Event)

    async def __call__(self, _: str, read: Read) -> Response | BodyExpected:
        request = read()
        if isinstance(request, BodyExpected):
            return request
        match request.path:
            case "/slow":
                self.entered.set()
                await asyncio.to_thread(self.go_on.wait, PATIENCE)
            case "/large":
                self.entered.set()
                return Response(body=b"x" * LARGE)
            case "/nothing":
                return Response(204)
        asked = {"path": request.path, "body": request.body.decode()}
        return Response(200, {"Content-Type": "application/json"}, json.dumps(asked).encode())


@pytest.fixture
def small() -> Small:
    return Small()


@contextmanager
def serving(
    small: Small,
    host: str = "127.0.0.1",
    drain_seconds: float = PATIENCE / 2,
    limits: Limits = LIMITS,
) -> Iterator[tuple[WebServer, threading.Thread]]:
    server = WebServer(Application(small, Connections(limits)), host, 0, drain_seconds)
    ready = threading.Event()
    thread = threading.Thread(target=server.serve, args=(ready.set,))
    thread.start()
    try:
        assert ready.wait(PATIENCE)
        yield server, thread
    finally:
        server.stop()
        thread.join(PATIENCE)
        assert not thread.is_alive()


def connect(server: WebServer) -> closing[http.client.HTTPConnection]:
    return closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE))


def ask(connection: http.client.HTTPConnection, path: str) -> tuple[int, Any]:
    connection.request("GET", path)
    response = connection.getresponse()
    return response.status, json.loads(response.read())


def test_collections_leave_out_what_lives_as_long_as_the_server(small: Small) -> None:
    gc.unfreeze()
    with serving(small):
        assert gc.get_freeze_count() > 0


def get(target: str, more: str = "") -> bytes:
    return f"GET {target} HTTP/1.1\r\nHost: h\r\n{more}\r\n".encode()


def answer_of(server: WebServer, request: bytes) -> bytes:
    """Send a request and return all that comes until the server closes the connection."""
    with (
        socket.create_connection(("127.0.0.1", server.port), PATIENCE) as client,
        client.makefile("rb") as stream,
    ):
        client.sendall(request)
        return stream.read()


def refuses(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE).close()
    except (ConnectionRefusedError, ConnectionResetError):
        return True
    return False


@pytest.fixture
def server(small: Small) -> Iterator[WebServer]:
    with serving(small) as (server, _):
        yield server


def test_it_listens_on_all_addresses_of_a_host(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_up = socket.getaddrinfo
    hosts = ["127.0.0.1", "127.0.0.2"]

    def find_two(host: str | bytes, *others: Any, **named: Any) -> Any:
        found = hosts if host == b"two.example" else [host]
        return [entry for one in found for entry in look_up(one, *others, **named)]

    monkeypatch.setattr(socket, "getaddrinfo", find_two)
    with serving(small, "two.example") as (server, _):
        for host in hosts:
            with closing(http.client.HTTPConnection(host, server.port, PATIENCE)) as client:
                assert ask(client, "/a")[0] == 200


def test_a_port_or_a_host_that_it_can_not_have_is_an_error_at_construction(
    small: Small, server: WebServer
) -> None:
    """The parser's own listener would share the port instead."""
    for host, port, error in (
        ("127.0.0.1", server.port, errno.EADDRINUSE),
        ("203.0.113.1", 0, errno.EADDRNOTAVAIL),
        ("a..b", 0, errno.EADDRNOTAVAIL),
        ("no-such-host.invalid", 0, errno.EADDRNOTAVAIL),
    ):
        with pytest.raises(OSError) as caught:  # noqa: PT011  its number is what is tested
            WebServer(Application(small), host, port)
        assert caught.value.errno == error


def test_a_connection_is_kept_for_the_next_request(server: WebServer) -> None:
    with connect(server) as connection:
        assert ask(connection, "/first")[0] == 200
        kept = connection.sock
        connection.request("HEAD", "/head")
        response = connection.getresponse()
        assert (response.getheader("Content-Length"), response.read()) == ("29", b"")
        connection.request("PUT", "/nothing", b"{}")
        response = connection.getresponse()
        assert (response.status, response.read()) == (204, b"")
        assert response.getheader("Content-Length") is None
        assert ask(connection, "/last") == (200, {"path": "/last", "body": ""})
        assert kept is not None
        assert connection.sock is kept


@pytest.mark.parametrize(
    "request_", [get("/a", "Connection: close\r\n"), b"GET /a HTTP/1.0\r\n\r\n"]
)
def test_a_connection_that_is_not_kept_is_closed(server: WebServer, request_: bytes) -> None:
    assert answer_of(server, request_).endswith(b'{"path": "/a", "body": ""}')


def test_requests_sent_ahead_are_answered_in_their_order(server: WebServer) -> None:
    paths = [f"/n{place}" for place in range(20)]
    last = get("/last", "Connection: close\r\n")
    answers = answer_of(server, b"".join(map(get, paths)) + last)
    assert re.findall(rb'"path": "(.*?)"', answers) == [path.encode() for path in [*paths, "/last"]]


def test_a_client_that_does_not_read_delays_no_other_and_a_large_body_is_the_last_one(
    small: Small, server: WebServer
) -> None:
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as deaf:
        deaf.sendall(get("/large"))
        assert small.entered.wait(PATIENCE)
        for _ in range(20):
            with connect(server) as connection:
                assert ask(connection, "/a")[0] == 200
        with deaf.makefile("rb") as stream:
            answer = stream.read()
    assert len(answer) > LARGE
    assert b"\r\nconnection: close\r\n" in answer[:1_000]


def test_the_server_waits_for_a_body_and_requests_it(server: WebServer) -> None:
    head = b"POST /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 3\r\n"
    client = socket.create_connection(("127.0.0.1", server.port), PATIENCE)
    with client, client.makefile("rb") as stream:
        client.sendall(head + b"Expect: 100-continue\r\n\r\n")
        assert stream.readline() == b"HTTP/1.1 100 Continue\r\n"
        client.sendall(b"abc")
        assert stream.read().endswith(b'"body": "abc"}')


CLOSE = "Connection: close\r\n"
CHUNKED = CLOSE + "Transfer-Encoding: chunked\r\n"


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost : h\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: h\r\nA: a\r\n b\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", b"400"),
        (b"CONNECT h:80 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", b"400"),
        (get("//x/api/v1/events", CLOSE), b"400"),
        (get("/", "Content-Length: 1\r\nContent-Length: 2\r\n"), b"400"),
        (get("/", f"{CLOSE}Content-Length: {'0' * 5_000}\r\n"), b"400"),
        (get("/", CHUNKED) + b"1\r\na\r\n0\r\n\r\n", b"400"),
        (get("/", f"{CLOSE}A: {' ' * 2 * MAX_HEAD_BYTES}a\r\n"), b"431"),
        (get("/", "".join(f"A{place}: a\r\n" for place in range(200))), b"431"),
        (get("/" + "a" * 8_000, CLOSE), b"200"),
        (get("/" + "a" * 261_000), b"431"),
        (get("/", f"Content-Length: {MAX_BYTES + 1}\r\n"), b"413"),
    ],
)
def test_a_malformed_request_is_refused(
    server: WebServer, request_: bytes, status: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """`test_framing.py` has the rules of vu-mi; the parser refuses some requests before them."""
    assert answer_of(server, request_).split()[1] == status
    assert not caplog.records


def test_nothing_after_a_refused_body_is_read_as_a_request(server: WebServer) -> None:
    """A proxy that goes by the length has forwarded these bytes as one request."""
    smuggled = b"0\r\n\r\n" + get("/smuggled")
    lengths = f"Content-Length: {len(smuggled)}\r\nTransfer-Encoding: chunked\r\n"
    answer = answer_of(server, get("/", lengths) + smuggled)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize("target", ["http://other/a", "/a#b"])
def test_the_parser_cuts_off_the_host_and_the_fragment_of_a_target(
    server: WebServer, target: str
) -> None:
    """Servers must accept the first, because clients of a proxy send it (RFC 9112, 3.2.2)."""
    assert answer_of(server, get(target, CLOSE)).endswith(b'{"path": "/a", "body": ""}')


def closes(client: socket.socket) -> bool:
    """Return whether the server closes a connection, with or without a reset."""
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("sent", [b"", b"GET / HT"])
def test_a_client_that_never_sends_a_head_is_disconnected(
    small: Small, host: str, sent: bytes
) -> None:
    with (
        serving(small, host, limits=Limits(head_seconds=0.0)) as (server, _),
        socket.create_connection((host, server.port), PATIENCE) as client,
    ):
        client.sendall(sent)
        assert closes(client)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "0.0.0.0", "::"])  # noqa: S104
def test_a_client_that_sent_a_head_stays_connected_on_any_host(small: Small, host: str) -> None:
    """The guard and the application name the client in the same way."""
    reached = "::1" if host == "::1" else "127.0.0.1"
    with serving(small, host, limits=Limits(share=1)) as (server, _):
        connection = http.client.HTTPConnection(reached, server.port, timeout=PATIENCE)
        with closing(connection):
            connection.request("GET", "/slow")
            assert small.entered.wait(PATIENCE)
            with socket.create_connection((reached, server.port), PATIENCE) as other:
                assert closes(other)
            small.go_on.set()
            assert connection.getresponse().status == 200


def test_a_client_that_does_not_read_is_disconnected(small: Small) -> None:
    with (
        serving(small, limits=Limits(unread_seconds=0.0)) as (server, _),
        socket.create_connection(("127.0.0.1", server.port), PATIENCE) as deaf,
    ):
        deaf.sendall(get("/large"))
        resets = select.poll()
        resets.register(deaf, select.POLLERR)
        assert resets.poll(PATIENCE * 1000)


def test_a_stop_ends_serving_and_frees_the_port(small: Small) -> None:
    with serving(small) as (server, thread), connect(server) as connection:
        assert ask(connection, "/a")[0] == 200
        server.stop()
        thread.join(PATIENCE)

        assert not thread.is_alive()
        assert refuses(server.port)
        server.stop()


def test_a_stop_before_serving_ends_it_at_its_beginning(small: Small) -> None:
    server = WebServer(Application(small), "127.0.0.1", 0)
    server.stop()
    with ThreadPoolExecutor(1) as thread:  # another loop may run on this one
        thread.submit(server.serve).result(PATIENCE)

    assert refuses(server.port)


@pytest.mark.parametrize(("path", "size"), [("/slow", 29), ("/large", LARGE)])
def test_a_stop_finishes_the_request_under_way_and_sends_what_its_client_has_not_read(
    small: Small, path: str, size: int
) -> None:
    with serving(small) as (server, thread), connect(server) as connection:
        connection.request("POST", path)
        assert small.entered.wait(PATIENCE)
        server.stop()
        while not refuses(server.port):
            assert thread.is_alive()
        small.go_on.set()
        assert len(connection.getresponse().read()) == size


def test_a_stop_has_a_timeout(small: Small, caplog: pytest.LogCaptureFixture) -> None:
    length = "Content-Length: 9\r\n"
    with (
        serving(small, drain_seconds=0.1) as (server, thread),
        connect(server) as connection,
        socket.create_connection(("127.0.0.1", server.port), PATIENCE) as client,
    ):
        client.sendall(get("/a", length) + b"half")
        assert ask(connection, "/b")[0] == 200
        server.stop()
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert not caplog.records
