"""`python -m chaos`: faults under load for some minutes, and a check that each view counts once.

The exit status is 1 if a view was lost or doubled, if the machine did not survive an input or a
fault, or if the run did not end properly.
"""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import signal
import sys
import time
import zlib
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path

import moto  # noqa: F401  import moto first: it patches only later botocore sessions

from chaos.checker import history
from chaos.checker.verdict import check
from chaos.driver import machine
from chaos.driver.server import DiedError
from chaos.faults.disk import unmount
from chaos.report import OneMachine, counted, report
from simulation.environment import ROOT, isolate
from simulation.histories import AWS_SCENARIOS, MOTO, STEPS, Histories, attempt

FOLDER = ROOT / "build" / "chaos"
SECONDS = 180.0
LOAD_SHARE = 0.66
"""The share of the time for the load on one machine; AWS gets the rest, less some seconds."""
INPUTS = 4_800


def main(arguments: Sequence[str]) -> int:
    """Run the harness, or check a stored history; return the exit status."""
    given = _parser().parse_args(arguments)
    if given.check:
        return _check(given.check)
    isolate(os.environ)
    folder: Path = given.folder
    unmount(folder / machine.DISK)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends processes and unmounts
    began = time.monotonic()
    print(f"seed {given.seed}; what is seen is kept in {folder}/", flush=True)
    try:
        on_machine = _on_machine(given, folder)
        on_aws = _on_aws(given.seed, given.steps, began + given.seconds)
    except (DiedError, TimeoutError, AssertionError) as failed:
        print(f"FAILED: seed {given.seed}: {type(failed).__name__}: {failed}")
        return 1
    found = report(given.seed, time.monotonic() - began, on_machine, on_aws)
    print(f"\n{found}", flush=True)
    return int(bool(found.failure))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m chaos", description=__doc__)
    parser.add_argument("--seed", default=secrets.token_hex(4), help="seed of the faults")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="approximate length")
    parser.add_argument("--inputs", type=int, default=INPUTS, help="bad inputs to try")
    parser.add_argument("--steps", type=int, default=STEPS, help="steps of a history on AWS")
    parser.add_argument(
        "--folder", type=Path, default=FOLDER, help="for the results; it is emptied first"
    )
    parser.add_argument(
        "--quota", action="store_true", help="fill the disk by a quota, without a mount"
    )
    parser.add_argument("--check", type=Path, help="only check a stored history")
    return parser


def _check(path: Path) -> int:
    verdict = check(history.read(path))
    for violation in verdict.violations:
        print(violation)
    print(f"{verdict.answers:,} answers, {len(verdict.violations)} wrong")
    return int(bool(verdict.violations))


def _on_machine(given: argparse.Namespace, folder: Path) -> OneMachine:
    seconds = given.seconds * LOAD_SHARE
    seen = machine.run(given.seed, seconds, given.inputs, folder, mounted=not given.quota)
    history.write(folder / "machine.jsonl", seen.history)
    return OneMachine(seen, given.inputs, *counted(seen.history), check(seen.history))


def _on_aws(seed: str, steps: int, deadline: float) -> Histories:
    """Generate one history on moto and one of each kind, then more while there is time."""
    found = attempt(MOTO, _number(f"{seed}/moto"), steps)
    for place, kind in enumerate(cycle(AWS_SCENARIOS)):
        if place >= len(AWS_SCENARIOS) and time.monotonic() > deadline:
            break
        found += attempt(kind, _number(f"{seed}/{place}"), steps)
    return found


def _number(seed: str) -> int:
    return zlib.crc32(seed.encode())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
