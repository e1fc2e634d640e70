"""The connections to one endpoint of AWS, which stay open between requests."""

from __future__ import annotations

import select
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPSConnection
from typing import TYPE_CHECKING
from urllib.parse import SplitResult

from chalicelib.lazy import lazy, load
from chalicelib.units import Seconds

if TYPE_CHECKING:
    from botocore import exceptions

    from chalicelib import tls
else:
    exceptions, tls = lazy("botocore.exceptions"), lazy("chalicelib.tls")

TIMEOUT: Seconds = 1.0
"""DynamoDB and SQS answer within milliseconds, and a badge can't wait longer than this."""


@dataclass(frozen=True, slots=True)
class HttpReply:
    """The answer to a request."""

    status: int
    headers: Mapping[str, str] | HTTPMessage
    body: bytes


@dataclass(slots=True)
class Connections:
    """The connections to an endpoint. Threads share them; each has one request at a time."""

    endpoint: SplitResult
    timeout: Seconds = TIMEOUT
    _idle: list[HTTPConnection] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make the TLS context now: a Lambda function has a whole vCPU only while it starts."""
        if self.endpoint.scheme == "https":
            load("chalicelib.tls")

    def post(self, headers: Mapping[str, str], body: bytes) -> HttpReply:
        """Send one request. Raises `HTTPClientError` without an answer."""
        connection = self._take()
        try:
            connection.request("POST", self.endpoint.path, body, headers)
            response = connection.getresponse()
            reply = HttpReply(response.status, response.headers, response.read())
        except (OSError, HTTPException) as error:
            connection.close()
            raise exceptions.HTTPClientError(error=repr(error)) from error
        self._idle.append(connection)
        return reply

    def close(self) -> None:
        """Close the connections that have no request."""
        while self._idle:
            self._idle.pop().close()

    def _take(self) -> HTTPConnection:
        """Return an open connection, or a new one, which connects at its request."""
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return self._connection()
            if not _is_dropped(connection):
                return connection
            connection.close()

    def _connection(self) -> HTTPConnection:
        host = self.endpoint.netloc
        if self.endpoint.scheme == "http":
            return HTTPConnection(host, timeout=self.timeout)
        return HTTPSConnection(host, timeout=self.timeout, context=tls.SYSTEM_TRUST)


def _is_dropped(connection: HTTPConnection) -> bool:
    """Return whether the server closed a connection: nothing else makes an idle one readable."""
    if connection.sock is None:
        return True
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    return bool(poll.poll(0))
