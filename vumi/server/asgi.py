"""The ASGI application of one machine, which reads requests and sends their responses.

Source: the ASGI specification, "HTTP & WebSocket ASGI Message Format".
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeAlias

from chalicelib.http import errors, query
from chalicelib.http.errors import BadRequestError, ClientError
from chalicelib.http.messages import Request, Response
from chalicelib.units import Seconds
from vumi.server.proxies import TrustedProxies

MAX_BODY_BYTES = 1_048_576
BODY_SECONDS = 30.0
"""A body must be complete after this time, so that its connection is free for others."""
NO_PROXIES = TrustedProxies()
WITHOUT_LENGTH = {204, 304}
"""Statuses of responses that have no body (RFC 9110, section 8.6)."""

Scope: TypeAlias = Mapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Mapping[str, Any]]]
Send: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[object]]
Answer: TypeAlias = Callable[[Request], Awaitable[Response]]


class BodyTooLargeError(ClientError):
    """The body of a request is larger than any route takes."""

    status = 413
    code = "too_large"

    def __init__(self) -> None:
        super().__init__(f"the body is too large: send at most {MAX_BODY_BYTES} bytes")


class BodyTooSlowError(ClientError):
    """The body of a request was not sent in time."""

    status = 408
    code = "too_slow"

    def __init__(self, seconds: Seconds) -> None:
        super().__init__(f"the body did not come within {seconds:g} s: send the request again")


class Application:
    """The ASGI application, which answers requests by `answer`."""

    def __init__(
        self,
        answer: Answer,
        body_seconds: Seconds = BODY_SECONDS,
        proxies: TrustedProxies = NO_PROXIES,
    ) -> None:
        self._answer = answer
        self._body_seconds = body_seconds
        self._proxies = proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        response = await self._respond(scope, receive)
        await send(_start(response))
        await send({"type": "http.response.body", "body": response.body})

    async def _respond(self, scope: Scope, receive: Receive) -> Response:
        try:
            headers = _headers(scope["headers"])
            _check_head(scope)
            body = await self._body(headers, receive)
            client = self._proxies.client_of(_peer(scope), headers.get("x-forwarded-for", ""))
            return await self._answer(_request(scope, headers, body, client))
        except Exception as failure:  # noqa: BLE001  the connection must get an answer
            return errors.to_response(failure)

    async def _body(self, headers: Mapping[str, str], receive: Receive) -> bytes:
        """Return the body of a request. Raises `BodyTooLargeError` and `BodyTooSlowError`."""
        if "content-length" not in headers and "transfer-encoding" not in headers:
            return b""
        if int(headers.get("content-length", 0)) > MAX_BODY_BYTES:
            raise BodyTooLargeError
        try:
            async with asyncio.timeout(self._body_seconds):
                return await _whole(receive)
        except TimeoutError:
            raise BodyTooSlowError(self._body_seconds) from None


async def _whole(receive: Receive) -> bytes:
    body = bytearray()
    more = True
    while more:
        part = await receive()
        if part["type"] == "http.disconnect":
            # The client hung up, or sent malformed chunks and still waits for an answer.
            raise BadRequestError("the body is malformed: send all of it")
        body += part["body"]
        if len(body) > MAX_BODY_BYTES:
            raise BodyTooLargeError
        more = part["more_body"]
    return bytes(body)


def _headers(given: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return headers by their names in lower case; a repeated header has all its values."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in given:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _check_head(scope: Scope) -> None:
    """Raise `BadRequestError` for a head that HTTP forbids and the parser accepts.

    Sources: RFC 9112, section 3.2, for `Host`; RFC 3986, section 2, for the target.
    """
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    if scope["http_version"] != "1" and (len(hosts) != 1 or not hosts[0]):
        raise BadRequestError("send one Host header")
    path = scope["raw_path"]
    if not (path.startswith(b"/") and path.isascii() and scope["query_string"].isascii()):
        raise BadRequestError("the target must be a path, percent-encoded")


def _peer(scope: Scope) -> str:
    """Return the address of the other end of the connection, empty for a Unix socket."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def _request(scope: Scope, headers: Mapping[str, str], body: bytes, client: str) -> Request:
    return Request(
        scope["method"],
        scope["raw_path"].decode(),
        query=query.parse(scope["query_string"].decode()),
        headers=headers,
        body=body,
        client=client,
    )


def _start(response: Response) -> Mapping[str, Any]:
    headers = [(name.encode(), value.encode()) for name, value in response.headers.items()]
    headers.append((b"server", b"vu-mi"))
    if response.status not in WITHOUT_LENGTH:
        headers.append((b"content-length", b"%d" % len(response.body)))
    return {"type": "http.response.start", "status": response.status, "headers": headers}
