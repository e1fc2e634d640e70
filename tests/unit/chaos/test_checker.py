"""The checker with its days and its probe, and the report, which finds each wrong history."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chalicelib.counting import keys
from chalicelib.counting.view import marker_item
from chalicelib.ulids import new_ulid
from chaos.__main__ import report
from chaos.checker import db_probe, history
from chaos.checker.days import with_spans
from chaos.checker.db_probe import Look, annotated
from chaos.checker.history import LAST_DAY, Kind, Operation, Outcome, Span
from chaos.checker.verdict import CLEAN, Flaw, Verdict, check
from chaos.driver.fault_plan import Fault
from chaos.driver.machine import Survived
from chaos.driver.visitors import HUNG
from chaos.faults import Jump
from simulation.report import Report
from vumi.engine import VIEWS_QUEUE
from vumi.storage.database import FILE, Database
from vumi.storage.queue import DEAD_LETTERS, SqliteQueue
from vumi.storage.table import SqliteTable


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


def test_a_double_count_is_found_at_the_end_and_while_it_runs() -> None:
    """1 view is attempted and 2 are shown."""
    verdict = check([hit(1, 0, 2), read(5, 2), final(9, 2)])
    assert [one.flaw for one in verdict.violations] == [Flaw.OVER, Flaw.OVER, Flaw.UNEQUAL]
    assert (verdict.lost, verdict.doubled) == (0, 1)


OLD = (hit(1, 0, 2), hit(3, 1, 4))
"""2 views of the life that a reset at 5 ends."""
NEW = (*OLD, reset(5, 6), hit(7, 0, 8))
"""A view after the answer of the reset, which must be in the new life."""
LOST_ANSWER = (*OLD, reset(5, 6, Outcome.UNKNOWN))
"""A reset that may take effect at any time."""
SEEN = (hit(1, 0), hit(1.2, 0))
REFUSED = (hit(1, 0, 2), unanswered(3, Outcome.REFUSED))
CHANGING = (hit(1, 0), unanswered(2), unanswered(3), final(8, 2))
"""Any count from 1 to 3 is right, but it must not change, because nobody comes meanwhile."""


@pytest.mark.parametrize(
    ("operations", "found"),
    [
        # The second view was put by 4 s; its visitor's badge could not yet show the first.
        ((hit(1, 0, 4), hit(1.2, 0, 4), read(5, 1), final(9, 2)), [Flaw.LOST]),
        ((hit(1, 0, 2), hit(3, 1, 7), read(5, 1), final(9, 2)), []),  # not put yet
        # Its put would promise 2, so the end is wrong too.
        ((hit(1, 1, 2), final(9, 1)), [Flaw.OVER, Flaw.DOWN]),
        # After the view whose badge showed 1 is put, the count is 2 for good. One view has an
        # unknown outcome. No acknowledged view is lost, and no badge showed 2.
        ((unanswered(1), hit(3, 1, 4), read(5, 1), final(9, 2)), [Flaw.DOWN]),
        ((*SEEN, read(5, 2), read(7, 1), final(9, 2)), [Flaw.DOWN]),
        ((*SEEN, read(5, 2), read(5.2, 1), final(9, 2)), []),  # overlapping, in any order
        *(((hit(1, 0, 2), unanswered(3), final(9, count)), []) for count in (1, 2)),
        ((hit(1, 0, 2), unanswered(3), final(9, 3)), [Flaw.OVER, Flaw.UNEQUAL]),
        ((*REFUSED, final(9, 1)), []),
        ((*REFUSED, final(9, 2)), [Flaw.OVER, Flaw.UNEQUAL]),
        ((*CHANGING, final(9, 1)), [Flaw.DOWN, Flaw.UNEQUAL]),
        ((*CHANGING, final(9, 3)), [Flaw.UNEQUAL]),
        ((hit(1, 0), final(9, 0, badge_id="b")), [Flaw.UNREAD]),
        # A reset begins a life at 0. A view of the life before was answered before the reset.
        ((*OLD, reset(5, 6), read(7, 0), hit(8, 0, 9), final(10, 1)), []),
        ((*OLD, reset(5, 6), read(7, 1), final(9, 1)), [Flaw.OVER, Flaw.OVER, Flaw.UNEQUAL]),
        ((*NEW, read(9, 0), final(11, 1)), [Flaw.DOWN, Flaw.LOST]),
        ((*NEW, final(11, 0)), [Flaw.DOWN, Flaw.LOST, Flaw.UNEQUAL]),
        (
            (*OLD, reset(5, 6), hit(7, 0), hit(7.1, 0), read(8, 2), read(9, 1), final(11, 2)),
            [Flaw.DOWN],
        ),
        # A view without a read may be of the life before: it has the time of the clock, and a
        # reset may be a few seconds ahead of the clock.
        *(
            ((*OLD, reset(5, 6), hit(7, None, 8), read(9, count), final(11, count)), [])
            for count in (0, 1)
        ),
        *(((*LOST_ANSWER, read(9, count), final(11, count)), []) for count in (2, 1, 0)),
        ((*LOST_ANSWER, read(9, 3), final(11, 2)), [Flaw.OVER]),
    ],
)
def test_a_wrong_history_is_found_for_its_own_reason_and_no_right_one(
    operations: tuple[Operation, ...], found: list[Flaw]
) -> None:
    assert flaws(*operations) == found


@pytest.mark.parametrize("kind", list(Kind)[:3])
def test_a_dip_is_found_in_every_kind_of_response(kind: Kind) -> None:
    """A request for a frozen badge does not count, but shows the count."""
    refused = Operation("a", kind, 7, 7.5, Outcome.REFUSED, 1)
    assert Flaw.DOWN in flaws(hit(1, 0), hit(1.2, 0), read(5, 2), refused, final(9, 2))


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


# ---- the report

LOST = check([hit(1, 0), final(3, 0)])
SURVIVED = Survived(
    seconds=2,
    disk="a small one",
    faults={Fault.KILLED: 3},
    starts=4,
    refused_owners=(),
    attacks=8,
    history=[hit(1, 0)] * 6,
)


def reported(verdict: Verdict = CLEAN, **other: Any) -> Report:
    """Return the report of a run with some other results."""
    return report("s", replace(SURVIVED, **other), verdict)


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (reported(LOST), "1 answers are wrong"),
        (reported(LOST), "unequal: 0 at the end, 1 acknowledged, 1 attempted"),
        (reported(LOST), "1.0000 to 1.5000: hit 'a' acknowledged, shown 0"),
        (reported(history=[replace(hit(1, 0), note=HUNG)] * 2), "2 requests got no answer"),
        (reported(refused_owners=["PATCH: 500"]), "PATCH: 500"),
        (reported(log_errors=["Traceback"]), "Traceback"),
    ],
)
def test_an_error_fails_the_run_and_is_shown(found: Report, says: str) -> None:
    assert says in found.failure
    assert found.failure in str(found)


# ---- the days of views

DAY_SECONDS = 86_400
FIRST, SECOND, THIRD = "1970-01-01", "1970-01-02", "1970-01-03"
MIDNIGHT = (Jump(0.0, 0.0, DAY_SECONDS - 100.0),)
"""It is midnight at 100 s."""
AHEAD_AND_BACK = (*MIDNIGHT, Jump(10, 0.0, 2 * DAY_SECONDS), Jump(20, 2 * DAY_SECONDS + 10, 0.0))


def told(at: float, days: dict[str, int], kind: Kind = Kind.READ) -> Operation:
    shown = sum(days.values())
    return Operation("a", kind, at, at + 1, Outcome.ACKNOWLEDGED, shown, days=days)


@pytest.mark.parametrize(
    ("jumps", "view", "span"),
    [
        (MIDNIGHT, hit(50, 0, 52), (FIRST, FIRST)),
        (MIDNIGHT, hit(98, 0, 99.97), (FIRST, SECOND)),  # the clocks may differ by that
        (MIDNIGHT, hit(98, 0, 101), (FIRST, SECOND)),
        (MIDNIGHT, hit(101, 0, 102), (SECOND, SECOND)),
        (MIDNIGHT, hit(98, 0), (FIRST, LAST_DAY)),
        (AHEAD_AND_BACK, hit(9.5, 0, 11), (FIRST, THIRD)),
        (AHEAD_AND_BACK, hit(30, 0, 32), (FIRST, THIRD)),  # the clock of views may not go back
    ],
)
def test_a_view_may_count_between_its_request_and_its_put(
    jumps: tuple[Jump, ...], view: Operation, span: Span
) -> None:
    assert [one.span for one in with_spans([view], jumps)] == [span]


def test_a_view_is_no_earlier_than_one_that_was_answered_before_it() -> None:
    *_, later = with_spans([hit(15, 0, 17), hit(30, 0, 32)], AHEAD_AND_BACK)
    assert later.span == (THIRD, THIRD)


BOTH = (
    replace(hit(1, 0, 2), span=(FIRST, FIRST)),
    replace(hit(3, 0, 4), shown=1, span=(FIRST, SECOND)),
)
"""The second view is of either day."""


@pytest.mark.parametrize("days", [{FIRST: 2}, {FIRST: 1, SECOND: 1}])
def test_a_view_may_be_on_each_day_of_its_own(days: dict[str, int]) -> None:
    assert check([*BOTH, told(8, days, Kind.FINAL)]).violations == ()


@pytest.mark.parametrize("days", [{SECOND: 2}, {FIRST: 1, THIRD: 1}, {THIRD: 2}])
def test_a_view_on_another_day_is_found(days: dict[str, int]) -> None:
    [found] = check([*BOTH, told(8, days, Kind.FINAL)]).violations
    assert found.flaw is Flaw.DAY_UNEQUAL


def test_a_day_that_falls_is_found_unless_a_reset_is_between() -> None:
    """The count stays the same."""
    reads = told(5, {FIRST: 2}), told(7, {FIRST: 1, SECOND: 1})
    end = told(9, {FIRST: 1, SECOND: 1}, Kind.FINAL)
    flaws = [one.flaw for one in check([*BOTH, *reads, end]).violations]
    assert flaws == [Flaw.DAY_DOWN, Flaw.DAY_DOWN]
    reset = replace(end, kind=Kind.RESET, invoked=6.5, completed=6.8, shown=None, days=None)
    assert check([*BOTH, reads[0], reset, told(9, {}, Kind.FINAL)]).violations == ()


# ---- the probe

NONE = 9e18


def looked(at: float, sent: int, waiting: float = NONE) -> Look:
    return Look(at, at + 0.1, sent, waiting)


def put_by(completed: float, *looks: Look) -> float | None:
    [operation] = annotated([hit(completed - 0.5, 0)], looks)
    return operation.put_by


def test_a_view_is_put_when_no_message_of_its_time_is_left() -> None:
    """It is answered at 1.5 s, so its message is 7 or lower.

    The first look without those is at 4 s.
    """
    looks = (looked(1, 5, 3), looked(2, 7, 6), looked(3, 9, 7), looked(4, 9, 8), looked(5, 9))
    assert put_by(1.5, *looks) == 4.1


def test_a_view_with_a_message_at_the_last_look_has_no_put() -> None:
    assert put_by(1.5, looked(2, 7, 6), looked(3, 9, 7)) is None
    assert put_by(3.5, looked(2, 7), looked(3, 9)) is None


def test_an_operation_that_certainly_counted_no_view_has_no_put() -> None:
    refused = unanswered(1, Outcome.REFUSED)
    assert annotated([refused], [looked(2, 7)]) == [refused]


def test_a_look_finds_messages_and_dead_letters_that_wait(tmp_path: Path) -> None:
    with closing(Database(tmp_path / FILE)) as database:
        queue = SqliteQueue(database, VIEWS_QUEUE, lambda: 1_000.0)
        assert db_probe.look(tmp_path)[2:] == (0, NONE)
        assert db_probe.look(tmp_path).all_put
        for body in ("one", "two"):
            queue.send(body)
        assert db_probe.look(tmp_path)[2:] == (2, 1)
        queue.delete(queue.receive(1))
        assert db_probe.look(tmp_path)[2:] == (2, 2)
        assert not db_probe.look(tmp_path).all_put
        SqliteQueue(database, VIEWS_QUEUE + DEAD_LETTERS, lambda: 1_000.0).send("three")
        queue.delete(queue.receive(1))
        assert db_probe.look(tmp_path)[2:] == (3, 3)


def test_views_after_the_watermarks_and_markers_are_left(tmp_path: Path) -> None:
    """There are 3 views, of which one is folded, and one marker."""
    with closing(Database(tmp_path / FILE)) as database:
        table = SqliteTable(database)
        for badge_id, at in (("a", 1_000), ("a", 1_001), ("b", 1_000)):
            pk, sk = keys.view(badge_id, new_ulid(at))
            table.put_all([{"PK": pk, "SK": sk}])
        pk, sk = keys.summary("a")
        table.put_all([{"PK": pk, "SK": sk, "watermark": 1_000}, marker_item("a", 300, 900)])
        assert db_probe.count_left(tmp_path) == (2, 4)
