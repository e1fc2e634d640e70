"""`python -m chaos`: faults under load for some minutes, and a check that each view counts once.

The exit status is 1 if a view was lost or doubled, if the machine did not survive a fault, or if
the run did not end properly.
"""

from __future__ import annotations

import argparse
import secrets
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from chaos.checker import history
from chaos.checker.verdict import check
from chaos.driver import machine
from chaos.driver.server import DiedError
from chaos.faults.disk import unmount
from chaos.report import report
from simulation.environment import ROOT

FOLDER = ROOT / "build" / "chaos"
SECONDS = 120.0


def main(arguments: Sequence[str]) -> int:
    """Run the harness, or check a stored history; return the exit status."""
    given = _parser().parse_args(arguments)
    if given.check:
        return _check(given.check)
    folder: Path = given.folder
    unmount(folder / machine.DISK)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends processes and unmounts
    print(f"seed {given.seed}; what is seen is kept in {folder}/", flush=True)
    try:
        seen = machine.run(given.seed, given.seconds, folder, mounted=not given.quota)
    except (DiedError, TimeoutError, AssertionError) as failed:
        print(f"FAILED: seed {given.seed}: {type(failed).__name__}: {failed}")
        return 1
    history.write(folder / "machine.jsonl", seen.history)
    found = report(given.seed, seen, check(seen.history))
    print(f"\n{found}", flush=True)
    return int(bool(found.failure))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m chaos", description=__doc__)
    parser.add_argument("--seed", default=secrets.token_hex(4), help="seed of the faults")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="length of the load")
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
