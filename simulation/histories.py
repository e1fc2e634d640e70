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

from simulation.aws_world import AwsWorld, Weather
from simulation.machine_world import MachineWorld, Trouble
from simulation.memory_table import MemoryTable
from simulation.world import NOON, World

STEPS = 700
MIDNIGHT = NOON + 12 * 3_600
PAST_MIDNIGHT = (0.1, 1, 30, 60, 100, 300, 300, 700)
"""Jumps by which a history ends some hours after midnight: days end by folds and by counts."""
WEATHERS = {
    "plain": Weather(),
    "ttl lags": Weather(loss=0.9),
    "no removal is lost": Weather(loss=0.0, owners=True, skew=4.0),
    "hot": Weather(hot=4, loss=0.5),
    "midnight": Weather(start=MIDNIGHT - 1_500, faults=0.15, jumps=PAST_MIDNIGHT),
    "midnight, hot": Weather(hot=6, start=MIDNIGHT - 1_500, faults=0.06, jumps=PAST_MIDNIGHT),
    "owners": Weather(skew=4.0, owners=True, hot=30),
    "owners at midnight": Weather(
        skew=4.0, owners=True, hot=6, start=MIDNIGHT - 1_500, jumps=PAST_MIDNIGHT
    ),
}


TROUBLES = {
    "machine": Trouble(),
    "machine, hot": Trouble(hot=4),
    "machine at midnight": Trouble(
        hot=6, start=MIDNIGHT - 300, jumps=(0.1, 1, 5, 30, 60, 100, -60)
    ),
}
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  where files cost no disk, if it is there


def replay(kind: str, seed: int) -> int:
    """Run one history; return how many views it took. Raises `AssertionError` for a broken law."""
    with TemporaryDirectory(dir=SHARED_MEMORY if SHARED_MEMORY.is_dir() else None) as folder:
        world: World
        if kind in WEATHERS:
            world = AwsWorld(seed, WEATHERS[kind], MemoryTable())
        else:
            world = MachineWorld(seed, TROUBLES[kind], Path(folder))
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
    parser.add_argument("--kind", choices=[*WEATHERS, *TROUBLES], action="append")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    broken: Counter[str] = Counter()
    with ProcessPoolExecutor(given.processes) as processes:
        for kind in given.kind or [*WEATHERS, *TROUBLES]:
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
