"""One machine: the effect of each optimization, measured by removing one at a time.

The load goes turn by turn to the server as it is and to servers without one step. Views expire and
are folded meanwhile.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.measuring import interleaved, medians
from bench.speed.ablation import STEPS
from bench.speed.hits import SHORT_LIVED, SPREAD
from bench.speed.load import Load, Request, percentile
from bench.speed.server import CONNECTIONS, Server, running
from simulation.report import Report

ROUNDS = 3
WHOLE = "as it is"
HEAD = ("answered a second", "of all", "folded a second", "of all", "p99 ms", "of all")
HITS = [Request(f"/api/v1/views?id={badge_id}") for badge_id in SPREAD * 4]


@dataclass(frozen=True, slots=True)
class Turn:
    """A load, and the seconds after it until all views were folded."""

    load: Load
    settled: float

    @property
    def slowest(self) -> float:
        """The seconds that one request in a hundred exceeded."""
        return percentile(self.load.waits, 0.99)

    @property
    def per_second(self) -> float:
        """The hits per second that were answered and folded."""
        return self.load.answered / (self.load.seconds + self.settled)


def measure() -> Report:
    """Load all servers turn by turn; each turn begins after the last one's views are folded."""
    with ExitStack() as stack:
        sides = {name: partial(_load, _server(stack, name)) for name in (WHOLE, *STEPS)}
        interleaved(1, sides)
        turns = interleaved(ROUNDS, sides)
    answered = {name: [turn.load.per_second for turn in own] for name, own in turns.items()}
    folded = {name: [turn.per_second for turn in own] for name, own in turns.items()}
    slowest = {name: [turn.slowest * 1000 for turn in own] for name, own in turns.items()}
    columns = [medians(figures) for figures in (answered, folded, slowest)]
    failed = sum(turn.load.failed for own in turns.values() for turn in own)
    return Report(
        title=f"steps: hits on one machine, {CONNECTIONS} keep-alive connections",
        head=("without the step that", *HEAD),
        rows=[(name, *_cells(name, columns)) for name in turns],
        notes=(f"medians of {ROUNDS} turns of {len(HITS):,} hits each",),
        failure=f"{failed} failed" if failed else "",
    )


def _cells(name: str, columns: Sequence[Mapping[str, float]]) -> Iterator[str]:
    for column in columns:
        yield f"{column[name]:,.0f}"
        yield f"{column[name] / column[WHOLE]:.2f}"


def _server(stack: ExitStack, name: str) -> Server:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    program = ("vumi", "serve") if name == WHOLE else ("bench.speed.ablation", name)
    return stack.enter_context(running(folder, program, **SHORT_LIVED))


def _load(server: Server) -> Turn:
    load = server.load(HITS)
    return Turn(load, server.settle())
