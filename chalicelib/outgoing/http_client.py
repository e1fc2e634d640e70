"""The guarded client: one request to a user's URL, if that may be called.

It uses its own socket with the parser of http.client. So it connects to exactly the address that
was checked (`urls.permitted`), TLS verifies the name, and one deadline covers all steps.
"""

from __future__ import annotations

import io
import math
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, cast

from chalicelib.lazy import lazy
from chalicelib.outgoing.urls import (
    Address,
    Allowed,
    BadUrlError,
    Resolver,
    UnreachableError,
    Url,
    check_url,
    permitted,
    resolve_for_stranger,
)
from chalicelib.units import Seconds

if TYPE_CHECKING:
    import ssl
    from http import client as http_client

    from _typeshed import WriteableBuffer

    from chalicelib import tls
else:
    ssl, http_client, tls = lazy("ssl"), lazy("http.client"), lazy("chalicelib.tls")

CALL_SECONDS = 10.0
MAX_ADDRESSES = 4
"""The maximum number of addresses of a name that are tried."""
MAX_REPLY_BYTES = 64 * 1024
MAX_STRANGERS_REQUESTS = 8
"""Concurrent requests for strangers to one address, whatever names it has."""


class CallError(Exception):
    """A request has no answer, or one that is not HTTP. The message has no text of the answer."""


@dataclass(frozen=True, slots=True)
class HttpReply:
    """The answer to a request; `body` is None if it could not be read to its end.

    The names of `headers` are in lower case.
    """

    status: int
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Deadline:
    """The end of the time for one request, on a monotonic clock."""

    at: Seconds
    monotonic: Callable[[], Seconds]

    def seconds_left(self) -> Seconds:
        """Return the time until the deadline. Raises `TimeoutError` after it."""
        left = self.at - self.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


