"""The report of a run: a Markdown table, and the failures that decide the exit status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from chaos.checker.history import Kind, Outcome
from chaos.checker.verdict import Flaw, Verdict
from chaos.driver.fault_plan import Fault
from chaos.driver.machine import Survived
from chaos.driver.visitors import GAVE_UP, HUNG, SLOW
from simulation.report import Report

SHOWN = 10
"""The most wrong answers and log lines that are printed."""
CUTS = ("cut mid-request", "cut mid-answer")


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
