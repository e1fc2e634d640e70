"""The checker: it rejects each wrong history for its own reason, and accepts a correct one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from chaos.checker import history
from chaos.checker.history import Kind, Operation, Outcome
from chaos.checker.verdict import Flaw, Verdict, check


def hit(
    at: float, shown: int | None, put_by: float | None = None, badge_id: str = "a"
) -> Operation:
    """Return the operation of a visitor who is answered within half a second."""
    done = Outcome.ACKNOWLEDGED
    return Operation(badge_id, Kind.HIT, at, at + 0.5, done, shown, put_by)


def read(at: float, shown: int) -> Operation:
    return Operation("a", Kind.READ, at, at + 0.5, Outcome.ACKNOWLEDGED, shown)


def final(at: float, shown: int, badge_id: str = "a") -> Operation:
    return Operation(badge_id, Kind.FINAL, at, at + 0.5, Outcome.ACKNOWLEDGED, shown)


def unanswered(at: float, outcome: Outcome = Outcome.UNKNOWN) -> Operation:
    return Operation("a", Kind.HIT, at, at + 0.5, outcome)


def reset(at: float, ended: float, outcome: Outcome = Outcome.ACKNOWLEDGED) -> Operation:
    return Operation("a", Kind.RESET, at, ended, outcome)


def flaws(*operations: Operation) -> list[Flaw]:
    return [violation.flaw for violation in check(operations).violations]


GOOD = (hit(1, 0, 2), hit(3, 1, 4), read(5, 2), final(8, 2), final(9, 2))


def test_an_exact_history_is_right() -> None:
    assert check(GOOD) == Verdict((), answers=5)


def test_a_lost_view_is_found_at_the_end() -> None:
    """2 views are acknowledged and 1 is counted."""
    verdict = check([hit(1, 0), hit(3, 1), final(9, 1)])
    assert [one.flaw for one in verdict.violations] == [Flaw.UNEQUAL]
    assert (verdict.lost, verdict.doubled) == (1, 0)


def test_a_lost_view_is_found_while_it_runs() -> None:
    """The second view was put by 4 s; its visitor's badge could not yet show the first."""
    assert flaws(hit(1, 0, 4), hit(1.2, 0, 4), read(5, 1), final(9, 2)) == [Flaw.LOST]


def test_a_view_that_is_not_put_yet_need_not_be_shown() -> None:
    assert flaws(hit(1, 0, 2), hit(3, 1, 7), read(5, 1), final(9, 2)) == []


def test_a_double_count_is_found_at_the_end_and_while_it_runs() -> None:
    """1 view is attempted and 2 are shown."""
    verdict = check([hit(1, 0, 2), read(5, 2), final(9, 2)])
    assert [one.flaw for one in verdict.violations] == [Flaw.OVER, Flaw.OVER, Flaw.UNEQUAL]
    assert (verdict.lost, verdict.doubled) == (0, 1)


def test_a_visitor_is_not_shown_their_own_view() -> None:
    """Its put would promise 2, so the end is wrong too."""
    assert flaws(hit(1, 1, 2), final(9, 1)) == [Flaw.OVER, Flaw.DOWN]


def test_a_dip_below_a_promised_count_is_found() -> None:
    """After the view whose badge showed 1 is put, the count is 2 for good.

    One view has an unknown outcome. No acknowledged view is lost, and no badge showed 2.
    """
    assert flaws(unanswered(1), hit(3, 1, 4), read(5, 1), final(9, 2)) == [Flaw.DOWN]


def test_a_dip_below_what_anybody_saw_is_found() -> None:
    both = (hit(1, 0), hit(1.2, 0), read(5, 2), read(7, 1), final(9, 2))
    assert flaws(*both) == [Flaw.DOWN]


@pytest.mark.parametrize("kind", list(Kind)[:3])
def test_a_dip_is_found_in_every_kind_of_response(kind: Kind) -> None:
    """A request for a frozen badge does not count, but shows the count."""
    refused = Operation("a", kind, 7, 7.5, Outcome.REFUSED, 1)
    assert Flaw.DOWN in flaws(hit(1, 0), hit(1.2, 0), read(5, 2), refused, final(9, 2))


def test_overlapping_responses_may_come_in_any_order() -> None:
    first, second = read(5, 2), read(5.2, 1)
    assert flaws(hit(1, 0), hit(1.2, 0), first, second, final(9, 2)) == []


