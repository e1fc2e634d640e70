"""One machine: what each step that makes it quick is worth, by taking out one at a time.

The server as it is and without one step are loaded turn by turn, each with views that expire and
are folded meanwhile.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from bench.hits import CONNECTIONS, SHORT_LIVED, SPREAD
from bench.load import Load, Request, percentile, run_apart
from bench.measuring import interleaved, medians
from bench.report import Report
from bench.server import Server, running
from bench.without import STEPS

ROUNDS = 5
WHOLE = "as it is"
HITS = [Request(f"/api/v1/views?id={badge_id}") for badge_id in SPREAD]


def measure() -> Report:
    """Load them all, turn by turn; before each turn everything behind the last is done."""
    with ExitStack() as stack:
        sides = {name: partial(_loaded, _server(stack, name)) for name in (WHOLE, *STEPS)}
        interleaved(1, sides)
        loads = interleaved(ROUNDS, sides)
    rates = medians({name: [load.per_second for load in runs] for name, runs in loads.items()})
    slowest = medians(
        {name: [percentile(load.waits, 0.99) for load in runs] for name, runs in loads.items()}
    )
    failed = sum(load.failed for runs in loads.values() for load in runs)
    return Report(
        title=f"steps: hits on one machine, {CONNECTIONS} keep-alive connections",
        head=("without the step that", "per second", "of all steps", "p99 ms", "of all steps"),
        rows=[
            (
                name,
                f"{rates[name]:,.0f}",
                f"{rates[name] / rates[WHOLE]:.2f}",
                f"{slowest[name] * 1000:.0f}",
                f"{slowest[name] / slowest[WHOLE]:.2f}",
            )
            for name in rates
        ],
        notes=(f"medians of {ROUNDS} rounds of {len(HITS):,} hits each, turn by turn",),
        failure=f"{failed} failed" if failed else "",
    )


def _server(stack: ExitStack, name: str) -> Server:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    program = ("local",) if name == WHOLE else ("bench.without", name)
    return stack.enter_context(running(folder, program, **SHORT_LIVED))


def _loaded(server: Server) -> Load:
    load = run_apart(server.host, server.port, HITS, CONNECTIONS)
    server.settle()
    return load
