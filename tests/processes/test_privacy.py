"""No part of a request but the id is written anywhere: markers in every part are searched for."""

from __future__ import annotations

import json
import re
import signal
import socket
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import count, product
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest

from app import app
from chalicelib import telemetry
from chalicelib.aws import resources
from chalicelib.counting.view import ViewMessages
from chalicelib.storage.errors import StorageError, UnavailableError
from chalicelib.units import Seconds
from chaos.faults import limit, unlimit
from simulation import aws_events as events
from simulation.logs import logging_put_back
from simulation.resources import GivenResources
from simulation.storage import FakeQueue, FaultyTable, MemoryTable, raising
from tests.processes.programs import PATIENCE_SECONDS, Server, running
from tests.unit.vumi.operate.check.test_check import snapshot
from vumi.storage.database import FILE

VIEWS = "GET /api/v1/views?id=kept"
WATCHED = "GET /api/v1/views?id=watched"
UNANSWERED_SECONDS = 1.0
"""The time after which a client that got no answer ends its request."""
HEADERS = """
accept accept-charset accept-encoding accept-language authorization cf-connecting-ip client-ip
content-type cookie date dnt expect forwarded from if-match if-modified-since if-none-match origin
proxy-authorization range referer sec-ch-ua sec-fetch-site te traceparent true-client-ip upgrade
user-agent via x-forwarded-for x-forwarded-host x-real-ip x-request-id
"""
OPTIONS = """
label color labelColor style logo logoColor format base peek show tz spark days from to by
theme scale width height cursor
"""

MARKER = re.compile(rb"m[0-9a-f]{16}m|127\.83\.")
"""The pattern of every marker, or of its beginning."""


@dataclass
class Markers:
    """Texts that identify one part of one request each, and the addresses of clients."""

    made: dict[str, str] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def __call__(self, part: str) -> str:
        """Return a new marker, which stays the same in lower case and percent-encoded."""
        marker = f"m{token_hex(8)}m"
        self.made[marker] = part
        return marker

    def address(self, part: str) -> str:
        """Return an address of this machine that no other request has."""
        number = next(self.numbers)
        address = f"127.83.{number // 250}.{number % 250 + 1}"
        self.made[address] = f"the address of {part}"
        return address

    def found(self, text: bytes) -> list[str]:
        """Return the parts whose markers a text has."""
        lower = text.lower()
        if not MARKER.search(lower):  # one search is faster than one for each marker
            return []
        return [part for marker, part in self.made.items() if marker.encode() in lower]


def request(line: str, *headers: str, body: str = "") -> bytes:
    """Return a request that ends its connection."""
    lines = [f"{line} HTTP/1.1", *headers, "Connection: close"]
    if not any(header.lower().startswith("host:") for header in headers):
        lines.append("Host: x")
    if body and not any("chunked" in header for header in headers):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", body]).encode("latin-1")


def good_requests(mark: Markers) -> Iterator[tuple[str, bytes]]:
    """Yield requests that HTTP allows, with a marker in each part but the id."""
    for name in HEADERS.split():
        yield name, request(VIEWS, f"{name}: {mark(name)}")
    for name in OPTIONS.split():
        yield name, request(f"{VIEWS}&{name}={mark(name)}")
        yield name, request(f"GET /api/v1/views/history?id=kept&{name}={mark(name)}")
    yield "Host", request(VIEWS, f"Host: {mark('Host')}")
    yield "a header", request(VIEWS, f"{mark('a name')}: {mark('a value')}")
    yield "Basic", request(VIEWS, f"Authorization: Basic {mark('Basic')}")
    for prefix in ("", "utm_"):  # one is refused, and one is ignored
        name = prefix + mark("an option")
        yield "a query", request(f"{VIEWS}&{name}={mark('its value')}")
    yield "a path", request(f"GET /{mark('a path')}")
    yield "a fragment", request(f"{VIEWS}#{mark('a fragment')}")
    yield "an absolute target", request(f"GET http://{mark('a host')}/?{mark('its query')}")
    yield "a method", request(f"{mark('a method').upper()} /api/v1/views?id=kept")
    for method in ("POST", "PATCH", "DELETE"):
        for path in ("badges", "badges/kept", "events", "wallets", "badges?id=kept"):
            line = f"{method} /api/v1/{path}"
            bearer = f"Authorization: Bearer {mark('a token')}"
            body = json.dumps({mark("a field"): mark("a field's value"), "id": [mark("an id")]})
            yield f"{line} with JSON", request(line, bearer, body=body)
            yield f"{line} with text", request(line, bearer, body=mark("a body"))
    chunked = f"5;{mark('an extension')}\r\nhello\r\n0\r\n{mark('a trailer')}: x\r\n\r\n"
    yield "chunks", request("POST /api/v1/badges", "Transfer-Encoding: chunked", body=chunked)
    claim = json.dumps({"id": f"claimed/{token_hex(8)}", "digest": "0" * 64})
    yield "a claim", request("POST /api/v1/badges", f"Cookie: {mark('Cookie')}", body=claim)


