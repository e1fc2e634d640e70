"""One machine: events accepted per second, each on the disk before it is answered.

The yardstick is `/healthz` of the same server, as for hits. The server stores an event that is far
ahead; it also queues one that is due soon.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.measuring import interleaved
from bench.speed.lateness import SETTINGS, TOKEN
from bench.speed.load import Load, Request, compared
from bench.speed.server import CONNECTIONS, running
from simulation.report import Report

ROUNDS = 4
REQUESTS = 2_000
SOON, FAR = 400, 86_400
"""Seconds; events that are due within 420 go to the queue immediately."""
YARDSTICK = "/healthz"


def measure() -> Report:
    """Run the server, and let it accept events turn by turn."""
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), **SETTINGS) as server:
        sides: dict[str, Callable[[], Load]] = {
            YARDSTICK: partial(server.load, [Request(YARDSTICK)] * REQUESTS),
            "an event a day ahead": partial(server.load, [_event(FAR)] * REQUESTS),
            "an event due soon": partial(server.load, [_event(SOON)] * REQUESTS),
        }
        loads = interleaved(ROUNDS, sides)
    failed = sum(load.failed for runs in loads.values() for load in runs)
    return Report(
        title=f"accepting: events stored on one machine, {CONNECTIONS} keep-alive connections",
        head=("requests", "per second", "of /healthz", "p99 ms"),
        rows=compared(loads, YARDSTICK),
        notes=(f"{ROUNDS} x {REQUESTS:,} requests each, client on the same machine",),
        failure=f"{failed} requests failed" if failed else "",
    )


def _event(delay: int) -> Request:
    """Return a request for an event; each makes a new event, because it names no id."""
    body = {"delay": delay, "target": {"log": True}, "payload": {"text": "the hour has come"}}
    return Request("/api/v1/events", json.dumps(body), TOKEN)
