"""The waits of visitors during attacks, and without them."""

from __future__ import annotations

from chaos.checker.history import Kind, Operation, Outcome
from chaos.driver.attacker import Waits, waits

ATTACKS = [10.0, 20.0, 30.0, 40.0]
FAULTS = [15.0, 16.0, 45.0, 46.0]


def visit(invoked: float, seconds: float, outcome: Outcome = Outcome.ACKNOWLEDGED) -> Operation:
    return Operation("a", Kind.HIT, invoked, invoked + seconds, outcome)


def test_visits_during_an_attack_are_compared_with_the_others() -> None:
    quiet = [visit(1.0, 1.0), visit(21.0, 2.0), visit(50.0, 3.0)]
    attacked = [visit(9.0, 5.0), visit(11.0, 1.0), visit(39.0, 4.0), visit(29.0, 12.0)]
    assert waits([*quiet, *attacked], ATTACKS, FAULTS) == Waits(3.0, 12.0)


def test_visits_during_a_fault_and_without_an_answer_are_left_out() -> None:
    others = [
        visit(14.0, 5.0),
        visit(15.5, 0.2),
        visit(44.0, 5.0),
        visit(1.0, 5.0, Outcome.UNKNOWN),
    ]
    assert waits([visit(1.0, 1.0), visit(11.0, 2.0), *others], ATTACKS, FAULTS) == Waits(1.0, 2.0)


def test_the_p99_of_no_visits_is_0() -> None:
    assert waits([], ATTACKS, FAULTS) == Waits(0.0, 0.0)
    hundred = [visit(1.0, seconds) for seconds in range(100)]
    assert waits(hundred, [], []) == Waits(99.0, 0.0)
    assert waits([*hundred, visit(1.0, 0.0)], [], []) == Waits(98.0, 0.0)