def bad_requests(mark: Markers) -> Iterator[tuple[str, bytes]]:
    """Yield requests that HTTP forbids, or that end too early."""
    agent = "User-Agent: " + mark("User-Agent")
    for target in ("http://[", "http://[::1", "//", "\\", "*", "x:", "%zz", "%00", "\u00e9", "a b"):
        yield target, request(f"GET {target}{mark(target)}", agent)
    for length in ("5" * 5_000, "-5", "5 5", "5, 6", "+5", "0x5", "", "\u00b2"):
        given = f"Content-Length: {length}"
        yield given[:30], request(f"POST /{mark('a path')}", agent, given)
    yield "a length", request("POST /", f"Content-Length: {mark('a length')}")
    yield "both", request("POST /", agent, "Content-Length: 5", "Transfer-Encoding: chunked")
    for size in ("-5", "", "zz", "f" * 5_000):
        body = f"{size};{mark('an extension')}\r\n{mark('a chunk')}\r\n0\r\n\r\n"
        yield size[:9], request("POST /api/v1/badges", "Transfer-Encoding: chunked", body=body)
    yield "a coding", request("POST /", f"Transfer-Encoding: {mark('a coding')}")
    yield "two hosts", request(VIEWS, f"Host: {mark('one')}", f"Host: {mark('two')}")
    yield "no host", f"{VIEWS} HTTP/1.1\r\n{agent}\r\n\r\n".encode()
    yield "a version", f"{VIEWS} HTTP/{mark('a version')}\r\nHost: x\r\n\r\n".encode()
    yield "no colon", request(VIEWS, mark("no colon"))
    yield "a space", request(VIEWS, f"{mark('a name')} : x")
    yield "a folded line", request(VIEWS, "X: y", f" {mark('a folded line')}")
    for byte in ("\0", "\x7f", "\xff", "\n", "\r", "\x1b[2J"):
        yield repr(byte), request(VIEWS, f"X: {byte}{mark(repr(byte))}{byte}")
    yield "a long head", request(VIEWS, f"X: {mark('a long head') * 20_000}")
    yield "a long target", request(f"GET /{mark('a long target') * 20_000}")
    yield "many headers", request(VIEWS, *(f"X-{n}: {agent}" for n in range(500)))
    yield "a long body", request("POST /api/v1/badges", body=mark("a long body") * 60_000)
    yield "half a head", f"{VIEWS} HTTP/1.1\r\n{agent}".encode()
    yield "half a body", request("POST /", "Content-Length: 999") + mark("half").encode()
    yield "TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + mark("TLS").encode()
    yield "HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + mark("HTTP/2").encode()
    yield "nothing", b""


class Clients:
    """Clients that send raw requests, each from an address of its own, and count their views."""

    def __init__(self, server: Server, mark: Markers) -> None:
        self._server = server
        self._mark = mark
        self.views = 0

    def send_all(self, requests: Iterator[tuple[str, bytes]]) -> None:
        """Send each request, and after it a view, which must count."""
        for name, raw in requests:
            self.send(name, raw)
            answer = self.send("a view", request(WATCHED), PATIENCE_SECONDS)
            assert b'"schemaVersion":1' in answer
            self.views += 1

    def send(self, name: str, raw: bytes, seconds: Seconds = UNANSWERED_SECONDS) -> bytes:
        """Return the answer to a request, which ends if it has none after this time."""
        source = (self._mark.address(name), 0)
        to = (self._server.host, self._server.port)
        with socket.create_connection(to, PATIENCE_SECONDS, source) as connection:
            with suppress(ConnectionError):
                connection.sendall(raw)
            connection.settimeout(seconds)
            with suppress(TimeoutError):
                return receive_all(connection)
            connection.settimeout(PATIENCE_SECONDS)
            with suppress(ConnectionError):
                connection.shutdown(socket.SHUT_WR)
            return receive_all(connection)


