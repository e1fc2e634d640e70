"""One machine: hits per second, each counted and on the disk before it is answered.

The yardstick is `/healthz` of the same server, which goes through the same web server and Chalice,
reads once, and writes nothing. The time of SVG badges is compared with that of JSON badges. At the
end, every view must be in the count once.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median

from bench.measuring import interleaved, medians, seconds
from bench.speed.load import Load, Request, percentile
from bench.speed.server import CONNECTIONS, Server, running
from simulation.report import Report, judged

ROUNDS = 4
HITS_A_ROUND = 5_000
IDS = 2_000
AIM_PER_SECOND = 2_000
AIM_SVG = 1.3
"""The most that an SVG badge may take, as a multiple of a JSON badge's time."""
FSYNCS = 50
SHORT_LIVED = {"VIEW_WINDOW_SECONDS": "1", "GRACE_SECONDS": "1", "RETENTION_SECONDS": "3"}
"""Windows of one second, folded a second later; their views expire soon after."""

YARDSTICK = "/healthz"
MANY = f"hits on {IDS:,} ids"
SVG = f"the same as SVG, on {IDS:,} others"
ONE = "hits on one id"

SPREAD = [f"bench%2F{place * 7 % IDS}" for place in range(HITS_A_ROUND)]
"""Successive requests are not neighbours in the table; 7 shares no factor with `IDS`."""
DRAWN = [f"bench%2Fdrawn%2F{place * 7 % IDS}" for place in range(HITS_A_ROUND)]
HOT = ["bench%2Fhot"] * HITS_A_ROUND


def measure() -> Report:
    """Run the server, load it, and check its counts."""
    settled: list[float] = []
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), **SHORT_LIVED) as server:
        sides: dict[str, Callable[[], Load]] = {
            YARDSTICK: partial(server.load, [Request(YARDSTICK)] * HITS_A_ROUND),
            MANY: _hit_and_settle(server, "views", SPREAD, settled),
            SVG: _hit_and_settle(server, "views.svg", DRAWN, settled),
            ONE: _hit_and_settle(server, "views", HOT, settled),
        }
        loads = interleaved(ROUNDS, sides)
        lost, doubled = _difference(server, _expected([*SPREAD, *DRAWN, *HOT]))
        fsync = median(_fsync(Path(folder) / "fsync") for _ in range(FSYNCS))
    exactness = f"lost {lost}, doubled {doubled}"
    failed = sum(load.failed for runs in loads.values() for load in runs)
    return Report(
        title=f"hits: durable counted hits on one machine, {CONNECTIONS} keep-alive connections",
        head=("requests", "per second", "of /healthz", "p50 ms", "p99 ms", "aim"),
        rows=_rows(loads),
        notes=(
            f"{ROUNDS} x {HITS_A_ROUND:,} hits each, client on the same machine: {exactness}",
            f"all folded {median(settled):.1f} s after the last hit (at most {max(settled):.1f} s)",
            f"one fsync of this disk: {fsync * 1000:.2f} ms",
        ),
        failure=exactness + f", {failed} failed" if lost or doubled or failed else "",
    )


def _hit_and_settle(
    server: Server, route: str, ids: Sequence[str], settled: list[float]
) -> Callable[[], Load]:
    """Return a function that hits badges and waits for their folds, which would slow the next."""

    def hit() -> Load:
        load = server.load([Request(f"/api/v1/{route}?id={badge_id}") for badge_id in ids])
        settled.append(server.settle())
        return load

    return hit


def _rows(loads: Mapping[str, Sequence[Load]]) -> list[Sequence[str]]:
    rates = medians({side: [load.per_second for load in runs] for side, runs in loads.items()})
    return [
        (
            side,
            f"{rate:,.0f}",
            f"{rate / rates[YARDSTICK]:.2f}",
            *_percentiles(loads[side]),
            _aim(side, rates),
        )
        for side, rate in rates.items()
    ]


def _aim(side: str, rates: Mapping[str, float]) -> str:
    if side == YARDSTICK:
        return ""
    if side == SVG:
        times = rates[MANY] / rates[SVG]
        aimed = f"JSON within {AIM_SVG} times, it is {times:.2f} times"
        return judged(aimed, met=times <= AIM_SVG)
    return judged(f"at least {AIM_PER_SECOND:,}", met=rates[side] >= AIM_PER_SECOND)


def _percentiles(loads: Sequence[Load]) -> tuple[str, str]:
    waits = [wait for load in loads for wait in load.waits]
    return f"{percentile(waits, 0.5) * 1000:.1f}", f"{percentile(waits, 0.99) * 1000:.1f}"


def _expected(ids: Sequence[str]) -> dict[str, int]:
    return {badge_id: ROUNDS * hits for badge_id, hits in Counter(ids).items()}


def _difference(server: Server, expected: Mapping[str, int]) -> tuple[int, int]:
    """Return the numbers of missing and of surplus views, over all badges."""
    peeked = server.shown(list(expected))
    errors = [peeked[badge_id] - views for badge_id, views in expected.items()]
    return -sum(min(0, error) for error in errors), sum(max(0, error) for error in errors)


def _fsync(path: Path) -> float:
    with path.open("ab") as file:
        file.write(bytes(4096))
        file.flush()
        return seconds(lambda: os.fsync(file.fileno()))
