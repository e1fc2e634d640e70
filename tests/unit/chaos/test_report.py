"""The report: each error fails the run, and is shown with its evidence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chaos.__main__ import report
from chaos.checker.history import Kind, Operation, Outcome
from chaos.checker.verdict import CLEAN, Verdict, check
from chaos.driver.fault_plan import Fault
from chaos.driver.machine import Survived
from chaos.driver.visitors import HUNG
from simulation.report import Report

HIT = Operation("a", Kind.HIT, 1, 2, Outcome.ACKNOWLEDGED, 0)
LOST = check([HIT, Operation("a", Kind.FINAL, 3, 4, Outcome.ACKNOWLEDGED, 0)])
SURVIVED = Survived(
    seconds=2,
    disk="a small one",
    faults={Fault.KILLED: 3},
    starts=4,
    refused_owners=(),
    attacks=8,
    history=[HIT] * 6,
)


def reported(verdict: Verdict = CLEAN, **other: Any) -> Report:
    """Return the report of a run with some other results."""
    return report("s", replace(SURVIVED, **other), verdict)


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (reported(LOST), "1 answers are wrong"),
        (reported(LOST), "unequal: 0 at the end, 1 acknowledged, 1 attempted"),
        (reported(LOST), "1.0000 to 2.0000: hit 'a' acknowledged, shown 0"),
        (reported(history=[replace(HIT, note=HUNG)] * 2), "2 requests got no answer"),
        (reported(refused_owners=["PATCH: 500"]), "PATCH: 500"),
        (reported(log_errors=["Traceback"]), "Traceback"),
    ],
)
def test_an_error_fails_the_run_and_is_shown(found: Report, says: str) -> None:
    assert says in found.failure
    assert found.failure in str(found)
