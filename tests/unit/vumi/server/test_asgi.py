"""The ASGI application: the request that a route gets, and the response that a client gets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from chalicelib.http.errors import NotFoundError
from chalicelib.http.fields import MAX_BYTES
from chalicelib.http.messages import Caller, Request, Response, Role
from tests import event_loop
from vumi.server.asgi import Application, BodyExpected, Read
from vumi.server.clients import RefusalPace, SharedCapacity, TrustedProxies
from vumi.server.connections import Connections, Phase
from vumi.server.sockets import UNIX, Peer

HOST = (b"host", b"h")
PEER = ("192.0.2.1", 1_024)
PROXIES = TrustedProxies.parse("192.0.2.0/24, 10.0.0.0/8")
REFUSAL = Response(404, is_refusal=True)
EMPTY = Response()


@dataclass
class Exchange:
    """A request over ASGI, the request that the route got, and the messages of the response."""

    asked: Request | None
    sent: list[Mapping[str, Any]]

    @property
    def request(self) -> Request:
        assert self.asked is not None
        return self.asked

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self.sent[0]["headers"])

    @property
    def error(self) -> Any:
        assert self.headers[b"Content-Type"] == b"application/json"
        return json.loads(self.sent[1]["body"])["error"]


def exchange(  # noqa: PLR0913  the parts of a request
    method: str = "GET",
    target: bytes = b"/",
    *,
    headers: Iterable[tuple[bytes, bytes]] = (),
    parts: Iterable[bytes | None] = (),
    client: tuple[str, int] | None = PEER,
    response: Response | Exception = EMPTY,
    **application: Any,
) -> Exchange:
    """Send a request to an application. Its body comes in parts: None is a client that hangs up."""
    exchange = Exchange(None, [])
    coming = iter(parts)

    async def answer(_: str, read: Read) -> Response | BodyExpected:
        request = read()
        if isinstance(request, BodyExpected):
            return request
        exchange.asked = request
        if isinstance(response, Exception):
            raise response
        return response

    async def receive() -> Mapping[str, Any]:
        part = next(coming, b"never")
        if part == b"never":
            await asyncio.Event().wait()
        if part is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": part, "more_body": part != b""}

    async def send(message: Mapping[str, Any]) -> None:
        exchange.sent.append(message)

    scope = scope_of(method, target, headers, client)
    event_loop.run(Application(answer, **application)(scope, receive, send))
    return exchange


def scope_of(
    method: str,
    target: bytes,
    headers: Iterable[tuple[bytes, bytes]] = (),
    client: tuple[str, int] | None = PEER,
) -> dict[str, Any]:
    path, _, query = target.partition(b"?")
    return {
        "method": method,
        "raw_path": path,
        "query_string": query,
        "headers": [HOST, *headers],
        "http_version": "1.1",
        "client": client,
    }


async def never() -> Mapping[str, Any]:
    raise AssertionError("no body is read")


@pytest.mark.parametrize("path", ["/a%2Fb", "/a;b", "/%C3%BC", "/%FF", "/%2525"])
def test_a_path_reaches_the_routes_as_it_was_sent(path: str) -> None:
    assert exchange(target=path.encode()).request.path == path


def test_a_query_is_decoded() -> None:
    query = exchange(target=b"/?id=a%2Fb&a=1&a=2&empty=&plus=a+b&wrong=%FF").request.query

    assert query == {
        "id": ["a/b"],
        "a": ["1", "2"],
        "empty": [""],
        "plus": ["a b"],
        "wrong": ["\ufffd"],
    }


def test_a_header_that_comes_twice_has_both_values() -> None:
    """A second token never takes the place of the first one."""
    headers = [(b"authorization", b"Bearer a"), (b"authorization", b"Bearer \xfc")]
    assert exchange(headers=headers).request.headers == {
        "host": "h",
        "authorization": "Bearer a, Bearer ü",
    }


def length(number: int) -> list[tuple[bytes, bytes]]:
    return [(b"content-length", b"%d" % number)]


def test_the_parts_of_a_body_are_joined_and_one_of_no_bytes_is_not_waited_for() -> None:
    request = exchange("PUT", headers=length(6), parts=[b"abc", b"def", b""]).request
    assert (request.method, request.body) == ("PUT", b"abcdef")
    assert exchange("POST", headers=[(b"content-length", b"000")]).request.body == b""


@pytest.mark.parametrize(
    ("size", "parts", "application", "status", "code"),
    [
        (2, [b"x"], {"body_seconds": 0.01}, 408, "too_slow"),
        (2, [b"x", None], {}, 400, "bad_request"),
        (1, [], {"bodies": SharedCapacity(0)}, 429, "too_many_requests"),
        (1, [], {"memory": SharedCapacity(0)}, 429, "too_many_requests"),
        (MAX_BYTES + 1, [], {}, 413, "too_large"),
    ],
    ids=["missing", "broken off", "one too many", "no memory", "too large, so it is not read"],
)
def test_a_body_that_can_not_be_taken_is_refused_with_json(
    size: int, parts: list[bytes | None], application: dict[str, Any], status: int, code: str
) -> None:
    refused = exchange("POST", headers=length(size), parts=parts, **application)
    assert (refused.asked, refused.status, refused.error["code"]) == (None, status, code)
    assert refused.headers.get(b"Retry-After") == (b"1" if status == 429 else None)
    assert refused.headers.get(b"Connection") == (b"close" if status == 429 else None)


def test_the_capacity_of_a_body_is_free_after_its_response_and_not_needed_without_one() -> None:
    bodies, memory = SharedCapacity(2), SharedCapacity(2)
    for _ in range(3):
        kept = exchange("POST", headers=length(1), parts=[b"x", b""], bodies=bodies, memory=memory)
        assert kept.request.body == b"x"
    assert (bodies.free, memory.free) == (2, 2)
    assert exchange("POST", bodies=SharedCapacity(0), memory=SharedCapacity(0)).status == 200


@pytest.mark.parametrize("caller", [None, Caller(Role.OPERATOR)])
def test_a_body_is_kept_for_the_caller_that_is_admitted_and_for_no_other(
    caller: Caller | None,
) -> None:
    def admit(request: Request) -> Request:
        if not caller:
            raise NotFoundError("there is no such route")
        return request._replace(caller=caller)

    taken = exchange("POST", headers=length(1), parts=[b"x", b""], admit=admit).request
    assert (taken.body, taken.caller) == (b"x" if caller else b"", caller)


def test_a_response_has_its_headers_and_the_length_of_its_body() -> None:
    answered = exchange(response=Response(418, {"X-Shape": "round"}, b"short"))

    assert answered.status == 418
    assert answered.headers == {b"X-Shape": b"round", b"server": b"vu-mi", b"content-length": b"5"}
    assert answered.sent[1] == {"type": "http.response.body", "body": b"short"}


def test_a_fault_is_an_internal_error_on_an_open_connection() -> None:
    failed = exchange(response=MemoryError())

    assert (failed.status, failed.error["code"]) == (500, "internal")


class Phases(Connections):
    """Connections that note the phases of requests."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[Peer, Phase]] = []

    def enter(self, peer: Peer, phase: Phase) -> None:
        self.seen.append((peer, phase))
        super().enter(peer, phase)


