"""The connections to an endpoint: they stay open, and every failure is one error."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import closing
from threading import Semaphore, Thread
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import HTTPClientError

from chalicelib.aws.connections import Connections
from chalicelib.units import Seconds

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Part: a\r\n\r\n{}"
LAST_ANSWER = ANSWER.replace(b"X-Part: a", b"Connection: close")
SHORT: Seconds = 0.05


class Endpoint:
    """A server that gives one connection after the other its answers, and then closes it."""

    def __init__(self, *connections: list[bytes]) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        port = self._server.getsockname()[1]
        self.connections = Connections(urlsplit(f"http://127.0.0.1:{port}/"))
        self.requests: list[bytes] = []
        self.closed = Semaphore(0)
        self._thread = Thread(target=self._serve, args=(connections,), daemon=True)
        self._thread.start()

    def _serve(self, connections: tuple[list[bytes], ...]) -> None:
        for answers in connections:
            connection, _ = self._server.accept()
            with connection:
                for answer in answers:
                    self.requests.append(_request(connection))
                    connection.sendall(answer)
            self.closed.release()

    def close(self) -> None:
        self.connections.close()
        self._thread.join(5)
        self._server.close()


def _request(connection: socket.socket) -> bytes:
    """Receive a request, which ends with a body of the length in its head."""
    with connection.makefile("rb") as reader:
        head = b"".join(iter(reader.readline, b"\r\n"))
        length = re.search(rb"Content-Length: (\d+)", head)
        return head + b"\r\n" + (reader.read(int(length[1])) if length else b"")


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """Listen, and answer nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def test_an_answer_has_its_status_its_headers_and_its_body() -> None:
    with closing(Endpoint([ANSWER])) as endpoint:
        answer = endpoint.connections.post({"Host": "aws", "X-Amz-Date": "today"}, b'{"a": 1}')
    assert (answer.status, answer.headers["x-part"], answer.body) == (200, "a", b"{}")
    head, _, body = endpoint.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST / HTTP/1.1\r\n")
    assert {b"Host: aws", b"X-Amz-Date: today", b"Content-Length: 8"} <= {*head.split(b"\r\n")}
    assert body == b'{"a": 1}'


def test_a_connection_is_used_again() -> None:
    with closing(Endpoint([ANSWER, ANSWER])) as endpoint:
        connections = endpoint.connections
        for _ in range(2):
            assert connections.post({}, b"").status == 200


@pytest.mark.parametrize("last", [ANSWER, LAST_ANSWER])
def test_a_connection_that_the_server_closed_is_replaced(last: bytes) -> None:
    """A server closes a connection without a request, for example while Lambda pauses."""
    with closing(Endpoint([last], [ANSWER])) as endpoint:
        connections = endpoint.connections
        connections.post({}, b"")
        assert endpoint.closed.acquire(timeout=5)
        assert connections.post({}, b"").status == 200


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", b"no"])
def test_an_answer_that_is_cut_off_is_a_failure(answer: bytes) -> None:
    with closing(Endpoint([answer], [ANSWER])) as endpoint:
        connections = endpoint.connections
        with pytest.raises(HTTPClientError):
            connections.post({}, b"")
        assert connections.post({}, b"").status == 200


def test_a_server_that_does_not_answer_is_a_failure(silent: socket.socket) -> None:
    url = urlsplit(f"http://127.0.0.1:{silent.getsockname()[1]}/")
    with pytest.raises(HTTPClientError, match="TimeoutError"):
        Connections(url, SHORT).post({}, b"")


def test_a_port_without_a_server_is_a_failure(silent: socket.socket) -> None:
    port = silent.getsockname()[1]
    silent.close()
    with pytest.raises(HTTPClientError, match="ConnectionRefusedError"):
        Connections(urlsplit(f"http://127.0.0.1:{port}/")).post({}, b"")


def test_an_endpoint_of_https_gets_nothing_in_plain_text(silent: socket.socket) -> None:
    url = urlsplit(f"https://127.0.0.1:{silent.getsockname()[1]}/")
    with pytest.raises(HTTPClientError, match="handshake"):
        Connections(url, SHORT).post({"X-Amz-Security-Token": "session"}, b"")
