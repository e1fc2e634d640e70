"""What a run did and found, as a Markdown table, and as an exit status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from chaos.checker.history import Kind, Operation, Outcome
from chaos.checker.verdict import Flaw, Verdict
from chaos.driver.fault_plan import Fault
from chaos.driver.visitors import HUNG
from chaos.fuzz.bad_input import Tried
from simulation.report import Report

SHOWN = 10
"""Wrong answers and log lines that are printed, at most."""
CUTS = ("cut mid-request", "cut mid-answer")


@dataclass(frozen=True, slots=True)
class OneMachine:
    """What was done to the machine, and what came of it.

    Its operations are counted by kind and outcome, and by note; `inputs` were to be tried.
    """

    seconds: float
    disk: str
    faults: Mapping[Fault, int]
    starts: int
    slow_clients: int
    inputs: int
    tried: Tried
    log_errors: Sequence[str]
    refused_owners: Sequence[str]
    operations: Counter[tuple[Kind, Outcome]]
    notes: Counter[str]
    verdict: Verdict

    @property
    def acknowledged(self) -> int:
        return self.operations[Kind.HIT, Outcome.ACKNOWLEDGED]


@dataclass(frozen=True, slots=True)
class OnAws:
    """What happened in the simulated worlds."""

    worlds: int
    operations: Counter[tuple[Kind, Outcome]]
    happened: Counter[str]
    verdict: Verdict


def counted(
    operations: Sequence[Operation],
) -> tuple[Counter[tuple[Kind, Outcome]], Counter[str]]:
    """Operations by kind and outcome, and by what was noted of them."""
    return Counter((one.kind, one.outcome) for one in operations), Counter(
        one.note for one in operations
    )


def report(seed: str, seconds: float, machine: OneMachine, aws: OnAws) -> Report:
    """The table, with what failed below it."""
    return Report(
        title=f"chaos: seed {seed}, {seconds:.0f} seconds",
        head=("what", "one machine", "AWS, simulated"),
        rows=[*_load(machine, aws), *_faults(machine, aws), *_found(machine.verdict, aws.verdict)],
        notes=_notes(machine),
        failure="\n".join(failures(machine, aws)),
    )


def _load(machine: OneMachine, aws: OnAws) -> Iterator[tuple[str, str, str]]:
    yield "runs", f"{machine.seconds:.0f} s of load", f"{aws.worlds} worlds"
    yield "load held, hits a second", f"{machine.acknowledged / machine.seconds:,.0f}", ""
    for outcome in Outcome:
        numbers = [one.operations[Kind.HIT, outcome] for one in (machine, aws)]
        yield f"hits {outcome}", f"{numbers[0]:,}", f"{numbers[1]:,}"
    yield "lives ended by owners", f"{_lives(machine.operations):,}", f"{_lives(aws.operations):,}"
    yield "reads", f"{_reads(machine.operations):,}", f"{_reads(aws.operations):,}"


def _reads(operations: Counter[tuple[Kind, Outcome]]) -> int:
    reads = (Kind.READ, Kind.FINAL)
    return sum(number for (kind, _), number in operations.items() if kind in reads)


def _lives(operations: Counter[tuple[Kind, Outcome]]) -> int:
    return sum(number for (kind, _), number in operations.items() if kind is Kind.RESET)


def _faults(machine: OneMachine, aws: OnAws) -> Iterator[tuple[str, str, str]]:
    for fault in Fault:
        yield fault, f"{machine.faults.get(fault, 0):,}", ""
    yield "starts", f"{machine.starts:,}", ""
    for cut in CUTS:
        yield f"connections {cut}", f"{machine.notes[cut]:,}", ""
    yield "slow clients held", f"{machine.slow_clients:,}", ""
    yield "bad inputs tried", f"{machine.tried.number:,}", ""
    for name, times in sorted(aws.happened.items()):
        yield name.replace("_", " ").lower(), "", f"{times:,}"


def _found(machine: Verdict, aws: Verdict) -> Iterator[tuple[str, str, str]]:
    yield "answers checked", f"{machine.answers:,}", f"{aws.answers:,}"
    for name, flaws in (
        ("losses", (Flaw.LOST, Flaw.UNREAD)),
        ("shown more than attempted", (Flaw.OVER,)),
        ("dips", (Flaw.DOWN,)),
        ("not equal at the end", (Flaw.UNEQUAL,)),
    ):
        yield name, f"{machine.of(*flaws):,}", f"{aws.of(*flaws):,}"
    yield "views lost at the end", f"{machine.lost:,}", f"{aws.lost:,}"
    yield "views doubled at the end", f"{machine.doubled:,}", f"{aws.doubled:,}"


def _notes(machine: OneMachine) -> list[str]:
    answers = machine.tried.answers.most_common()
    return [
        f"the disk that got full: {machine.disk}",
        "answers to bad input: " + ", ".join(f"{answer} {n:,}" for answer, n in answers),
    ]


def failures(machine: OneMachine, aws: OnAws) -> Iterator[str]:
    """What must not be, each with what shows it; nothing where all is well."""
    for where, verdict in (("one machine", machine.verdict), ("AWS", aws.verdict)):
        if verdict.violations:
            yield f"{len(verdict.violations)} answers are wrong ({where}); the first of each kind:"
            yield from map(str, _first_of_each(verdict))
    if machine.notes[HUNG]:
        yield f"{machine.notes[HUNG]} requests got no answer"
    if machine.tried.number < machine.inputs:
        yield f"{machine.inputs - machine.tried.number} bad inputs were not tried in time"
    for name, wrong in (
        ("bad inputs got a wrong answer", machine.tried.wrong),
        ("requests of owners got a wrong answer", machine.refused_owners),
        ("lines of the log should not be there", machine.log_errors),
    ):
        if wrong:
            yield "\n  ".join([f"{len(wrong)} {name}:", *wrong[:SHOWN]])


def _first_of_each(verdict: Verdict) -> list[object]:
    first: dict[Flaw, object] = {}
    for violation in sorted(verdict.violations, key=lambda one: len(one.excerpt)):
        first.setdefault(violation.flaw, violation)
    return list(first.values())
