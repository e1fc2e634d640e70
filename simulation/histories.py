"""Generated histories, each by a kind and a seed: `python -m simulation.histories 100`."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from simulation.aws_table import moto_table
from simulation.aws_world import LONG_ID, AwsScenario, AwsWorld
from simulation.environment import isolate
from simulation.machine_world import MachineScenario, MachineWorld
from simulation.storage import MemoryTable
from simulation.world import MIDNIGHT, World

STEPS = 700
MORE_STEPS = {"removals": 2_100}
"""A removal takes many steps; a longer history would outlive the messages of its queue."""
PAST_MIDNIGHT = (0.1, 1, 30, 60, 100, 300, 300, 700)
"""Jumps that end a history some hours after midnight, so folds and counts end its day."""
HOURS = (0.1, 1, 30, 300, 20_000)
"""Jumps between bunches of views, the hours of which are then folded and can be removed."""
OWNERS = AwsScenario(skew=4.0, owners=True, hot=30)
AWS_SCENARIOS = {
    "plain": AwsScenario(),
    "ttl lags": AwsScenario(loss=0.9),
    "no removal is lost": AwsScenario(loss=0.0, owners=True, skew=4.0),
    "hot": AwsScenario(hot=4, loss=0.5),
    "faults at midnight": AwsScenario(faults=0.15, hot=30, jumps=PAST_MIDNIGHT),
    "owners": OWNERS,
    "owners at midnight": AwsScenario(skew=4.0, owners=True, hot=6, jumps=PAST_MIDNIGHT),
    "removals": replace(
        OWNERS, ids=("plain",), removals=0.8, loss=0.1, jumps=HOURS, delays=(0, 1, 300, 900)
    ),
    "resets at midnight": AwsScenario(
        skew=1.0, owners=True, hot=0, faults=0.1, start=MIDNIGHT - 6, jumps=(*[0.1] * 6, 1, 300)
    ),
    "folds at midnight": AwsScenario(
        loss=0.0, hot=6, start=MIDNIGHT - 250, jumps=(0.1, 30, 60, 300, 600), delays=(900, 2_000)
    ),
}
"""Every history crosses a midnight; those of the last kind spend their time at it."""
MACHINE_SCENARIOS = {
    "machine": MachineScenario(),
    "machine, hot": MachineScenario(hot=4),
    "machine, removals": MachineScenario(hot=30, removals=0.8, jumps=HOURS),
    "machine, prunes": MachineScenario(
        ("a", LONG_ID, *"bcdefg"), hot=30, prunes=True, jumps=(0.1, 60, 700, 90_000, -60)
    ),
    "machine at midnight": MachineScenario(hot=6, jumps=(0.1, 1, 5, 30, 60, 100, -60)),
}
MOTO = "owners, on moto"
"""A slow kind, because moto evaluates the expressions of DynamoDB."""
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  files in memory, if available


def replay(kind: str, seed: int, steps: int = 0) -> int:
    """Run one history and return its number of views. Raises `AssertionError` for a broken law.

    Without `steps`, it has as many as its kind.
    """
    with TemporaryDirectory(dir=SHARED_MEMORY if SHARED_MEMORY.is_dir() else None) as folder:
        with _world(kind, seed, Path(folder)) as world:
            world.run(steps or MORE_STEPS.get(kind, STEPS))
        return sum(map(len, world.ledger.views.values()))


@contextmanager
def _world(kind: str, seed: int, folder: Path) -> Iterator[World]:
    if kind in AWS_SCENARIOS:
        yield AwsWorld(seed, AWS_SCENARIOS[kind], MemoryTable())
    elif kind == MOTO:
        with moto_table() as table:
            yield AwsWorld(seed, OWNERS, table)
    else:
        yield MachineWorld(seed, MACHINE_SCENARIOS[kind], folder)


def attempt(kind: str, seed: int) -> tuple[int, str]:
    """Generate one history; return its number of views, and its name if it breaks a law."""
    logging.disable(logging.CRITICAL)
    try:
        return replay(kind, seed), ""
    except Exception as broken:  # noqa: BLE001  reported with its seed
        return 0, f"{kind}, seed {seed}: {broken!r}"
    finally:
        logging.disable(logging.NOTSET)


def main() -> int:
    """Run histories of each kind; return 1 if any broke a law."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("histories", type=int, help="how many of each kind")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument(
        "--kind", choices=[*AWS_SCENARIOS, MOTO, *MACHINE_SCENARIOS], action="append"
    )
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    isolate(os.environ)
    broken = 0
    with ProcessPoolExecutor(given.processes) as processes:
        for kind in given.kind or [*AWS_SCENARIOS, *MACHINE_SCENARIOS]:
            seeds = range(given.first, given.first + given.histories)
            attempts = processes.map(partial(attempt, kind), seeds, chunksize=10)
            views, names = zip(*attempts, strict=True)
            wrong = [name for name in names if name]
            broken += len(wrong)
            print(f"{kind}: {len(wrong)} broken of {len(names)}, {sum(views)} views")  # noqa: T201
            print("".join(f"  {one}\n" for one in wrong[:3]), end="", flush=True)  # noqa: T201
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
