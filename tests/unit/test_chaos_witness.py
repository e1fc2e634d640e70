"""The witness: when the put of a view was certainly done, and when nothing was being folded."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from chalicelib.ports import Put
from chaos import witness
from chaos.history import Kind, Operation, Outcome, Still
from chaos.witness import Look, annotated
from local.database import FILE, Database
from local.engine import VIEWS_QUEUE
from local.queue import SqliteQueue
from local.table import ChangeLog, SqliteTable, remove_expired

NONE = 9e18


def looked(
    at: float, sent: int, waiting: float = NONE, removed: int = 0, unfolded: int = 0
) -> Look:
    return Look(at, at + 0.1, sent, waiting, removed, unfolded, 0, 0)


def hit(completed: float) -> Operation:
    return Operation("a", Kind.HIT, completed - 0.5, completed, Outcome.ACKNOWLEDGED, 0)


def put_by(completed: float, *looks: Look) -> float | None:
    [operation] = annotated([hit(completed)], looks).operations
    return operation.put_by


def test_a_view_is_put_once_no_message_is_left_of_the_time_of_its_answer() -> None:
    """Answered at 1.5: its message is one of those up to 7; the first look without them is at 4."""
    looks = (looked(1, 5, 3), looked(2, 7, 6), looked(3, 9, 7), looked(4, 9, 8), looked(5, 9))
    assert put_by(1.5, *looks) == 4.1


def test_a_look_that_began_before_the_answer_says_nothing_of_it() -> None:
    assert put_by(1.05, looked(1, 5), looked(2, 6)) == 2.1


def test_a_view_whose_message_is_still_there_at_the_last_look_was_not_seen_put() -> None:
    assert put_by(1.5, looked(2, 7, 6), looked(3, 9, 7)) is None
    assert put_by(3.5, looked(2, 7), looked(3, 9)) is None


def test_what_counted_nothing_for_sure_has_no_put() -> None:
    refused = Operation("a", Kind.HIT, 1, 1.5, Outcome.REFUSED)
    assert annotated([refused], [looked(2, 7)]).operations == (refused,)


def test_nothing_is_removed_between_two_looks_that_know_one_last_removal() -> None:
    looks = (
        looked(1, 0, removed=3, unfolded=2),
        looked(2, 0, removed=3),
        looked(3, 0, removed=3),
        looked(4, 0, removed=3),
        looked(5, 0, removed=4, unfolded=1),
        looked(6, 0, removed=5),
        looked(7, 0, removed=5),
    )
    assert annotated([], looks).stills == (Still(2.1, 4), Still(6.1, 7))


def test_a_look_finds_messages_removals_and_live_views(tmp_path: Path) -> None:
    with closing(Database(tmp_path / FILE)) as database:
        table, log = SqliteTable(database), ChangeLog(database, "fold_views")
        queue = SqliteQueue(database, VIEWS_QUEUE, lambda: 1_000.0)
        assert witness.look(tmp_path)[2:] == (0, NONE, 0, 0, 0, 0)
        for body in ("one", "two"):
            queue.send(body)
            table.write(Put({"PK": "USER#a", "SK": f"VIEW#{body}", "ttl": 900}))
        assert witness.look(tmp_path)[2:] == (2, 1, 0, 0, 2, 0)
        database.write(lambda connection: remove_expired(connection, 1_000.0, {"VIEW#two"}, 9))
        queue.delete(queue.receive(1))
        assert witness.look(tmp_path)[2:] == (2, 2, 1, 1, 1, 0)
        log.checkpoint(1)
        seen = witness.look(tmp_path)
        assert (seen.removed, seen.unfolded, seen.all_put, seen.all_folded) == (1, 0, False, False)