def receive_all(connection: socket.socket) -> bytes:
    answer = b""
    with suppress(ConnectionError):
        while part := connection.recv(65_536):
            answer += part
    return answer


def fail(server: Server, folder: Path, mark: Markers) -> None:
    """Let requests fail: the disk is full, and an item can't be decoded."""
    clients = Clients(server, mark)
    limit(server.process.pid, 1_000)
    for name, raw in good_requests(mark):
        clients.send(f"{name}, on a full disk", raw)
    unlimit(server.process.pid)
    with closing(sqlite3.connect(folder / FILE, isolation_level=None)) as connection:
        connection.execute("UPDATE items SET attributes = '[' WHERE pk = 'USER#kept'")
    for name, raw in good_requests(mark):
        clients.send(f"{name}, of a broken item", raw)


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGABRT])
def test_nothing_of_a_request_but_the_id_is_written(tmp_path: Path, end: signal.Signals) -> None:
    """The files are read before the end too, because they are what SIGKILL leaves."""
    mark = Markers()
    with running(tmp_path, PYTHONFAULTHANDLER="1", ACCESS_LOG="on") as server:
        clients = Clients(server, mark)
        clients.send_all(good_requests(mark))
        clients.send_all(bad_requests(mark))
        assert server.peek("watched") == clients.views
        fail(server, tmp_path, mark)
        _, _, metrics = server.request("/metrics")
        killed = snapshot(tmp_path)
        _, out, err = server.stop(end)
    output = server.greeting + out + err
    assert mark.found(output.encode() + metrics) == []
    assert b"vumi_views_taken_total" in metrics
    assert "request_answered" in output
    assert "request_failed" in output
    assert "badge_failed" in output
    assert ("Fatal Python error: Aborted" in output) == (end == signal.SIGABRT)
    for files in (killed, snapshot(tmp_path)):
        stored = b"".join(files.values())
        assert mark.found(stored) == []
        assert b"USER#watched" in stored
        assert b"USER#claimed" in stored


def aws_requests(mark: Markers) -> Iterator[dict[str, Any]]:
    """Yield events of the API with a marker in each part but the id."""
    routes = (
        ("/api/v1/views", "GET"),
        ("/api/v1/views", "POST"),
        ("/api/v1/views.svg", "GET"),
        ("/api/v1/views/history", "GET"),
        ("/s", "GET"),
        ("/api/v1/badges", "POST"),
        ("/api/v1/badges", "PATCH"),
        ("/api/v1/events", "POST"),
        ("/api/v1/wallets", "POST"),
        (f"/{mark('a path')}", "GET"),
    )
    for (resource, method), prefix in product(routes, ("", "utm_")):
        query = {prefix + mark("an option"): [mark("its value")], "id": ["kept"]}
        event = events.http_event({}, method, resource)
        headers = {name: mark(name) for name in [*HEADERS.split(), "host", mark("a name")]}
        event["headers"] = headers
        event["multiValueHeaders"] = {name: [value] for name, value in headers.items()}
        event["multiValueQueryStringParameters"] = query
        event["body"] = json.dumps({mark("a field"): mark("its value")})
        client = {"sourceIp": mark.address(resource), "userAgent": mark("userAgent")}
        yield {**event, "requestContext": {**event["requestContext"], "identity": client}}


@pytest.mark.parametrize("failure", [None, UnavailableError("the table does not answer")])
def test_the_functions_on_aws_log_nothing_of_a_request_but_the_id(
    failure: StorageError | None, capsys: pytest.CaptureFixture[str]
) -> None:
    mark = Markers()
    table = FaultyTable(MemoryTable(), before_read=raising(*[failure] * 99))
    views = ViewMessages(FakeQueue(failure))
    resources.use(GivenResources(table=table, views_queue=views))
    with logging_put_back():
        telemetry.write_to(sys.stdout, with_metrics=True)
        for event in aws_requests(mark):
            app(event, None)
    resources.use(None)
    printed = capsys.readouterr()
    assert mark.found((printed.out + printed.err).encode()) == []
    assert ("the table does not answer" in printed.out) == (failure is not None)
