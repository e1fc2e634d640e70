"""The probe: the time by which a view was certainly put, and the views left to fold."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from chalicelib.counting import keys
from chalicelib.counting.view import marker_item
from chalicelib.ulids import new_ulid
from chaos.checker import db_probe
from chaos.checker.db_probe import Look, annotated
from chaos.checker.history import Kind, Operation, Outcome
from vumi.engine import VIEWS_QUEUE
from vumi.storage.database import FILE, Database
from vumi.storage.queue import DEAD_LETTERS, SqliteQueue
from vumi.storage.table import SqliteTable

NONE = 9e18


def looked(at: float, sent: int, waiting: float = NONE) -> Look:
    return Look(at, at + 0.1, sent, waiting)


def hit(completed: float) -> Operation:
    return Operation("a", Kind.HIT, completed - 0.5, completed, Outcome.ACKNOWLEDGED, 0)


def put_by(completed: float, *looks: Look) -> float | None:
    [operation] = annotated([hit(completed)], looks)
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
    refused = Operation("a", Kind.HIT, 1, 1.5, Outcome.REFUSED)
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
