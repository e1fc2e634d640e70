"""The ASGI application: the request that a route gets, and the response that a client gets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

import pytest

from chalicelib.http.bodies import MAX_BYTES
from chalicelib.http.errors import NotFoundError
from chalicelib.http.messages import Caller, Request, Response, Role
from tests import event_loop
from vumi.server.asgi import NO_PROXIES, Application, OnResponse, Read
from vumi.server.bodies import BodyExpected, BodyMemory
from vumi.server.connections import Connections, Phase
from vumi.server.proxies import TrustedProxies
from vumi.server.sockets import UNIX, Peer

HOST = (b"host", b"h")
LENGTH = (b"content-length", b"1")
PEER = ("192.0.2.1", 1_024)
EMPTY = Response()
STANDING = repeat(0.0)


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
    headers: Iterable[tuple[bytes, bytes]] = (HOST,),
    parts: Iterable[bytes | None] = (),
    version: str = "1.1",
    client: tuple[str, int] | None = PEER,
    proxies: TrustedProxies = NO_PROXIES,
    response: Response | Exception = EMPTY,
    body_seconds: float = 10.0,
    connections: Connections | None = None,
    admit: Callable[[Request], Request] = lambda request: request,
    bodies: BodyMemory | None = None,
    on_response: OnResponse = lambda *_: None,
    stopwatch: Iterator[float] = STANDING,
) -> Exchange:
    """Send a request whose body comes in parts: None is a client that hangs up."""
    exchange = Exchange(None, [])
    path, _, query = target.partition(b"?")
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

    scope = {
        "method": method,
        "raw_path": path,
        "query_string": query,
        "headers": list(headers),
        "http_version": version,
        "client": client,
    }
    application = Application(
        answer,
        connections,
        body_seconds,
        proxies,
        admit=admit,
        bodies=bodies,
        on_response=on_response,
        stopwatch=lambda: next(stopwatch),
    )
    event_loop.run(application(scope, receive, send))
    return exchange


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
    headers = [HOST, (b"authorization", b"Bearer a"), (b"authorization", b"Bearer \xfc")]

    assert exchange(headers=headers).request.headers == {
        "host": "h",
        "authorization": "Bearer a, Bearer ü",
    }


def test_the_parts_of_a_body_are_joined() -> None:
    headers = [HOST, (b"content-length", b"6")]
    request = exchange("PUT", headers=headers, parts=[b"abc", b"def", b""]).request

    assert (request.method, request.body) == ("PUT", b"abcdef")


def test_a_body_of_the_maximum_size_is_accepted() -> None:
    headers = [HOST, (b"content-length", b"%d" % MAX_BYTES)]
    taken = exchange("POST", headers=headers, parts=[b"x" * MAX_BYTES, b""])

    assert len(taken.request.body) == MAX_BYTES


def test_a_body_of_no_bytes_is_not_waited_for() -> None:
    assert exchange("POST", headers=[HOST, (b"content-length", b"000")]).request.body == b""


def test_a_missing_body_times_out() -> None:
    length = (b"content-length", b"2")

    refused = exchange("POST", headers=[HOST, length], parts=[b"x"], body_seconds=0.01)

    assert (refused.asked, refused.status, refused.error["code"]) == (None, 408, "too_slow")


def test_a_body_that_breaks_off_is_malformed() -> None:
    headers = [HOST, (b"content-length", b"2")]

    refused = exchange("POST", headers=headers, parts=[b"x", None])

    assert (refused.asked, refused.status, refused.error["code"]) == (None, 400, "bad_request")


def test_a_refused_head_is_answered_with_json_and_its_body_is_not_read() -> None:
    headers = [HOST, (b"content-length", b"%d" % (MAX_BYTES + 1))]
    refused = exchange("POST", headers=headers)

    assert (refused.asked, refused.status) == (None, 413)
    message = f"the body has {MAX_BYTES + 1} bytes: give at most {MAX_BYTES}"
    assert refused.error == {"code": "too_large", "message": message}


def test_a_body_that_is_one_too_many_is_not_kept() -> None:
    refused = exchange("POST", headers=[HOST, LENGTH], parts=[b"x", b""], bodies=BodyMemory(0))
    assert exchange("POST", headers=[HOST, LENGTH], parts=[b"x", b""]).request.body == b"x"

    assert (refused.asked, refused.status) == (None, 429)
    assert refused.error["code"] == "too_many_requests"
    assert refused.headers[b"Retry-After"] == b"1"
    assert exchange("POST", headers=[HOST], bodies=BodyMemory(0)).status == 200


def test_a_body_is_not_kept_if_its_route_or_its_token_is_wrong() -> None:
    def admit(_: Request) -> Request:
        raise NotFoundError("there is no such route")

    refused = exchange("POST", headers=[HOST, LENGTH], parts=[b"x", b""], admit=admit)
    assert refused.request.body == b""


def test_a_request_with_a_body_has_the_caller_that_was_admitted() -> None:
    caller = Caller(Role.OPERATOR)
    taken = exchange(
        "POST",
        headers=[HOST, LENGTH],
        parts=[b"x", b""],
        admit=lambda request: replace(request, caller=caller),
    )
    assert (taken.request.body, taken.request.caller) == (b"x", caller)


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
    ("headers", "parts", "phases"),
    [
        ([HOST], [], [Phase.ANSWER, Phase.IDLE]),
        ([HOST, LENGTH], [b"x", b""], [Phase.ANSWER, Phase.BODY, Phase.ANSWER, Phase.IDLE]),
        ([HOST, LENGTH], [None], [Phase.ANSWER, Phase.BODY, Phase.IDLE]),
    ],
)
def test_the_connections_know_of_the_phases_of_a_request(
    headers: list[tuple[bytes, bytes]], parts: list[bytes | None], phases: list[Phase]
) -> None:
    connections = Phases()
    exchange("POST", headers=headers, parts=parts, connections=connections)

    assert connections.seen == [(PEER, phase) for phase in phases]


@pytest.mark.parametrize(
    ("client", "forwarded", "trusted", "expected"),
    [
        (("192.0.2.1", 5), b"203.0.113.9", "", "192.0.2.1"),
        (("192.0.2.1", 5), b"198.51.100.7, 203.0.113.9", "192.0.2.0/24", "203.0.113.9"),
        (("", 0), b"203.0.113.9", "10.0.0.0/8", UNIX),
        (None, b"203.0.113.9", "", UNIX),
    ],
)
def test_the_client_is_the_peer_or_the_address_that_a_trusted_proxy_names(
    client: tuple[str, int] | None, forwarded: bytes, trusted: str, expected: str
) -> None:
    headers = [HOST, (b"x-forwarded-for", forwarded)]
    proxies = TrustedProxies.parse(trusted)
    assert exchange(headers=headers, client=client, proxies=proxies).request.client == expected


def test_a_repeated_header_of_proxies_is_one_list() -> None:
    named = [(b"x-forwarded-for", b"203.0.113.9"), (b"x-forwarded-for", b"10.0.0.2")]
    proxies = TrustedProxies.parse("10.0.0.0/8")
    asked = exchange(headers=[HOST, *named], client=("10.0.0.1", 5), proxies=proxies).request
    assert asked.client == "203.0.113.9"


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

    sent = exchange(target=target, response=response, on_response=report, stopwatch=times)
    assert sent.status == status
    path = target.partition(b"?")[0].decode("latin-1")
    assert reported == [("GET", path, status, 0.25)]
