"""One machine: the wait of visitors during attacks, beside their wait without attacks.

Each visitor has an address of its own, a connection for ten requests and then a new one, and rests
after each request, so that the server is not busy. A view that was answered must be in the count
at the end. Each attack has a new server with the default limits of clients, and reaches it
directly, or through nginx or Caddy with the files of `examples/` and without TLS. `ONLY` in the
environment is a regular expression that chooses rows.
"""

from __future__ import annotations

import json
import math
import os
import re
import socket
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from bench.speed.load import Request, Server, percentile, running
from simulation import proxies
from simulation.attacks import (
    ATTACKS,
    BUSY_ATTACKS,
    CLIENTS,
    FLOODS,
    HOT,
    OLD_ATTACKS,
    PROXIED,
    PROXY,
    SOURCES,
    Attack,
    prepare,
)
from simulation.environment import NO_CLIENT_LIMITS, free_port
from simulation.raw_http import receive
from simulation.report import Report
from simulation.server_process import run_client
from vumi.settings import known_settings
from vumi.storage.database import FILE

ROUNDS = 3
SECONDS = 2.0
"""The time of visits without an attack, and of those during it, in each round."""
REST_SECONDS = 1.0
VISITORS = 8
PAUSE_SECONDS = 0.02
REQUESTS_A_CONNECTION = 10
SILENCE_SECONDS = 30.0
LIVE_VIEWS = 999
"""The most live views of a badge that is not hot."""
ONLY = os.environ.get("ONLY", "")
SOCKET = "vumi.sock"
"""The Unix socket of a server behind a proxy."""
WAYS = ("direct", "caddy", "nginx")
CERTIFICATES = "/etc/letsencrypt/live/badges.example.com"
WITHOUT_TLS = {
    f"    ssl_certificate {CERTIFICATES}/fullchain.pem;\n": "",
    f"    ssl_certificate_key {CERTIFICATES}/privkey.pem;\n": "",
}
"""Changes of the example of nginx."""
HEAD = ("attack", "way", "IPs", "p50 ms", "p99 ms", "quiet p99 ms", "ratio", "MB", "MB/h", "aim")
"""`MB` is the most memory, and `MB/h` is the growth of the file in an hour."""
AIMS = {1: 3.0, len(SOURCES): 5.0}
"""The highest ratio by the number of attackers' addresses."""
LOW_AIM = 2.0
"""The highest ratio of old attacks and of floods."""
MEGABYTE = 1_000_000
HOUR_SECONDS = 3_600
LIMITS = {name: known_settings()[name].default for name in NO_CLIENT_LIMITS}
SETTINGS = {**LIMITS, "TRUSTED_PROXIES": f"127.0.0.1,{PROXY}", "WEBHOOK_ALLOW": "127.0.0.9"}


@dataclass(slots=True)
class Seen:
    """The waits of visitors during an attack and just before it, in seconds.

    The wait of a visitor whom the server or the proxy refused is infinite.
    `memory` is the largest memory of the server, in bytes, and `growth` is by how many its file
    grows in a second.
    """

    name: str
    way: str
    addresses: int
    quiet: list[float] = field(default_factory=list)
    attacked: list[float] = field(default_factory=list)
    growth: float = 0.0
    memory: int = 0
    lost: int = 0

    @property
    def ratio(self) -> float:
        return percentile(self.attacked, 0.99) / percentile(self.quiet, 0.99)

    @property
    def refused(self) -> int:
        return sum(map(math.isinf, (*self.quiet, *self.attacked)))

    @property
    def answered(self) -> int:
        return sum(map(math.isfinite, (*self.quiet, *self.attacked)))


def measure() -> Report:
    """Attack a server in each way."""
    seen = [_play(one) for one in _plays()]
    lost = sum(one.lost for one in seen)
    return Report(
        title=f"attacks: {ROUNDS} x {SECONDS:.0f} s each, beside {VISITORS} visitors",
        head=HEAD,
        rows=[_row(one) for one in seen],
        notes=(
            f"{sum(one.answered for one in seen):,} views were answered, {lost} were lost",
            f"{sum(one.refused for one in seen)} views were refused",
        ),
        failure=f"{lost} views were lost" if lost else "",
    )


def _plays() -> Iterator[Seen]:
    """Yield each attack in each way; those by busy connections from several addresses too.

    An attack through a proxy of its own reaches the server directly alone.
    """
    for way, addresses, name in product(WAYS, AIMS, ATTACKS):
        is_play = addresses == 1 or name in BUSY_ATTACKS
        if name in PROXIED:
            is_play = is_play and way == "direct"
        if is_play and re.search(ONLY, f"{name} {way} {addresses}"):
            yield Seen(name, way, len(CLIENTS) if name in PROXIED else addresses)


