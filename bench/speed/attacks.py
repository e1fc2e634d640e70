"""One machine: the wait of visitors while one address attacks, beside their wait without attacks.

Each visitor has a connection for ten requests and then a new one, and rests after each request, so
that the server is not busy. A view that was answered must be in the count at the end.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.speed.load import Request, percentile
from bench.speed.memory import resident
from bench.speed.server import Server, running
from simulation.attacks import ATTACKS, HOT, Attack
from simulation.environment import ROOT
from simulation.raw_http import receive
from simulation.report import Report, judged

SECONDS = 15.0
REST_SECONDS = 1.0
VISITORS = 8
PAUSE_SECONDS = 0.02
REQUESTS_A_CONNECTION = 10
SILENCE_SECONDS = 30.0
LIVE_VIEWS = 999
"""The most live views of a badge that is not hot."""
AIM = 2.0
MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Seen:
    """The waits of visitors during an attack and just before it, and the memory after it."""

    name: str
    quiet: Sequence[float]
    attacked: Sequence[float]
    resident: int

    @property
    def ratio(self) -> float:
        return percentile(self.attacked, 0.99) / percentile(self.quiet, 0.99)


def measure() -> Report:
    """Attack the server in each way, with quiet times in between."""
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as server:
        server.load([Request(f"/api/v1/views?id={HOT}")] * LIVE_VIEWS)
        _visit(server, REST_SECONDS)
        seen = [_attack(server, name) for name in ATTACKS]
        shown = server.shown(["visited"])["visited"]
    answered = sum(len(one.quiet) + len(one.attacked) for one in seen)
    return Report(
        title=f"attacks: {SECONDS:.0f} s each, by one address, beside {VISITORS} visitors",
        head=("attack", "p50 ms", "p99 ms", "quiet p99 ms", "ratio", "memory MB", "aim"),
        rows=[_row(one) for one in seen],
        notes=(f"each of {answered:,} answered views was counted",),
        failure="" if shown >= answered else f"{shown} counted of {answered} answered views",
    )


def _attack(server: Server, name: str) -> Seen:
    quiet = _visit(server, SECONDS)
    with ExitStack() as cleanup:
        attack = cleanup.enter_context(
            Attack(server.host, server.port, name, SECONDS + REST_SECONDS).start()
        )
        time.sleep(REST_SECONDS)
        attacked = _visit(server, SECONDS)
        size = resident(server.process.pid)
        attack.wait()
    time.sleep(REST_SECONDS)
    return Seen(name, quiet, attacked, size)


def _visit(server: Server, seconds: float) -> list[float]:
    """Run the visitors in a separate process, and return their waits."""
    finished = subprocess.run(
        [sys.executable, "-m", "bench.speed.attacks"],
        input=json.dumps([server.host, server.port, seconds]),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    waits: list[float] = json.loads(finished.stdout)
    return waits


def _row(one: Seen) -> Sequence[str]:
    waits = (percentile(one.attacked, share) for share in (0.5, 0.99))
    return (
        one.name,
        *(f"{wait * 1000:.1f}" for wait in (*waits, percentile(one.quiet, 0.99))),
        f"{one.ratio:.2f}",
        f"{one.resident / MEGABYTE:,.0f}",
        judged(f"at most {AIM:g}", met=one.ratio <= AIM),
    )


def _visitor(address: tuple[str, int], deadline: float, waits: list[float]) -> None:
    raw = Request("/api/v1/views?id=visited").encoded("h")
    while time.monotonic() < deadline:
        began = time.perf_counter()
        with socket.create_connection(address, SILENCE_SECONDS) as connected:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for _ in range(REQUESTS_A_CONNECTION):
                connected.sendall(raw)
                receive(connected)
                waits.append(time.perf_counter() - began)
                time.sleep(PAUSE_SECONDS)
                began = time.perf_counter()


def main() -> None:
    """Read the arguments of a visit from standard input, and print the waits in seconds."""
    host, port, seconds = json.load(sys.stdin)
    waits: list[float] = []
    deadline = time.monotonic() + seconds
    threads = [
        threading.Thread(target=_visitor, args=((host, port), deadline, waits))
        for _ in range(VISITORS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps(waits))


if __name__ == "__main__":
    main()
