"""A load client: one process, many keep-alive connections, each with one request under way.

It does as little as it can, for it shares the machine with the server it measures.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

END_OF_HEAD = b"\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Load:
    """What came of it: `seconds` from first request to last answer, `waits` of each in seconds."""

    answered: int
    failed: int
    seconds: float
    waits: Sequence[float]

    @property
    def per_second(self) -> float:
        return self.answered / self.seconds

    def percentile(self, share: float) -> float:
        """The wait that `share` of the requests did not exceed."""
        return sorted(self.waits)[min(len(self.waits) - 1, int(share * len(self.waits)))]


def run(host: str, port: int, paths: Sequence[str], connections: int) -> Load:
    """Ask for every path once, over so many connections."""
    todo = iter(paths)
    selector = selectors.DefaultSelector()
    waits: list[float] = []
    failed = 0
    started = time.perf_counter()
    open_connections = 0
    for _ in range(connections):
        open_connections += _ask(selector, socket.create_connection((host, port)), todo, host)
    while open_connections:
        for key, _ in selector.select():
            sock, (sent_at, received) = cast("socket.socket", key.fileobj), key.data
            received += sock.recv(65_536)
            if not _complete(received):
                selector.modify(sock, selectors.EVENT_READ, (sent_at, received))
                continue
            waits.append(time.perf_counter() - sent_at)
            failed += not received.startswith(b"HTTP/1.1 200") or b'"isError"' in received
            selector.unregister(sock)
            open_connections -= not _ask(selector, sock, todo, host)
    return Load(len(waits) - failed, failed, time.perf_counter() - started, waits)


def _ask(
    selector: selectors.BaseSelector, sock: socket.socket, todo: Iterator[str], host: str
) -> bool:
    path = next(todo, None)
    if path is None:
        sock.close()
        return False
    sock.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    selector.register(sock, selectors.EVENT_READ, (time.perf_counter(), b""))
    return True


def _complete(received: bytes) -> bool:
    head, end, body = received.partition(END_OF_HEAD)
    if not end:
        return False
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]
    return len(body) >= int(length)
