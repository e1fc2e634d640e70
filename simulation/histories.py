"""Histories by the name of their kind and a seed: `python -m simulation.histories 100`."""

from __future__ import annotations

import argparse
import logging
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from simulation.aws_world import AwsScenario, AwsWorld
from simulation.machine_world import MachineScenario, MachineWorld
from simulation.memory_table import MemoryTable
from simulation.world import NOON, World

STEPS = 700
MIDNIGHT = NOON + 12 * 3_600
PAST_MIDNIGHT = (0.1, 1, 30, 60, 100, 300, 300, 700)
"""Jumps by which a history ends some hours after midnight: days end by folds and by counts."""
AWS_SCENARIOS = {
    "plain": AwsScenario(),
    "ttl lags": AwsScenario(loss=0.9),
    "no removal is lost": AwsScenario(loss=0.0, owners=True, skew=4.0),
    "hot": AwsScenario(hot=4, loss=0.5),
    "midnight": AwsScenario(start=MIDNIGHT - 1_500, faults=0.15, jumps=PAST_MIDNIGHT),
    "midnight, hot": AwsScenario(hot=6, start=MIDNIGHT - 1_500, faults=0.06, jumps=PAST_MIDNIGHT),
    "owners": AwsScenario(skew=4.0, owners=True, hot=30),
    "owners at midnight": AwsScenario(
        skew=4.0, owners=True, hot=6, start=MIDNIGHT - 1_500, jumps=PAST_MIDNIGHT
    ),
}


MACHINE_SCENARIOS = {
    "machine": MachineScenario(),
    "machine, hot": MachineScenario(hot=4),
    "machine at midnight": MachineScenario(
        hot=6, start=MIDNIGHT - 300, jumps=(0.1, 1, 5, 30, 60, 100, -60)
    ),
}
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  where files cost no disk, if it is there


def replay(kind: str, seed: int) -> int:
    """Run one history; return how many views it took. Raises `AssertionError` for a broken law."""
    with TemporaryDirectory(dir=SHARED_MEMORY if SHARED_MEMORY.is_dir() else None) as folder:
        world: World
        if kind in AWS_SCENARIOS:
            world = AwsWorld(seed, AWS_SCENARIOS[kind], MemoryTable())
        else:
            world = MachineWorld(seed, MACHINE_SCENARIOS[kind], Path(folder))
        world.run(STEPS)
    return sum(map(len, world.ledger.views.values()))


def _attempt(kind: str, seed: int) -> tuple[int, str]:
    logging.disable(logging.CRITICAL)
    try:
        return replay(kind, seed), ""
    except Exception as broken:  # noqa: BLE001  whatever breaks a history is told with its seed
        return 0, f"{kind}, seed {seed}: {broken!r}"


def main() -> int:
    """Run histories of each kind; return 1 if any broke a law."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("histories", type=int, help="how many of each kind")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--kind", choices=[*AWS_SCENARIOS, *MACHINE_SCENARIOS], action="append")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    broken: Counter[str] = Counter()
    with ProcessPoolExecutor(given.processes) as processes:
        for kind in given.kind or [*AWS_SCENARIOS, *MACHINE_SCENARIOS]:
            seeds = range(given.first, given.first + given.histories)
            found = list(processes.map(partial(_attempt, kind), seeds, chunksize=10))
            failures = [failure for _, failure in found if failure]
            broken[kind] = len(failures)
            views = sum(count for count, _ in found)
            print(f"{kind}: {len(failures)} broken of {len(found)} histories, {views} views")  # noqa: T201
            print("".join(f"  {failure}\n" for failure in failures[:3]), end="", flush=True)  # noqa: T201
    return int(broken.total() > 0)


if __name__ == "__main__":
    sys.exit(main())
