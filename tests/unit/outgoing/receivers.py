"""Servers on this machine that receive requests and answer by a script."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from chalicelib.outgoing.http_client import CallError, HttpClient
from chalicelib.outgoing.urls import Allowed

LOOPBACK = Allowed.parse("127.0.0.0/8,::1")
SHORT, SOON = 0.3, 3.0
"""The time of calls that must reach their deadline, and of those that must end earlier."""
LATE = "no response within 0.3 s"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
TLS_HANDSHAKE = b"\x16"
Script = Callable[[socket.socket], None]
Found = int | str
"""The status of a response, or the error without one."""


def post(url: str, body: bytes = b"tea", client: HttpClient | None = None, **how: Any) -> Found:
    """Send a request by a client, or by one with these settings that may call this machine."""
    used = client or HttpClient(LOOPBACK, **how)
    try:
        return used.call("POST", url, {"X-Tea": "green"}, body).status
    except CallError as failure:
        return str(failure)


@dataclass
class Receiver:
    """A server on this machine that records requests and TLS server names."""

    port: int
    requests: list[bytes] = field(default_factory=list)
    names: list[str | None] = field(default_factory=list)

    def url(self, scheme: str = "http", host: str = "127.0.0.1") -> str:
        return f"{scheme}://{host}:{self.port}/hook?a=b"


def drips(start: bytes, part: bytes) -> Script:
    """Send a part immediately, then a little every 10 ms until the client closes."""

    def script(connection: socket.socket) -> None:
        connection.sendall(start)
        while True:
            connection.sendall(part)
            time.sleep(0.01)

    return script


def silent(connection: socket.socket) -> None:
    """Answer nothing until the client closes."""
    connection.recv(1)


@contextmanager
def receiver(answer: bytes | Script = OK, tls: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """Serve connections one after the other: read a request, then answer it."""
    script = answer if callable(answer) else lambda connection: connection.sendall(answer)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Receiver(listener.getsockname()[1])
        if tls:
            tls.sni_callback = lambda _, name, __: server.names.append(name)
        thread = threading.Thread(target=_serve, args=(listener, server, script, tls))
        thread.start()
        try:
            yield server
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _serve(
    listener: socket.socket, server: Receiver, script: Script, tls: ssl.SSLContext | None
) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with suppress(OSError), ExitStack() as open_ones:
            open_ones.enter_context(connection)
            if tls:
                connection = open_ones.enter_context(tls.wrap_socket(connection, server_side=True))
            server.requests.append(receive(connection))
            script(connection)


def receive(connection: socket.socket) -> bytes:
    """Receive a request to its end, or the first part of a handshake."""
    request = b""
    while b"\r\n\r\n" not in request:
        part = connection.recv(65_536)
        request += part
        if not part or request.startswith(TLS_HANDSHAKE):
            return request
    head, _, body = request.partition(b"\r\n\r\n")
    left = int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0] or 0) - len(body)
    while left > 0:
        part = connection.recv(min(left, 65_536)) or bytes(left)
        request, left = request + part, left - len(part)
    return request
