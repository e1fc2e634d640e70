"""A server, and its load: one process, many keep-alive connections, each with one request.

The client does little work, because it shares the machine with the server that it measures. So it
runs in a process of its own.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import sqlite3
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from http.client import HTTPConnection
from pathlib import Path
from subprocess import Popen
from typing import NamedTuple

from bench.measuring import medians
from simulation.raw_http import complete
from simulation.server_process import ServerProcess, killed, run_client, start
from vumi.storage.database import FILE

SILENCE_SECONDS = 30.0
"""A server without an answer for this time hangs."""
CONNECTIONS = 32
"""Keep-alive connections of a load."""
SETTLE_SECONDS = 60.0
"""The most that putting, expiry and folds of a round may take; views expire in two seconds."""
POLL_SECONDS = 0.05
UNDER_WAY = (
    "SELECT (SELECT count(*) FROM messages), (SELECT count(*) FROM views)"
    " + (SELECT count(*) FROM items WHERE sk = 'WINDOW'), (SELECT count(*) FROM changes)"
)
"""Messages to put, views and markers to remove, and removals to fold, in one statement."""


@dataclass(frozen=True, slots=True)
class Load:
    """The result of a load: `seconds` from the first request to the last answer, `waits` of each.

    An answer that is not 2xx, or is an error badge, counts as failed.
    """

    answered: int
    failed: int
    seconds: float
    waits: Sequence[float]

    @property
    def per_second(self) -> float:
        return self.answered / self.seconds


def percentile(waits: Sequence[float], share: float) -> float:
    """Return the wait that `share` of the requests did not exceed."""
    return sorted(waits)[min(len(waits) - 1, int(share * len(waits)))]


def compared(loads: Mapping[str, Sequence[Load]], yardstick: str) -> list[tuple[str, ...]]:
    """Return rows of each side: its rate, its rate divided by the yardstick's, p50 and p99."""
    rates = medians({side: [load.per_second for load in runs] for side, runs in loads.items()})
    return [
        (side, f"{rate:,.0f}", f"{rate / rates[yardstick]:.2f}", *_percentiles(loads[side]))
        for side, rate in rates.items()
    ]


def _percentiles(loads: Sequence[Load]) -> Sequence[str]:
    waits = [wait for load in loads for wait in load.waits]
    return [f"{percentile(waits, share) * 1000:.1f}" for share in (0.5, 0.99)]


class Request(NamedTuple):
    """A request; with a body and without a method it is a POST."""

    path: str
    body: str = ""
    token: str = ""
    method: str = ""

    def encoded(self, host: str) -> bytes:
        token = f"Authorization: Bearer {self.token}\r\n" if self.token else ""
        content = self.body.encode()
        length = f"Content-Length: {len(content)}\r\n" if content else ""
        method = self.method or ("POST" if content else "GET")
        head = f"{method} {self.path} HTTP/1.1\r\nHost: {host}\r\n{token}{length}\r\n"
        return head.encode() + content


def run(host: str, port: int, requests: Sequence[Request], connections: int) -> Load:
    """Make every request once, over this many connections.

    Raises `ConnectionError` if the server hangs up, `TimeoutError` if it hangs.
    """
    encoded = (request.encoded(host) for request in requests)
    open_connections = [_Connection(host, port) for _ in range(min(connections, len(requests)))]
    waits: list[float] = []
    failed = 0
    started = time.perf_counter()
    for answer, wait in _exchange(open_connections, encoded):
        waits.append(wait)
        failed += not answer.startswith(b"HTTP/1.1 2") or b'"isError"' in answer
    return Load(len(waits) - failed, failed, time.perf_counter() - started, waits)


class _Connection:
    """A keep-alive connection with at most one request under way."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = b""
        self.sent_at = 0.0

    def ask(self, request: bytes) -> None:
        self.sent_at, self._received = time.perf_counter(), b""
        self._socket.sendall(request)

    def receive(self) -> bytes | None:
        """Return the answer, or None while a part of it is missing."""
        part = self._socket.recv(65_536)
        if not part:
            raise ConnectionError("the server closed a connection with a request under way")
        self._received += part
        return self._received if complete(self._received) else None

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()


def _exchange(
    connections: Sequence[_Connection], requests: Iterator[bytes]
) -> Iterator[tuple[bytes, float]]:
    """Yield every answer and its time in seconds, in the order of arrival."""
    with selectors.DefaultSelector() as selector:
        for connection in connections:
            selector.register(connection, selectors.EVENT_READ, connection)
            connection.ask(next(requests))
        while selector.get_map():
            for connection in _readable(selector):
                if (answer := connection.receive()) is None:
                    continue
                yield answer, time.perf_counter() - connection.sent_at
                if request := next(requests, None):
                    connection.ask(request)
                else:
                    selector.unregister(connection)
                    connection.close()


def _readable(selector: selectors.BaseSelector) -> list[_Connection]:
    ready = selector.select(SILENCE_SECONDS)
    if not ready:
        raise TimeoutError(f"no answer for {SILENCE_SECONDS:.0f} s")
    return [key.data for key, _ in ready]


class Server(ServerProcess):
    """A running server."""

    def __init__(self, process: Popen[str], folder: Path) -> None:
        super().__init__(process)
        self.folder = folder

    def load(self, requests: Sequence[Request]) -> Load:
        """Make every request once, from a separate process."""
        given = [self.host, self.port, requests, CONNECTIONS]
        return Load(**run_client("bench.speed.load", given))

    def shown(self, ids: Sequence[str]) -> dict[str, int]:
        """Return the counts that badges show, by their encoded ids; this counts no view."""
        connection = HTTPConnection(self.host, self.port)
        counts = {}
        for badge_id in ids:
            connection.request("GET", f"/api/v1/views?id={badge_id}&peek=1")
            counts[badge_id] = int(json.load(connection.getresponse())["message"])
        connection.close()
        return counts

    def settle(self) -> None:
        """Wait until every view is folded. Raises `TimeoutError`."""
        started = time.monotonic()
        while any(left := self._under_way()):
            if time.monotonic() - started > SETTLE_SECONDS:
                raise TimeoutError(f"messages, views and removals still under way: {left}")
            time.sleep(POLL_SECONDS)

    def resident(self) -> int:
        """Return the bytes of memory of the process. Source: proc(5), `/proc/pid/statm`."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def _under_way(self) -> tuple[int, int, int]:
        with closing(sqlite3.connect(f"file:{self.folder / FILE}?mode=ro", uri=True)) as file:
            messages, views, removals = file.execute(UNDER_WAY).fetchone()
        return messages, views, removals


@contextmanager
def running(folder: Path, **settings: str) -> Iterator[Server]:
    """Run a server with these settings."""
    with killed(start(folder, ("vumi", "serve"), settings, stderr=None)) as process:
        yield Server(process, folder)


def main() -> None:
    """Read the arguments of `run` as JSON from standard input, and print its `Load` as JSON."""
    host, port, requests, connections = json.load(sys.stdin)
    print(json.dumps(asdict(run(host, port, [Request(*one) for one in requests], connections))))


if __name__ == "__main__":
    main()
