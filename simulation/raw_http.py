"""HTTP messages as bytes, for clients that send requests no library would send."""

from __future__ import annotations

import socket

END_OF_HEAD = b"\r\n\r\n"


def complete(received: bytes) -> bool:
    """Return whether a message has its whole head and body, by its `Content-Length`."""
    head, end, body = received.partition(END_OF_HEAD)
    if not end:
        return False
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]
    return len(body) >= int(length or 0)


def receive(connected: socket.socket, *, without_body: bool = False) -> bytes:
    """Return the whole answer. Raises `ConnectionError` and `TimeoutError`."""
    received = b""
    while not (END_OF_HEAD in received if without_body else complete(received)):
        part = connected.recv(65_536)
        if not part:
            raise ConnectionError("the connection was closed before the end of an answer")
        received += part
    return received
