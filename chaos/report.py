"""The report of a run: a Markdown table, and the failures that decide the exit status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chaos.checker.history import Kind, Operation, Outcome
from chaos.checker.verdict import Flaw, Verdict
from chaos.driver.fault_plan import Fault
from chaos.driver.machine import Survived
from chaos.driver.visitors import HUNG
from simulation.histories import Histories
from simulation.report import Report

SHOWN = 10
"""The most wrong answers and log lines that are printed."""
CUTS = ("cut mid-request", "cut mid-answer")


@dataclass(frozen=True, slots=True)
class OneMachine:
    """The faults and the load of a machine, and their results.

    Its operations are counted by kind and outcome, and by note. `inputs` is the number of bad
    inputs to try.
    """

    seen: Survived
    inputs: int
    operations: Counter[tuple[Kind, Outcome]]
    notes: Counter[str]
    verdict: Verdict


def counted(
    operations: Sequence[Operation],
) -> tuple[Counter[tuple[Kind, Outcome]], Counter[str]]:
    """Count operations by kind and outcome, and by note."""
    return Counter((one.kind, one.outcome) for one in operations), Counter(
        one.note for one in operations
    )


def report(seed: str, seconds: float, machine: OneMachine, aws: Histories) -> Report:
    """Return the table, with the failures below it."""
    return Report(
        title=f"chaos: seed {seed}, {seconds:.0f} seconds",
        head=("what", "number"),
        rows=[
            (what, number if isinstance(number, str) else f"{number:,}")
            for what, number in (
                *_load(machine),
                *_faults(machine),
                *_results(machine.verdict, aws),
            )
        ],
        notes=_notes(machine),
        failure="\n".join(failures(machine, aws)),
    )


def _load(machine: OneMachine) -> Iterator[tuple[str, str | int]]:
    operations, seconds = machine.operations, machine.seen.seconds
    acknowledged = operations[Kind.HIT, Outcome.ACKNOWLEDGED]
    yield "load on one machine", f"{seconds:.0f} s"
    yield "load held, hits a second", f"{acknowledged / seconds:,.0f}"
    for outcome in Outcome:
        yield f"hits {outcome}", operations[Kind.HIT, outcome]
    yield "lives ended by owners", _number(operations, Kind.RESET)
    yield "reads", _number(operations, Kind.READ, Kind.FINAL)


def _number(operations: Counter[tuple[Kind, Outcome]], *kinds: Kind) -> int:
    return sum(number for (kind, _), number in operations.items() if kind in kinds)


def _faults(machine: OneMachine) -> Iterator[tuple[str, int]]:
    for fault in Fault:
        yield fault, machine.seen.faults.get(fault, 0)
    yield "starts", machine.seen.starts
    for cut in CUTS:
        yield f"connections {cut}", machine.notes[cut]
    yield "slow clients held", machine.seen.slow_clients
    yield "bad inputs tried", machine.seen.tried.number
    yield "attacks", machine.seen.attacks


def _results(machine: Verdict, aws: Histories) -> Iterator[tuple[str, int]]:
    yield "answers checked", machine.answers
    for name, flaws in (
        ("losses", (Flaw.LOST, Flaw.UNREAD)),
        ("shown more than attempted", (Flaw.OVER,)),
        ("dips", (Flaw.DOWN,)),
        ("not equal at the end", (Flaw.UNEQUAL,)),
        ("days that fell", (Flaw.DAY_DOWN,)),
        ("days not equal at the end", (Flaw.DAY_UNEQUAL,)),
    ):
        yield name, machine.of(*flaws)
    yield "views lost at the end", machine.lost
    yield "views doubled at the end", machine.doubled
    yield "histories on simulated AWS", aws.number
    yield "views in them", aws.views
    yield "histories that broke a law", len(aws.broken)


def _notes(machine: OneMachine) -> list[str]:
    answers = machine.seen.tried.answers.most_common()
    attacked, quiet = (
        wait * 1000 for wait in (machine.seen.waits.attacked, machine.seen.waits.quiet)
    )
    return [
        f"the disk that got full: {machine.seen.disk}",
        f"p99 without a fault: {attacked:.0f} ms during attacks, {quiet:.0f} ms otherwise",
        "answers to bad input: " + ", ".join(f"{answer} {n:,}" for answer, n in answers),
    ]


def failures(machine: OneMachine, aws: Histories) -> Iterator[str]:
    """Yield each failure with its evidence."""
    if machine.verdict.violations:
        yield f"{len(machine.verdict.violations)} answers are wrong; the first of each kind:"
        yield from map(str, _first_of_each(machine.verdict))
    if machine.notes[HUNG]:
        yield f"{machine.notes[HUNG]} requests got no answer"
    if machine.seen.tried.number < machine.inputs:
        yield f"{machine.inputs - machine.seen.tried.number} bad inputs were not tried in time"
    for name, wrong in (
        ("histories broke a law", aws.broken),
        ("bad inputs got a wrong answer", machine.seen.tried.wrong),
        ("requests of owners got a wrong answer", machine.seen.refused_owners),
        ("lines of the log should not be there", machine.seen.log_errors),
    ):
        if wrong:
            yield "\n  ".join([f"{len(wrong)} {name}:", *wrong[:SHOWN]])


def _first_of_each(verdict: Verdict) -> list[object]:
    first: dict[Flaw, object] = {}
    for violation in sorted(verdict.violations, key=lambda one: len(one.excerpt)):
        first.setdefault(violation.flaw, violation)
    return list(first.values())