@dataclass(frozen=True, slots=True)
class HttpClient:
    """The client of users' URLs.

    `allowed` are the private networks that may be called. `seconds` is the time for one whole
    request: resolving, connecting, sending and reading. A response may have `max_bytes`. Redirects
    are not followed, and no proxy is used. `connected` has an address once for each request to it.
    """

    allowed: Allowed
    resolver: Resolver = socket.getaddrinfo
    monotonic: Callable[[], Seconds] = time.monotonic
    trust: Callable[[], ssl.SSLContext] = lambda: tls.SYSTEM_TRUST
    seconds: Seconds = CALL_SECONDS
    max_bytes: int = MAX_REPLY_BYTES
    max_requests: float = math.inf
    connected: list[str] = field(default_factory=list)

    def for_strangers(self) -> HttpClient:
        """Return a client of strangers' URLs, which share a few slots."""
        resolver = partial(resolve_for_stranger, self.resolver)
        return replace(self, resolver=resolver, connected=[], max_requests=MAX_STRANGERS_REQUESTS)

    def call(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> HttpReply:
        """Send a request. Raises `CallError`, and no error of the network."""
        try:
            return self._exchange(method, url, headers, body)
        except BadUrlError as refusal:
            raise CallError(f"not called: {refusal}") from None
        except UnreachableError as failure:
            raise CallError(str(failure)) from None
        except OSError as failure:
            raise CallError(self._describe_error(failure)) from failure

    def _exchange(
        self, method: str, raw: str, headers: Mapping[str, str], body: bytes | None
    ) -> HttpReply:
        deadline = Deadline(self.monotonic() + self.seconds, self.monotonic)
        url = check_url(raw, self.allowed)
        addresses = permitted(url, self.allowed, self.resolver, deadline.seconds_left())
        with (
            _connect(addresses, url.port, deadline) as plain,
            self._hold_slot(plain),
            self._secure(plain, url, deadline) as wire,
        ):
            _send(wire, _write_request(method, url, headers, body), deadline)
            return read_reply(wire, deadline, method, self.max_bytes)

    @contextmanager
    def _hold_slot(self, connection: socket.socket) -> Iterator[None]:
        address = connection.getpeername()[0]
        self.connected.append(address)
        try:
            if self.connected.count(address) > self.max_requests:
                raise UnreachableError(
                    f"{self.max_requests} other requests are sent to this address"
                )
            yield
        finally:
            self.connected.remove(address)

    def _secure(self, plain: socket.socket, url: Url, deadline: Deadline) -> socket.socket:
        if url.scheme == "http":
            return plain
        context = self.trust()
        plain.settimeout(deadline.seconds_left())
        return context.wrap_socket(plain, server_hostname=url.host)

    def _describe_error(self, failure: OSError) -> str:
        match failure:
            case TimeoutError():
                return f"no response within {self.seconds:g} s"
            case ssl.SSLError():
                return tls.describe(failure)
            case ConnectionRefusedError():
                return "the connection was refused"
            case ConnectionError():
                return "the connection was closed before a response"
            case _:
                return f"no connection: {failure.strerror or type(failure).__name__}"


def _connect(addresses: Sequence[Address], port: int, deadline: Deadline) -> socket.socket:
    """Connect to the first address that accepts; each has an equal share of the time left."""
    *others, last = addresses[:MAX_ADDRESSES]
    for left, address in zip(range(len(others) + 1, 1, -1), others, strict=True):
        with suppress(OSError):
            return _dial(address, port, deadline.seconds_left() / left)
    return _dial(last, port, deadline.seconds_left())


def _dial(address: Address, port: int, seconds: Seconds) -> socket.socket:
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6  # noqa: PLR2004
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.settimeout(seconds)
        connection.connect((str(address), port))
    except BaseException:
        connection.close()
        raise
    return connection


def _write_request(method: str, url: Url, headers: Mapping[str, str], body: bytes | None) -> bytes:
    fields = {
        "Host": url.authority,
        "User-Agent": "vu-mi",
        "Accept": "*/*",
        "Connection": "close",
        **({} if body is None else {"Content-Length": str(len(body))}),
        **headers,
    }
    lines = [f"{method} {url.target} HTTP/1.1", *(f"{name}: {fields[name]}" for name in fields)]
    return "\r\n".join([*lines, "", ""]).encode("ascii") + (body or b"")


def _send(wire: socket.socket, request: bytes, deadline: Deadline) -> None:
    """Send a request by the deadline; `SSLSocket.sendall` restarts its timeout at each part."""
    left = memoryview(request)
    while left:
        wire.settimeout(deadline.seconds_left())
        left = left[wire.send(left) :]


class _SharedReader(io.BufferedReader):
    """A reader that stays open: each of several answers closes it when it is collected."""

    def close(self) -> None:
        """Leave the stream open; the socket under it is closed by its owner."""


class _ReplyStream(io.RawIOBase):
    """A bounded stream from a socket until the deadline, which `HTTPResponse` reads."""

    def __init__(self, wire: socket.socket, deadline: Deadline, max_bytes: int) -> None:
        self._wire = wire
        self._deadline = deadline
        self._left = self._max_bytes = max_bytes
        self._reader = _SharedReader(self)

    def makefile(self, _mode: str) -> io.BufferedIOBase:
        return self._reader

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        room = memoryview(buffer)[: self._left]
        if not room:
            raise CallError(f"the response is longer than {self._max_bytes // 1024} KiB")
        self._wire.settimeout(self._deadline.seconds_left())
        received = self._wire.recv_into(room)
        self._left -= received
        return received


def read_reply(
    wire: socket.socket,
    deadline: Deadline,
    method: str = "POST",
    max_bytes: int = MAX_REPLY_BYTES,
) -> HttpReply:
    """Read an answer. The head alone is an answer. Raises `CallError` and `OSError`."""
    stream = cast("socket.socket", _ReplyStream(wire, deadline, max_bytes))
    try:
        response = http_client.HTTPResponse(stream, method=method)
        response.begin()
        while response.status < 200:  # noqa: PLR2004  an answer before the final one
            response = http_client.HTTPResponse(stream, method=method)
            response.begin()
    except ConnectionError:
        raise
    except http_client.HTTPException:
        raise CallError("the response is not HTTP") from None
    headers = {name.lower(): value for name, value in response.headers.items()}
    body = None
    # Read to the end, so that the receiver can finish its work. `_ReplyStream` limits bytes and
    # time, and `HTTPResponse` raises many kinds of errors for a malformed chunk.
    with suppress(Exception):
        body = response.read(max_bytes)
    return HttpReply(response.status, body, headers)


def describe_refusal(status: int) -> str:
    """Describe a status that is not a success."""
    redirect = 300 <= status <= 399  # noqa: PLR2004
    return f"answered {status}" + (", and redirects are not followed" if redirect else "")
