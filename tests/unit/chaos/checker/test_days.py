"""The days of views: those on which a view may count, and those that a history shows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chaos.checker.days import with_spans
from chaos.checker.history import LAST_DAY, Kind, Operation, Outcome, Span
from chaos.checker.verdict import Flaw, check
from chaos.faults import Jump

DAY_SECONDS = 86_400
FIRST, SECOND, THIRD = "1970-01-01", "1970-01-02", "1970-01-03"
MIDNIGHT = (Jump(0.0, 0.0, DAY_SECONDS - 100.0),)
"""It is midnight at 100 s."""
AHEAD_AND_BACK = (*MIDNIGHT, Jump(10, 0.0, 2 * DAY_SECONDS), Jump(20, 2 * DAY_SECONDS + 10, 0.0))


def hit(at: float, put_by: float | None = None) -> Operation:
    return Operation("a", Kind.HIT, at, at + 1, Outcome.ACKNOWLEDGED, 0, put_by)


def history(at: float, days: dict[str, int], kind: Kind = Kind.READ) -> Operation:
    shown = sum(days.values())
    return Operation("a", kind, at, at + 1, Outcome.ACKNOWLEDGED, shown, days=days)


@pytest.mark.parametrize(
    ("jumps", "view", "span"),
    [
        (MIDNIGHT, hit(50, 52), (FIRST, FIRST)),
        (MIDNIGHT, hit(98, 99.97), (FIRST, SECOND)),  # the clocks may differ by that
        (MIDNIGHT, hit(98, 101), (FIRST, SECOND)),
        (MIDNIGHT, hit(101, 102), (SECOND, SECOND)),
        (MIDNIGHT, hit(98), (FIRST, LAST_DAY)),
        (AHEAD_AND_BACK, hit(9.5, 11), (FIRST, THIRD)),
        (AHEAD_AND_BACK, hit(30, 32), (FIRST, THIRD)),  # the clock of views may not go back
    ],
)
def test_a_view_may_count_between_its_request_and_its_put(
    jumps: tuple[Jump, ...], view: Operation, span: Span
) -> None:
    assert [one.span for one in with_spans([view], jumps)] == [span]


def test_a_view_is_no_earlier_than_one_that_was_answered_before_it() -> None:
    *_, later = with_spans([hit(15, 17), hit(30, 32)], AHEAD_AND_BACK)
    assert later.span == (THIRD, THIRD)


BOTH = (
    replace(hit(1, 2), span=(FIRST, FIRST)),
    replace(hit(3, 4), shown=1, span=(FIRST, SECOND)),
)
"""The second view is of either day."""


@pytest.mark.parametrize("days", [{FIRST: 2}, {FIRST: 1, SECOND: 1}])
def test_a_view_may_be_on_each_day_of_its_own(days: dict[str, int]) -> None:
    assert check([*BOTH, history(8, days, Kind.FINAL)]).violations == ()


@pytest.mark.parametrize("days", [{SECOND: 2}, {FIRST: 1, THIRD: 1}, {THIRD: 2}])
def test_a_view_on_another_day_is_found(days: dict[str, int]) -> None:
    [found] = check([*BOTH, history(8, days, Kind.FINAL)]).violations
    assert found.flaw is Flaw.DAY_UNEQUAL


def test_a_day_that_falls_is_found_unless_a_reset_is_between() -> None:
    """The count stays the same."""
    reads = history(5, {FIRST: 2}), history(7, {FIRST: 1, SECOND: 1})
    end = history(9, {FIRST: 1, SECOND: 1}, Kind.FINAL)
    flaws = [one.flaw for one in check([*BOTH, *reads, end]).violations]
    assert flaws == [Flaw.DAY_DOWN, Flaw.DAY_DOWN]
    reset = replace(end, kind=Kind.RESET, invoked=6.5, completed=6.8, shown=None, days=None)
    assert check([*BOTH, reads[0], reset, history(9, {}, Kind.FINAL)]).violations == ()
