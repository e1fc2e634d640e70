"""One machine: what each step that makes it quick is worth, by taking out one at a time.

The server as it is and without one step are loaded turn by turn, each with views that expire and
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
    """A load, and how many seconds it took after it until all was folded."""

    load: Load
    settled: float

    @property
    def slowest(self) -> float:
        """Seconds that one request in a hundred exceeded."""
        return percentile(self.load.waits, 0.99)

    @property
    def per_second(self) -> float:
        """Hits a second that are not only answered but folded."""
        return self.load.answered / (self.load.seconds + self.settled)


def measure() -> Report:
    """Load them all, turn by turn; before each turn everything behind the last is done."""
    with ExitStack() as stack:
        sides = {name: partial(_loaded, _server(stack, name)) for name in (WHOLE, *STEPS)}
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
    program = ("vumi",) if name == WHOLE else ("bench.speed.ablation", name)
    return stack.enter_context(running(folder, program, **SHORT_LIVED))


def _loaded(server: Server) -> Turn:
    load = server.load(HITS)
    return Turn(load, server.settle())