def _play(seen: Seen) -> Seen:
    """Attack a new server in rounds, so that other programs disturb all visits alike."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        at = {"HOST": f"unix:{folder / SOCKET}"} if seen.way != "direct" else {}
        with (
            running(folder, **SETTINGS, **at) as server,
            _reached(seen.way, server, folder) as port,
        ):
            server.load([Request(f"/api/v1/views?id={HOT}")] * LIVE_VIEWS)
            _visit(server.host, port, REST_SECONDS)
            for _ in range(ROUNDS):
                _attack(server, port, seen)
            seen.memory = _largest(server.process.pid)
            seen.lost = max(0, seen.answered - server.shown(["visited"])["visited"])
    print(" | ".join(_row(seen)), file=sys.stderr, flush=True)
    return seen


def _attack(server: Server, port: int, seen: Seen) -> None:
    seen.quiet += _visit(server.host, port, SECONDS)
    before = _size(server.folder)
    attack = Attack(server.host, port, seen.name, REST_SECONDS + SECONDS, seen.addresses)
    with attack.start() as process:
        time.sleep(REST_SECONDS)
        seen.attacked += _visit(server.host, port, SECONDS)
        seen.growth += (_size(server.folder) - before) / attack.seconds / ROUNDS
        process.wait()
    for source in attack.sources:
        # It is answered after all that this address has left behind.
        with (
            suppress(OSError),
            socket.create_connection((server.host, port), SILENCE_SECONDS, (source, 0)) as last,
        ):
            last.sendall(Request("/healthz").encoded("h"))
            receive(last)
    time.sleep(REST_SECONDS)


@contextmanager
def _reached(way: str, server: Server, folder: Path) -> Iterator[int]:
    """Run the proxy of a way before a server, and return the port of the way."""
    if way == "direct":
        yield server.port
        return
    server.port = port = free_port()
    own, upstream = folder / way, folder / SOCKET
    own.mkdir()
    command = proxies.caddy_example(own, free_port(), port)
    if way == "nginx":
        command = proxies.nginx_example(
            own,
            {
                **WITHOUT_TLS,
                "listen 80;": f"listen 127.0.0.1:{free_port()};",
                "listen 443 ssl http2;": f"listen 127.0.0.1:{port};",
                "server unix:/run/vumi/vumi.sock;": f"server unix:{upstream};",
            },
        )
    with proxies.started(command, own, port, {"SITE": "http://", "UPSTREAM": f"unix/{upstream}"}):
        yield port


def _size(folder: Path) -> int:
    """Return the bytes of the file, with those that are still in its write-ahead log."""
    with closing(sqlite3.connect(f"file:{folder / FILE}?mode=ro", uri=True)) as file:
        [pages], [size] = (file.execute(f"PRAGMA page_{of}").fetchone() for of in ("count", "size"))
    return int(pages * size)


def _largest(process_id: int) -> int:
    """Return the most bytes of memory that a process has had. Source: proc(5), `VmHWM`."""
    status = Path(f"/proc/{process_id}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1_024


def _visit(host: str, port: int, seconds: float) -> list[float]:
    """Run the visitors in a separate process, and return their waits."""
    waits: list[float] = run_client("bench.speed.attacks", [host, port, seconds])
    return waits


def _row(one: Seen) -> Sequence[str]:
    aim = LOW_AIM if one.name in OLD_ATTACKS | FLOODS else AIMS[one.addresses]
    waits = (percentile(one.attacked, share) for share in (0.5, 0.99))
    return (
        one.name,
        one.way,
        str(one.addresses),
        *(f"{wait * 1000:.1f}" for wait in (*waits, percentile(one.quiet, 0.99))),
        f"{one.ratio:.2f}",
        f"{one.memory / MEGABYTE:,.0f}",
        f"{one.growth * HOUR_SECONDS / MEGABYTE:,.0f}",
        f"at most {aim:g}: {'met' if one.ratio <= aim else 'missed'}",
    )


def _visitor(address: tuple[str, int], deadline: float, waits: list[float], number: int) -> None:
    raw, source = Request("/api/v1/views?id=visited").encoded("h"), (f"127.0.1.{number + 1}", 0)
    began = time.perf_counter()
    while time.monotonic() < deadline:
        # A visitor whose connection was closed sends the request again on a new one.
        with (
            suppress(ConnectionError),
            socket.create_connection(address, SILENCE_SECONDS, source) as connected,
        ):
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for _ in range(REQUESTS_A_CONNECTION):
                connected.sendall(raw)
                is_counted = receive(connected).startswith(b"HTTP/1.1 200")
                waits.append(time.perf_counter() - began if is_counted else math.inf)
                time.sleep(PAUSE_SECONDS)
                began = time.perf_counter()


def main() -> None:
    """Read the arguments of a visit from standard input, and print the waits in seconds."""
    host, port, seconds = json.load(sys.stdin)
    waits: list[float] = []
    deadline = time.monotonic() + seconds
    threads = [
        threading.Thread(target=_visitor, args=((host, port), deadline, waits, number))
        for number in range(VISITORS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps(waits))


if __name__ == "__main__":
    main()