@pytest.mark.parametrize(
    ("size", "parts", "phases"),
    [
        (0, [], [Phase.ANSWER, Phase.IDLE]),
        (1, [b"x", b""], [Phase.ANSWER, Phase.BODY, Phase.ANSWER, Phase.IDLE]),
        (1, [None], [Phase.ANSWER, Phase.BODY, Phase.IDLE]),
    ],
)
def test_the_connections_know_of_the_phases_of_a_request(
    size: int, parts: list[bytes | None], phases: list[Phase]
) -> None:
    connections = Phases()
    exchange("POST", headers=length(size), parts=parts, connections=connections)
    assert connections.seen == [(PEER, phase) for phase in phases]


@pytest.mark.parametrize(
    ("client", "forwarded", "proxies", "expected"),
    [
        (PEER, [b"203.0.113.9"], TrustedProxies(), PEER[0]),
        (PEER, [b"203.0.113.9", b"10.0.0.2"], PROXIES, "203.0.113.9"),
        (None, [b"203.0.113.9"], TrustedProxies(), UNIX),
        (None, [b"203.0.113.9"], TrustedProxies(unix=True), "203.0.113.9"),
    ],
)
def test_the_client_is_the_peer_or_the_address_that_a_trusted_proxy_names(
    client: tuple[str, int] | None, forwarded: list[bytes], proxies: TrustedProxies, expected: str
) -> None:
    headers = [(b"x-forwarded-for", one) for one in forwarded]
    assert exchange(headers=headers, client=client, proxies=proxies).request.client == expected


@pytest.mark.parametrize(
    ("target", "response", "status"),
    [
        (b"/a%2Fb?c=d", Response(201), 201),
        (b"/a", ValueError("a fault"), 500),
        (b"//\xff", EMPTY, 400),
    ],
)
def test_each_response_is_reported_with_its_time(
    target: bytes, response: Response | Exception, status: int
) -> None:
    reported: list[tuple[str, str, int, float]] = []
    times = iter([10.0, 10.25])

    def report(method: str, path: str, found: Response, seconds: float) -> None:
        reported.append((method, path, found.status, seconds))

    sent = exchange(target=target, response=response, on_response=report, stopwatch=times.__next__)
    assert sent.status == status
    path = target.partition(b"?")[0].decode("latin-1")
    assert reported == [("GET", path, status, 0.25)]


@pytest.mark.parametrize(
    ("response", "is_stopping", "pauses"),
    [
        (REFUSAL, False, [0.0, 0.01, 0.02]),
        (REFUSAL, True, []),
        (REFUSAL._replace(headers={"Connection": "close"}), False, []),
        (Response(503), False, []),
        (EMPTY, False, []),
    ],
    ids=["refused", "stopping", "the last of its connection", "own fault", "answered"],
)
def test_a_client_gets_one_refusal_after_another(
    response: Response,
    is_stopping: bool,  # noqa: FBT001  a case
    pauses: list[float],
) -> None:
    paused: list[float] = []

    async def answer(_: str, __: Read) -> Response:
        return response

    async def sleep(seconds: float) -> None:
        paused.append(seconds)

    async def ignore(_: Mapping[str, Any]) -> None:
        pass

    application = Application(answer, pace=RefusalPace(lambda: 7.0), sleep=sleep)
    application.is_stopping = is_stopping
    for _ in range(3):
        event_loop.run(application(scope_of("GET", b"/"), never, ignore))
    assert paused == pytest.approx(pauses)
