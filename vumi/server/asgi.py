"""The ASGI application of one machine, which reads requests and sends their responses.

Source: the ASGI specification, "HTTP & WebSocket ASGI Message Format".
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain
from typing import Any, NamedTuple, TypeAlias, cast

from chalicelib.http import errors, query
from chalicelib.http.errors import BadRequestError, ClientError, TooLargeError
from chalicelib.http.fields import MAX_BYTES
from chalicelib.http.messages import EMPTY, Request, Response, Unchanging
from chalicelib.units import Seconds
from vumi.server.clients import (
    MAX_BODIES,
    MAX_MEMORY_BYTES,
    RefusalPace,
    SharedCapacity,
    TrustedProxies,
)
from vumi.server.connections import Connections, Phase
from vumi.server.sockets import Peer, to_peer

BODY_SECONDS = 30.0
"""A body must be complete after this time, so that its connection is free for others."""
NO_PROXIES = TrustedProxies()
NO_ADDRESS: Peer = ("", 0)
"""The client of a Unix socket."""
LARGE_BYTES = 32_768
"""A longer body is the last one of its connection.

The buffers of the system take one such body of a client that does not read, and no second one waits
in the memory of the process.
"""
ANSWER, IDLE = Phase.ANSWER, Phase.IDLE
SERVER = {"server": "vu-mi"}
WITHOUT_LENGTH = {204, 304}
"""Statuses of responses that have no body (RFC 9110, section 8.6)."""
MAX_HEAD_BYTES = 16_384
TARGET = re.compile(rb"/(?!/)[!-~]*")
"""One slash and printable ASCII. Some proxies take the text after two slashes for a host."""
LENGTH = re.compile(r"[0-9]{1,18}", re.ASCII)


class BodyExpected(NamedTuple):
    """A request whose body of `length` bytes must be read before it can be answered.

    The body is not `kept` if the request is refused without it.
    """

    request: Request
    length: int
    kept: bool


Scope: TypeAlias = Mapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Mapping[str, Any]]]
Send: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[object]]
Read: TypeAlias = Callable[[], Request | BodyExpected]
"""A function that reads a request from what was received. It may be called again, on a thread."""
Handler: TypeAlias = Callable[[str, Read], Awaitable[Response | BodyExpected]]
"""A function that gets the client and the reader of a request, and answers it in its turn."""
OnResponse: TypeAlias = Callable[[str, str, Response, Seconds], object]
"""A function that gets the method and the path of a request, its response, and its time."""


class HeadTooLargeError(ClientError):
    """The target and the headers of a request are too long (RFC 6585, section 5)."""

    status = 431
    code = "head_too_large"

    def __init__(self, size: int) -> None:
        super().__init__(f"the head has {size} bytes: give at most {MAX_HEAD_BYTES}")


class BodyTooSlowError(ClientError):
    """The body of a request was not sent in time."""

    status = 408
    code = "too_slow"

    def __init__(self, seconds: Seconds) -> None:
        super().__init__(f"the body did not come within {seconds:g} s: send the request again")


class Application:
    """The ASGI application, which answers requests by `answer`, and tells `connections` of them.

    `answer` reads a head in the turn of its client, because that takes as long as an answer.
    A body is kept if `admit` returns its request, perhaps with a caller, and does not raise.
    `bodies` bounds the number of bodies that are read, and `memory` their bytes.
    `on_response` gets each response before it is sent, with its time by `stopwatch`.
    """

    def __init__(  # noqa: PLR0913  the parts of a server
        self,
        answer: Handler,
        connections: Connections | None = None,
        body_seconds: Seconds = BODY_SECONDS,
        proxies: TrustedProxies = NO_PROXIES,
        *,
        admit: Callable[[Request], Request] = lambda request: request,
        bodies: SharedCapacity | None = None,
        memory: SharedCapacity | None = None,
        on_response: OnResponse = lambda *_: None,
        stopwatch: Callable[[], Seconds] = time.perf_counter,
        pace: RefusalPace | None = None,
        sleep: Callable[[Seconds], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._answer = answer
        self.connections = connections or Connections()
        self._body_seconds = body_seconds
        self._proxies = proxies or None
        self._admit = admit
        self._bodies = bodies or SharedCapacity(MAX_BODIES)
        self._memory = memory or SharedCapacity(MAX_MEMORY_BYTES)
        self._on_response = on_response
        self._stopwatch = stopwatch
        self._sleep = sleep
        self._pace = pace or RefusalPace(time.monotonic)
        self.is_stopping = False
        """Whether each response is the last one of its connection."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        peer, began = to_peer(*(scope["client"] or NO_ADDRESS)), self._stopwatch()
        client = peer[0]
        if self._proxies is not None:
            given = [value for name, value in scope["headers"] if name == b"x-forwarded-for"]
            forwarded = b", ".join(given).decode("latin-1")
            client = self._proxies.client_of(client, forwarded)
        self.connections.enter(peer, ANSWER)
        try:
            try:
                reply = await self._answer(client, partial(self._read_head, scope, client))
                if isinstance(reply, BodyExpected):
                    response = await self._answer_with_body(reply, receive, peer)
                else:
                    response = reply
            except Exception as failure:  # noqa: BLE001  the connection must get an answer
                response = errors.to_response(failure)
            path = scope["raw_path"].decode("latin-1")
            self._on_response(scope["method"], path, response, self._stopwatch() - began)
            if response.is_refusal and not (self.is_stopping or "Connection" in response.headers):
                await self._sleep(self._pace.delay(client))
            await send(_start(response, is_last=self.is_stopping))
            await send({"type": "http.response.body", "body": response.body})
        finally:
            self.connections.enter(peer, IDLE)

    def _read_head(self, scope: Scope, client: str) -> Request | BodyExpected:
        """Return a request, unless it has a body. Raises `ClientError` and `StorageError`."""
        length, headers = read_framing(scope)
        path, asked = scope["raw_path"].decode(), query.parse(scope["query_string"].decode())
        request = Request(scope["method"], path, EMPTY, asked, headers, b"", None, client)
        if not length:
            return request
        try:
            return BodyExpected(self._admit(request), length, kept=True)
        except ClientError:
            return BodyExpected(request, length, kept=False)

    async def _answer_with_body(
        self, expected: BodyExpected, receive: Receive, peer: Peer
    ) -> Response:
        """Read the body of a request, and answer the request.

        A body is not kept in memory if its request is refused without it. It is read nevertheless,
        because a proxy that can't send all of it does not pass the response on.
        Raises `BodyTooSlowError` and `TooManyBodiesError`.
        """
        request, length, kept = expected
        with (
            self._bodies.share(request.client, 1),
            self._memory.share(request.client, length if kept else 0),
        ):
            self.connections.enter(peer, Phase.BODY)
            try:
                async with asyncio.timeout(self._body_seconds):
                    body = await _receive_body(receive, kept=kept)
            except TimeoutError:
                raise BodyTooSlowError(self._body_seconds) from None
            self.connections.enter(peer, ANSWER)
            with_body = request._replace(body=body)
            return cast("Response", await self._answer(request.client, lambda: with_body))