def test_a_view_of_unknown_outcome_may_count_or_not() -> None:
    for count in (1, 2):
        assert flaws(hit(1, 0, 2), unanswered(3), final(9, count)) == []
    assert Flaw.UNEQUAL in flaws(hit(1, 0, 2), unanswered(3), final(9, 3))


def test_a_refused_view_may_not_count() -> None:
    refused = unanswered(3, Outcome.REFUSED)
    assert flaws(hit(1, 0, 2), refused, final(9, 1)) == []
    assert flaws(hit(1, 0, 2), refused, final(9, 2)) == [Flaw.OVER, Flaw.UNEQUAL]


@pytest.mark.parametrize("later", [1, 3])
def test_a_count_that_changes_through_the_fold_is_found(later: int) -> None:
    """Any count from 1 to 3 is right, but it must not change, because nobody came meanwhile."""
    operations = (hit(1, 0), unanswered(2), unanswered(3), final(8, 2), final(9, later))
    assert Flaw.UNEQUAL in flaws(*operations)


def test_a_badge_that_nobody_read_at_the_end_is_found() -> None:
    assert flaws(hit(1, 0), final(9, 0, badge_id="b")) == [Flaw.UNREAD]


def test_each_badge_is_judged_separately() -> None:
    verdict = check([*GOOD, hit(1, 0, 2, badge_id="b"), final(9, 0, badge_id="b")])
    assert {one.operation.badge_id for one in verdict.violations} == {"b"}


def test_a_violation_shows_only_the_operations_that_prove_it() -> None:
    promise, dip = hit(3, 1, 4), read(5, 1)
    [violation] = check([unanswered(1), promise, dip, final(9, 2)]).violations
    assert violation.excerpt == (promise,)
    assert str(violation) == (
        "down: 1 shown, after the put of a hit that was shown 1\n"
        "    3.0000 to 3.5000: hit 'a' acknowledged, shown 1, put by 4.0000\n"
        "  > 5.0000 to 5.5000: read 'a' acknowledged, shown 1"
    )


def test_a_stored_history_is_read_unchanged(tmp_path: Path) -> None:
    noted = replace(unanswered(2), badge_id="ü/🦆", note='cut "mid-request"')
    kept = [GOOD[0], noted, *GOOD[1:]]
    history.write(tmp_path / "history.jsonl", reversed(kept))
    assert history.read(tmp_path / "history.jsonl") == kept


OLD = (hit(1, 0, 2), hit(3, 1, 4))
"""2 views of the life that a reset at 5 ends."""


def test_a_reset_begins_a_life_at_0() -> None:
    assert flaws(*OLD, reset(5, 6), read(7, 0), hit(8, 0, 9), final(10, 1)) == []


def test_a_view_of_an_earlier_life_is_found_in_the_new_one() -> None:
    """It was answered before the reset began, however late it was put."""
    assert flaws(*OLD, reset(5, 6), read(7, 1), final(9, 1)) == [
        *(Flaw.OVER, Flaw.OVER, Flaw.UNEQUAL)
    ]


def test_a_view_after_the_reset_s_answer_must_be_in_the_new_life() -> None:
    later = (reset(5, 6), hit(7, 0, 8))
    assert Flaw.LOST in flaws(*OLD, *later, read(9, 0), final(11, 1))
    assert Flaw.UNEQUAL in flaws(*OLD, *later, final(11, 0))


def test_a_dip_within_a_life_is_found_after_a_reset() -> None:
    hits = (hit(7, 0), hit(7.1, 0))
    assert flaws(*OLD, reset(5, 6), *hits, read(8, 2), read(9, 1), final(11, 2)) == [Flaw.DOWN]


@pytest.mark.parametrize("count", [0, 1])
def test_a_view_without_a_read_may_be_of_the_life_before(count: int) -> None:
    """It has the time of the clock, and a reset may be a few seconds ahead of the clock."""
    assert flaws(*OLD, reset(5, 6), hit(7, None, 8), read(9, count), final(11, count)) == []


def test_a_reset_without_a_response_may_take_effect_at_any_time() -> None:
    asked = reset(5, 6, Outcome.UNKNOWN)
    for count in (2, 1, 0):
        assert flaws(*OLD, asked, read(9, count), final(11, count)) == []
    assert Flaw.OVER in flaws(*OLD, asked, read(9, 3), final(11, 2))
