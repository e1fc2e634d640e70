"""The report: a table, followed by the evidence for each error."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from chaos.checker.history import Kind, Operation, Outcome
from chaos.checker.verdict import CLEAN, check
from chaos.driver.attacker import Waits
from chaos.driver.fault_plan import Fault
from chaos.driver.machine import Survived
from chaos.driver.visitors import HUNG
from chaos.fuzz.bad_input import Tried
from chaos.report import OneMachine, counted, failures, report
from simulation.histories import Histories

HIT = Operation("a", Kind.HIT, 1, 2, Outcome.ACKNOWLEDGED, 0)
LOST = check([HIT, Operation("a", Kind.FINAL, 3, 4, Outcome.ACKNOWLEDGED, 0)])
SURVIVED = Survived(
    seconds=2,
    disk="a small one",
    faults={Fault.KILLED: 3},
    starts=4,
    slow_clients=5,
    tried=Tried(Counter({"200": 6, "closed": 1})),
    refused_owners=(),
    attacks=8,
    waits=Waits(quiet=0.02, attacked=0.03),
)
MACHINE = OneMachine(
    SURVIVED,
    inputs=7,
    operations=Counter(
        {
            (Kind.HIT, Outcome.ACKNOWLEDGED): 3_000,
            (Kind.HIT, Outcome.UNKNOWN): 9,
            (Kind.READ, Outcome.UNKNOWN): 6,
            (Kind.RESET, Outcome.ACKNOWLEDGED): 5,
        }
    ),
    notes=Counter(),
    verdict=CLEAN,
)
AWS = Histories(2, 900)


def after(**other: Any) -> OneMachine:
    """Return the machine after a run with some other results."""
    return replace(MACHINE, seen=replace(SURVIVED, **other))


def test_the_table_has_the_load_the_faults_and_the_results() -> None:
    """3,000 hits in 2 s are 1,500 per second."""
    text = str(report("s", 9.0, MACHINE, AWS))
    rows = {" ".join(line.split()) for line in text.splitlines()}
    assert "## chaos: seed s, 9 seconds" in rows
    assert "| load held, hits a second | 1,500 |" in rows
    assert "| killed with SIGKILL and started again | 3 |" in rows
    assert "| hits acknowledged | 3,000 |" in rows
    assert "| hits unknown | 9 |" in rows
    assert "| reads | 6 |" in rows
    assert "| lives ended by owners | 5 |" in rows
    assert "| bad inputs tried | 7 |" in rows
    assert "| views in them | 900 |" in rows
    assert "| losses | 0 |" in rows
    assert "| attacks | 8 |" in rows
    assert "- the disk that got full: a small one" in rows
    assert "- p99 without a fault: 30 ms during attacks, 20 ms otherwise" in rows
    assert "FAILED" not in text


@pytest.mark.parametrize(
    ("machine", "aws", "says"),
    [
        (replace(MACHINE, verdict=LOST), AWS, "1 answers are wrong"),
        (MACHINE, replace(AWS, broken=("plain, seed 3: over",)), "plain, seed 3: over"),
        (replace(MACHINE, notes=Counter({HUNG: 2})), AWS, "2 requests got no answer"),
        (after(tried=Tried(wrong=["id: 500 for b'x'"])), AWS, "id: 500 for b'x'"),
        (replace(MACHINE, inputs=9), AWS, "2 bad inputs were not tried in time"),
        (after(log_errors=["Traceback"]), AWS, "Traceback"),
    ],
)
def test_an_error_fails_the_run_and_is_shown(
    machine: OneMachine, aws: Histories, says: str
) -> None:
    found = report("s", 9.0, machine, aws)
    assert says in found.failure
    assert found.failure in str(found)


def test_a_lost_view_is_shown_with_the_operations_that_prove_it() -> None:
    told = "\n".join(failures(replace(MACHINE, verdict=LOST), AWS))
    assert "unequal: 0 at the end, 1 acknowledged, 1 attempted" in told
    assert "1.0000 to 2.0000: hit 'a' acknowledged, shown 0" in told


def test_operations_are_counted_by_kind_and_outcome_and_by_note() -> None:
    operations, notes = counted([HIT, replace(HIT, note=HUNG, outcome=Outcome.UNKNOWN)])
    assert operations[Kind.HIT, Outcome.ACKNOWLEDGED] == 1
    assert notes[HUNG] == 1