async def _receive_body(receive: Receive, *, kept: bool) -> bytes:
    """Receive a whole body, and return it if it is kept. Raises `BadRequestError`."""
    parts, more = list[bytes](), True
    while more:
        part = await receive()
        if part["type"] == "http.disconnect":
            raise BadRequestError("the body is not complete: send all of it")
        parts += [part["body"]] if kept else []
        more = part["more_body"]
        del part  # no name keeps it until the next one arrives
    return b"".join(parts)


def read_framing(scope: Scope) -> tuple[int, Mapping[str, str]]:
    """Return the length of the body of a request, and its headers by their names in lower case.

    A repeated header has all its values. Raises `ClientError`. It refuses what HTTP forbids in a
    head, and the parser accepts, because a proxy before this server may read that differently. The
    parser drops a `Content-Length` beside a `Transfer-Encoding`, so both are refused together.
    Sources: RFC 9112, section 3.2 for `Host` and the target, and section 6.1 for the length.
    """
    path, given, fields = scope["raw_path"], scope["query_string"], scope["headers"]
    # Few calls decode all fields, none of which has the end of a line in it.
    joined = b"\n".join(chain.from_iterable(fields))
    # Between name and value, and at the end, a field has one byte more than is joined here.
    size = len(path) + len(given) + len(joined) + 2 * len(fields) + 1
    if size > MAX_HEAD_BYTES:
        raise HeadTooLargeError(size)
    if not TARGET.fullmatch(b"?".join((path, given))):
        raise BadRequestError("the target must be a path with one / before it, percent-encoded")
    texts = joined.decode("latin-1").split("\n")
    rest = iter(texts)
    headers = dict(zip(rest, rest, strict=False))
    if len(headers) < len(fields):
        headers = _combine(texts)
    if texts[::2].count("host") != 1 or (not headers["host"] and scope["http_version"] != "1"):
        raise BadRequestError("send one Host header")
    if "transfer-encoding" in headers:
        raise BadRequestError("send the body with Content-Length, not with Transfer-Encoding")
    return _length(headers["content-length"]) if "content-length" in headers else 0, headers


def _combine(texts: Sequence[str]) -> dict[str, str]:
    combined = defaultdict[str, list[str]](list)
    for name, value in zip(texts[::2], texts[1::2], strict=True):
        combined[name].append(value)
    return {name: ", ".join(values) for name, values in combined.items()}


def _length(given: str) -> int:
    if not LENGTH.fullmatch(given):
        raise BadRequestError("Content-Length: send it once, as a number of at most 18 digits")
    length = int(given)
    if length > MAX_BYTES:
        raise TooLargeError(f"the body has {length} bytes: give at most {MAX_BYTES}")
    return length


def _encode(headers: Mapping[str, str]) -> Sequence[tuple[bytes, bytes]]:
    """Return headers as they are sent, with the server's name."""
    if isinstance(headers, Unchanging):
        return _encode_once(headers)
    return [(name.encode(), value.encode()) for name, value in {**headers, **SERVER}.items()]


@lru_cache
def _encode_once(headers: Unchanging[str, str]) -> Sequence[tuple[bytes, bytes]]:
    return _encode({**headers})


def _start(response: Response, *, is_last: bool) -> Mapping[str, Any]:
    headers = [*_encode(response.headers)]
    if is_last or len(response.body) > LARGE_BYTES:
        headers.append((b"connection", b"close"))
    if response.status not in WITHOUT_LENGTH:
        headers.append((b"content-length", b"%d" % len(response.body)))
    return {"type": "http.response.start", "status": response.status, "headers": headers}
