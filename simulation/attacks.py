"""Attacks on the web server of one machine, for programs that run them beside visitors.

`python -m simulation.attacks` reads an `Attack` as JSON from its standard input, and ends by
itself.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from urllib.parse import quote

from simulation.environment import ROOT
from simulation.raw_http import receive

SOURCE = "127.0.0.2"
"""The attacker's address, which is not that of the visitors."""
CROWD = 1_005
SILENCE_SECONDS = 2.0
STEP_SECONDS = 0.5
COMBINING = "a" + "\u0316\u0301" * 40_000
BODY_BYTES = 262_144


def request(target: str, header: str = "A: a", body: bytes = b"", method: str = "GET") -> bytes:
    """Return a request with one header more."""
    head = f"{method} {target} HTTP/1.1\r\nHost: h\r\n{header}\r\nContent-Length: {len(body)}"
    return f"{head}\r\n\r\n".encode() + body


@dataclass
class Attacker:
    """A client with many connections."""

    address: tuple[str, int]
    deadline: float
    connections: list[socket.socket] = field(default_factory=list)

    def open(self, number: int, first: bytes = b"") -> None:
        """Replace the connections that were closed, and send something on each new one."""
        self.connections = [one for one in self.connections if _is_open(one)]
        while len(self.connections) < number and time.monotonic() < self.deadline:
            try:
                self.connections.append(_connect(self.address))
            except OSError:
                return
            self.connections[-1].settimeout(0.0)
            _send(self.connections[-1], first)

    def send(self, data: bytes) -> None:
        """Send something on each connection, as far as the server takes it."""
        for connected in self.connections:
            _send(connected, data)

    def ask(self, raw: bytes) -> None:
        """Send a request and wait for its answer or the end of the connection."""
        with suppress(OSError), _connect(self.address) as connected:
            connected.sendall(raw)
            receive(connected)

    def close(self) -> None:
        """Hang up on all connections."""
        for connected in self.connections:
            connected.close()
        self.connections.clear()


def _connect(address: tuple[str, int]) -> socket.socket:
    return socket.create_connection(address, SILENCE_SECONDS, (SOURCE, 0))


def _send(connected: socket.socket, data: bytes) -> None:
    with suppress(OSError):
        connected.send(data)


def _is_open(connected: socket.socket) -> bool:
    try:
        is_open = connected.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except OSError:
        is_open = False
    if not is_open:
        connected.close()
    return is_open


def _repeat(*raw: bytes) -> Callable[[Attacker], Iterator[float]]:
    """Return an attack by one connection after another, as fast as the server answers."""

    def attack(attacker: Attacker) -> Iterator[float]:
        while True:
            for one in raw:
                attacker.ask(one)
                yield 0.0

    return attack


def _crowd(first: bytes, then: bytes = b"") -> Callable[[Attacker], Iterator[float]]:
    """Return an attack by many connections that send something, and something in each step."""

    def attack(attacker: Attacker) -> Iterator[float]:
        while True:
            attacker.open(CROWD, first)
            attacker.send(then)
            yield STEP_SECONDS

    return attack


def _reconnect(attacker: Attacker) -> Iterator[float]:
    while True:
        attacker.open(CROWD // 10)
        attacker.close()
        yield STEP_SECONDS / 10


def _secret(method: str) -> bytes:
    target = f"/api/v1/badges/{quote(COMBINING[:1_000])}"
    return request(target, "Authorization: Bearer x", method=method)


HOT = "attacked"
"""A badge with many live views, for the attacks that count nothing."""
ATTACKS: dict[str, Callable[[Attacker], Iterator[float]]] = {
    "request lines of 8 KB and 261 KB": _repeat(
        request("/" + "a" * 8_000), request("/" + "a" * 261_000)
    ),
    "headers with long runs of spaces": _repeat(
        request("/", f"A: a{' ' * 16_000}b"), request("/", f"A: a{' ' * 261_000}b")
    ),
    "ids of 80,000 combining characters": _repeat(
        request("/api/v1/badges", body=json.dumps({"id": COMBINING}).encode(), method="POST"),
        request("/api/v1/badges", body=f'{{"id":"{COMBINING}"}}'.encode(), method="POST"),
        request(f"/api/v1/views?peek=1&id={quote(COMBINING[:2_500])}"),
        _secret("PATCH"),
        _secret("DELETE"),
    ),
    "queries of thousands of parameters": _repeat(
        request("/api/v1/views?" + "a&" * 8_000), request("/api/v1/views?" + "a&" * 130_000)
    ),
    "claims of 256 KB of JSON": _repeat(
        request("/api/v1/badges", body=b'{"id":[' + b"[]," * 87_000 + b"0]}", method="POST")
    ),
    "histories of a badge with many live views": _repeat(
        request(f"/api/v1/views/history?id={HOT}&days=400"),
        request(f"/api/v1/views/history.svg?id={HOT}&days=400"),
    ),
    "malformed framing": _repeat(
        request("//x/api/v1/events", "Connection: close"),
        request("http://["),
        request("/", f"Content-Length: {'0' * 5_000}"),
        request("/", "Transfer-Encoding: chunked", b"-5\r\na\r\n0\r\n\r\n", "POST"),
    ),
    f"{CROWD:,} connections that pipeline and never read": _crowd(
        b"", request("/openapi.json") * 20
    ),
    f"{CROWD:,} heads, byte by byte": _crowd(b"GET / HTTP/1.1\r\nA: ", b"a"),
    f"{CROWD:,} half bodies": _crowd(
        request("/api/v1/badges", body=bytes(BODY_BYTES), method="POST")[: BODY_BYTES // 2]
    ),
    f"{CROWD:,} idle connections": _crowd(request("/healthz")),
    "connections opened and closed": _reconnect,
}


@dataclass(frozen=True, slots=True)
class Attack:
    """An attack on a server, named as in `ATTACKS`, for a time."""

    host: str
    port: int
    name: str
    seconds: float

    def start(self) -> subprocess.Popen[bytes]:
        """Start the attack in its own process, which ends by itself."""
        process = subprocess.Popen(
            [sys.executable, "-m", "simulation.attacks"], cwd=ROOT, stdin=subprocess.PIPE
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(asdict(self)).encode())
        process.stdin.close()
        return process

    def run(self) -> None:
        """Attack until the time is over."""
        attacker = Attacker((self.host, self.port), time.monotonic() + self.seconds)
        for pause in ATTACKS[self.name](attacker):
            time.sleep(max(0.0, min(pause, attacker.deadline - time.monotonic())))
            if time.monotonic() >= attacker.deadline:
                break
        attacker.close()


if __name__ == "__main__":
    Attack(**json.load(sys.stdin)).run()
