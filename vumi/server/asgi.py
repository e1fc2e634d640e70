"""The ASGI application of one machine, which reads requests and sends their responses.

Source: the ASGI specification, "HTTP & WebSocket ASGI Message Format".
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, TypeAlias, cast

from chalicelib.http import errors, query
from chalicelib.http.errors import BadRequestError, ClientError
from chalicelib.http.messages import Request, Response, Unchanging
from chalicelib.units import Seconds
from vumi.server import framing
from vumi.server.bodies import (
    MAX_BODIES,
    MAX_MEMORY_BYTES,
    BodyExpected,
    Read,
    SharedCapacity,
)
from vumi.server.client_limits import RefusalPace
from vumi.server.connections import Connections, Phase
from vumi.server.framing import Scope
from vumi.server.proxies import TrustedProxies
from vumi.server.sockets import Peer, to_peer

BODY_SECONDS = 30.0
"""A body must be complete after this time, so that its connection is free for others."""
NO_PROXIES = TrustedProxies()
NO_ADDRESS: Peer = ("", 0)
"""The client of a Unix socket."""
FORWARDED = b"x-forwarded-for"
LARGE_BYTES = 32_768
"""A longer body is the last one of its connection.

The buffers of the system take one such body of a client that does not read, and no second one waits
in the memory of the process.
"""
SERVER = {"server": "vu-mi"}
WITHOUT_LENGTH = {204, 304}
"""Statuses of responses that have no body (RFC 9110, section 8.6)."""

Receive: TypeAlias = Callable[[], Awaitable[Mapping[str, Any]]]
Send: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[object]]
Handler: TypeAlias = Callable[[str, Read], Awaitable[Response | BodyExpected]]
"""A function that gets the client and the reader of a request, and answers it in its turn."""
OnResponse: TypeAlias = Callable[[str, str, Response, Seconds], object]
"""A function that gets the method and the path of a request, its response, and its time."""


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
        self._proxies = proxies
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
        client = self._proxies.client_of(peer[0], _forwarded(scope))
        try:
            response = await self._respond(scope, receive, peer, client)
            path = scope["raw_path"].decode("latin-1")
            self._on_response(scope["method"], path, response, self._stopwatch() - began)
            if self._is_paced(response):
                await self._sleep(self._pace.delay(client))
            await send(_start(response, is_last=self.is_stopping))
            await send({"type": "http.response.body", "body": response.body})
        finally:
            self.connections.enter(peer, Phase.IDLE)

    def _is_paced(self, response: Response) -> bool:
        """Return whether a response is a refusal, after which its connection stays open."""
        ends = self.is_stopping or "Connection" in response.headers
        return response.is_refusal and not ends

    async def _respond(self, scope: Scope, receive: Receive, peer: Peer, client: str) -> Response:
        self.connections.enter(peer, Phase.ANSWER)
        try:
            reply = await self._answer(client, partial(self._read_head, scope, client))
            if isinstance(reply, BodyExpected):
                reply = await self._answer_with_body(reply, receive, peer)
            return cast("Response", reply)
        except Exception as failure:  # noqa: BLE001  the connection must get an answer
            return errors.to_response(failure)

    def _read_head(self, scope: Scope, client: str) -> Request | BodyExpected:
        """Return a request, unless it has a body. Raises `ClientError` and `StorageError`."""
        length = framing.check(scope)
        request = _request(scope, _headers(scope["headers"]), client)
        if not length:
            return request
        try:
            return BodyExpected(self._admit(request), length, kept=True)
        except ClientError:
            return BodyExpected(request, length, kept=False)

    async def _answer_with_body(
        self, expected: BodyExpected, receive: Receive, peer: Peer
    ) -> Response | BodyExpected:
        """Read the body of a request, and answer the request.

        A body is not kept in memory if its request is refused without it. It is read nevertheless,
        because a proxy that can't send all of it does not pass the response on.
        Raises `BodyTooSlowError` and `TooManyBodiesError`.
        """
        request, read = expected.request, _whole if expected.kept else _discard
        kept_bytes = expected.length if expected.kept else 0
        with self._bodies.share(request.client, 1), self._memory.share(request.client, kept_bytes):
            body = await self._read(receive, peer, read)
            return await self._answer(request.client, lambda: request._replace(body=body))

    async def _read(
        self, receive: Receive, peer: Peer, read: Callable[[Receive], Awaitable[bytes]]
    ) -> bytes:
        """Read a body. Raises `BodyTooSlowError`."""
        self.connections.enter(peer, Phase.BODY)
        try:
            async with asyncio.timeout(self._body_seconds):
                body = await read(receive)
        except TimeoutError:
            raise BodyTooSlowError(self._body_seconds) from None
        self.connections.enter(peer, Phase.ANSWER)
        return body


async def _whole(receive: Receive) -> bytes:
    return b"".join([part async for part in _parts(receive)])


async def _discard(receive: Receive) -> bytes:
    while not _is_last(await receive()):  # no name keeps a part until the next one arrives
        pass
    return b""


async def _parts(receive: Receive) -> AsyncIterator[bytes]:
    more = True
    while more:
        part = await receive()
        more = not _is_last(part)
        yield part["body"]


def _is_last(part: Mapping[str, Any]) -> bool:
    if part["type"] == "http.disconnect":
        raise BadRequestError("the body is not complete: send all of it")
    return not part["more_body"]


def _forwarded(scope: Scope) -> str:
    """Return the header of proxies, or an empty text."""
    own = [header for header in scope["headers"] if header[0] == FORWARDED]
    return _headers(own).get("x-forwarded-for", "")


def _headers(given: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return headers by their names in lower case; a repeated header has all its values."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in given:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _request(scope: Scope, headers: Mapping[str, str], client: str) -> Request:
    return Request(
        scope["method"],
        scope["raw_path"].decode(),
        query=query.parse(scope["query_string"].decode()),
        headers=headers,
        client=client,
    )


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
