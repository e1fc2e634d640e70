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
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from chaos.checker import history
from chaos.checker.history import Kind, Outcome
from chaos.checker.verdict import Flaw, Verdict, check
from chaos.driver import machine
from chaos.driver.fault_plan import Fault
from chaos.driver.machine import Survived
from chaos.driver.server import DiedError
from chaos.driver.visitors import GAVE_UP, HUNG, SLOW
from chaos.faults import unmount
from simulation.environment import ROOT
from simulation.report import Report

FOLDER = ROOT / "build" / "chaos"
SECONDS = 120.0
SHOWN = 10
"""The most wrong answers and log lines that are printed."""
CUTS = ("cut mid-request", "cut mid-answer")


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


def report(seed: str, seen: Survived, verdict: Verdict) -> Report:
    """Return the table, with the failures below it."""
    notes = Counter(one.note for one in seen.history)
    rows = (*_load(seen), *_faults(seen, notes), *_results(verdict))
    return Report(
        title=f"chaos: seed {seed}, {seen.seconds:.0f} seconds of load",
        head=("what", "number"),
        rows=[(what, f"{number:,}") for what, number in rows],
        notes=[f"the disk that got full: {seen.disk}"],
        failure="\n".join(_failures(seen, verdict, notes[HUNG])),
    )


def _load(seen: Survived) -> Iterator[tuple[str, int]]:
    operations = Counter((one.kind, one.outcome) for one in seen.history)
    kinds = Counter(one.kind for one in seen.history)
    acknowledged = operations[Kind.HIT, Outcome.ACKNOWLEDGED]
    yield "load held, hits a second", round(acknowledged / seen.seconds)
    for outcome in Outcome:
        yield f"hits {outcome}", operations[Kind.HIT, outcome]
    yield "lives ended by owners", kinds[Kind.RESET]
    yield "reads", kinds[Kind.READ] + kinds[Kind.FINAL]


def _faults(seen: Survived, notes: Counter[str]) -> Iterator[tuple[str, int]]:
    for fault in Fault:
        yield fault, seen.faults.get(fault, 0)
    yield "starts", seen.starts
    for cut in CUTS:
        yield f"connections {cut}", notes[cut]
    yield "slow requests", notes[SLOW] + notes[GAVE_UP]
    yield "attacks", seen.attacks


def _results(verdict: Verdict) -> Iterator[tuple[str, int]]:
    yield "answers checked", verdict.answers
    flaws = Counter(violation.flaw for violation in verdict.violations)
    for flaw in Flaw:
        yield f"wrong answers: {flaw}", flaws[flaw]
    yield "views lost at the end", verdict.lost
    yield "views doubled at the end", verdict.doubled


def _failures(seen: Survived, verdict: Verdict, hung: int) -> Iterator[str]:
    """Yield each failure with its evidence."""
    if verdict.violations:
        yield f"{len(verdict.violations)} answers are wrong; the first of each kind:"
        yield from map(str, _first_of_each(verdict))
    if hung:
        yield f"{hung} requests got no answer"
    for name, wrong in (
        ("requests of owners got a wrong answer", seen.refused_owners),
        ("lines of the log should not be there", seen.log_errors),
    ):
        if wrong:
            yield "\n  ".join([f"{len(wrong)} {name}:", *wrong[:SHOWN]])


def _first_of_each(verdict: Verdict) -> list[object]:
    first: dict[Flaw, object] = {}
    for violation in sorted(verdict.violations, key=lambda one: len(one.excerpt)):
        first.setdefault(violation.flaw, violation)
    return list(first.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
