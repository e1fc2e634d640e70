"""Events on one machine: their lateness, from their time to their arrival at a receiver.

Server, receiver and clock are on one machine. Every event must arrive once, and none before its
time.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.speed.load import Request, percentile
from bench.speed.receiver import receiving
from bench.speed.server import running
from chalicelib.http import tokens
from simulation.report import Report, judged

TOKEN = tokens.new_token()
SETTINGS = {"API_TOKEN_DIGESTS": tokens.digest(TOKEN), "WEBHOOK_ALLOW": "127.0.0.0/8"}
ROUNDS = 3
BURST, BURST_AHEAD_SECONDS = 1_000, 8.0
SPREAD, SPREAD_AHEAD_SECONDS = 10_000, 30.0
SPREAD_SECONDS = 60.0
GRACE_SECONDS = 10.0
"""The time after the last event for late ones to arrive."""
AIM_SECONDS = 1.0


def measure() -> Report:
    """Let events fire, with several rounds of the burst."""
    bursts = [_latenesses(BURST, 0.0, BURST_AHEAD_SECONDS) for _ in range(ROUNDS)]
    spread = _latenesses(SPREAD, SPREAD_SECONDS, SPREAD_AHEAD_SECONDS)
    sides = {
        f"{BURST:,} in the same second, round {number}": burst
        for number, burst in enumerate(bursts, 1)
    }
    sides[f"{SPREAD:,} over a minute"] = spread
    wrong = [f"{side}: {found.wrong}" for side, found in sides.items() if found.wrong]
    return Report(
        title="lateness: events to a URL on one machine, by their arrival",
        head=("events", "p50 ms", "p99 ms", "latest ms", "aim"),
        rows=[_row(side, found) for side, found in sides.items()],
        notes=("every event came once, none before its time",) if not wrong else (),
        failure="; ".join(wrong),
    )


class Arrivals:
    """The lateness of each event, in seconds, and the errors."""

    def __init__(self, due: Mapping[str, float], received: Sequence[tuple[str, float]]) -> None:
        came = [event_id for event_id, _ in received]
        self.late = [at - due[event_id] for event_id, at in received]
        faults = {
            "lost": len(due.keys() - set(came)),
            "doubled": len(came) - len(set(came)),
            "early": sum(late < 0 for late in self.late),
        }
        self.wrong = ", ".join(f"{number} {fault}" for fault, number in faults.items() if number)


def _latenesses(events: int, over: float, ahead: float) -> Arrivals:
    with (
        tempfile.TemporaryDirectory() as folder,
        receiving() as receiver,
        running(Path(folder), **SETTINGS) as server,
    ):
        first = float(int(time.time() + ahead))
        due = {f"e{place}": round(first + place * over / events, 3) for place in range(events)}
        target = {"url": f"http://127.0.0.1:{receiver.port}/"}
        requests = [
            Request("/api/v1/events", json.dumps({"id": name, "at": at, "target": target}), TOKEN)
            for name, at in due.items()
        ]
        accepted = server.load(requests)
        if accepted.failed or time.time() > first:
            raise TimeoutError(f"{accepted.answered} of {events} were accepted before their time")
        time.sleep(first - time.time() + over + GRACE_SECONDS)
        return Arrivals(due, receiver.received())


def _row(side: str, found: Arrivals) -> tuple[str, ...]:
    p50, p99 = (percentile(found.late, share) for share in (0.5, 0.99))
    aim = judged(f"p99 under {AIM_SECONDS:.0f} s", met=p99 < AIM_SECONDS)
    return side, *(f"{one * 1000:.0f}" for one in (p50, p99, max(found.late))), aim
