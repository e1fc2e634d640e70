"""The clock of views: it never goes back, neither while a process runs nor across restarts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from chalicelib.api import TABLE
from chalicelib.counting import keys
from chalicelib.counting.resources import Counting
from chalicelib.counting.storing import store
from chalicelib.counting.summary import read
from chalicelib.counting.view import View
from chalicelib.counting.windows import Windows
from chalicelib.http.dispatch import dispatch
from chalicelib.http.messages import Request
from chalicelib.owners import changing, claiming, finding
from chalicelib.settings import Settings
from chalicelib.ulids import new_ulid
from simulation.clocks import Clock
from simulation.standalone import standalone
from vumi.engine import VIEWS_QUEUE
from vumi.operate.backups import making
from vumi.operate.check import check
from vumi.operate.check.report import FindingKind
from vumi.storage.database import FILE, Database
from vumi.storage.queue import SqliteQueue
from vumi.storage.view_clock import ViewClock
from vumi.workers.changes import ChangeDelivery
from vumi.workers.expiry import Expiry
from vumi.workers.views import CommitBuffer, ViewWorker

NOON = 1_800_000_000.0
"""A mark of windows of 300 s."""
DAY = 86_400
SECRET = "d" * 64
"""The digest of an owner's secret."""
WINDOWS = Windows(300, 600, 3_600)


@dataclass
class Process:
    """The work of one vu-mi process with the views of a file, each step by hand."""

    database: Database
    clock: Clock

    def __post_init__(self) -> None:
        queue = SqliteQueue(self.database, VIEWS_QUEUE, self.clock)
        views_queue = CommitBuffer(queue)
        settings = Settings(retention_seconds=WINDOWS.retention)
        self.resources = standalone(self.database, views_queue, self.clock, settings)
        self._views = ViewWorker(views_queue, self.resources)
        self._expiry = Expiry(self.database, queue, self.clock, lambda: None)
        self._changes = ChangeDelivery(
            self.database, "fold_views", self._views.fold, sort=keys.WINDOW
        )

    def visit(self, *, peek: bool = False) -> int:
        """Ask for the badge; return the count that it shows."""
        query = {"id": ["a"]} | ({"peek": ["1"]} if peek else {})
        request = Request("GET", "/api/v1/views", query=query)
        answer = self.database.in_one_commit(
            lambda: self._views.commit(lambda: dispatch(TABLE, request, self.resources))
        )
        return int(json.loads(answer.body)["message"])

    def pass_time(self, seconds: float) -> None:
        """Let time pass, then do what TTL and the stream do."""
        self.clock.now += seconds
        while self._expiry.step() == 0.0:
            pass
        while self._changes.step() == 0.0:
            pass

    @property
    def watermark(self) -> int:
        return read(self.resources.table, "a").watermark

    @property
    def folded(self) -> int:
        return read(self.resources.table, "a").count


@contextmanager
def process(folder: Path, clock: Clock) -> Iterator[Process]:
    """Start a process, and end it like a kill does, without any write."""
    folder.mkdir(exist_ok=True)
    with closing(Database(folder / FILE)) as database:
        yield Process(database, clock)


def view_clock_of(database: Database, clock: Clock) -> ViewClock:
    return ViewClock(database, SqliteQueue(database, VIEWS_QUEUE, clock), clock)


def test_it_follows_the_clock_of_the_machine_but_never_goes_back(database: Database) -> None:
    clock = Clock(NOON)
    view_clock = view_clock_of(database, clock)
    assert view_clock() == NOON
    clock.now += 5
    assert view_clock() == NOON + 5
    clock.now -= DAY
    assert view_clock() == NOON + 5
    clock.now += DAY + 1
    assert view_clock() == NOON + 6


def test_the_file_keeps_the_latest_time(database: Database) -> None:
    clock = Clock(NOON)
    ahead, right = view_clock_of(database, clock), view_clock_of(database, Clock(NOON - DAY))
    ahead.keep()
    right.keep()
    assert view_clock_of(database, Clock(0.0))() == NOON


def test_it_follows_a_later_time_that_another_process_has_kept(database: Database) -> None:
    """An import raises the clock of a server that runs."""
    server = view_clock_of(database, Clock(NOON))
    view_clock_of(database, Clock(NOON)).keep(NOON + DAY)
    assert server.keep() == server() == NOON + DAY


def test_a_time_is_kept_in_the_commit_that_used_it(database: Database) -> None:
    """A commit that fails did no work, so its time need not be kept."""
    clock = view_clock_of(database, Clock(NOON))

    def fail() -> None:
        clock.keep()
        raise InterruptedError

    with pytest.raises(InterruptedError):
        database.in_one_commit(fail)
    assert view_clock_of(database, Clock(0.0))() == 0.0


def test_a_time_that_a_worker_reads_late_is_kept_by_it(database: Database) -> None:
    """The clock jumps between two readings of one commit."""
    clock = Clock(NOON)
    worker = Process(database, clock)
    view_clock = worker.resources.view_clock

    def jump(_: object, parts: Iterable[object], /) -> list[Any]:
        clock.now += DAY
        view_clock()
        return [0 for _ in parts]

    late = ViewWorker(
        CommitBuffer(SqliteQueue(database, VIEWS_QUEUE, clock)),
        replace(worker.resources, map_parallel=jump),
    )
    body = View("a", new_ulid(int(NOON * 1000)), fold=True).to_message()
    assert late.store_messages({1: body}) == []
    assert view_clock_of(database, Clock(NOON))() == clock.now


def test_a_view_that_waits_in_the_queue_is_not_later_than_the_clock(database: Database) -> None:
    """A clock that was ahead took it, and no commit has kept that time."""
    queue = SqliteQueue(database, VIEWS_QUEUE, Clock(NOON))
    for at in (NOON + DAY, NOON + 60):
        queue.send(View("a", new_ulid(int(at * 1000))).to_message())
    queue.send("malformed")
    assert ViewClock(database, queue, Clock(NOON))() == NOON + DAY


def test_a_clock_that_was_a_day_ahead_makes_folds_wait_and_loses_nothing(tmp_path: Path) -> None:
    """3 views come before, 2 while the clock is fast, and 4 after it is set right."""
    clock = Clock(NOON)
    with process(tmp_path, clock) as before:
        assert [before.visit() for _ in range(3)] == [0, 1, 2]
        before.pass_time(DAY)
        assert before.folded == 3
        assert [before.visit() for _ in range(2)] == [3, 4]
        watermark = before.watermark
    clock.now -= DAY - 60
    with process(tmp_path, clock) as after:
        assert [after.visit() for _ in range(4)] == [5, 6, 7, 8]
        items = after.resources.table.query("USER#a", first="VIEW#", last="VIEWS", limit=99)
        taken = [View("a", str(item["SK"])[5:]).milliseconds for item in items[:-1]]
        assert sum(at > watermark for at in taken) == 6
        after.pass_time(3_600)
        assert (after.folded, after.watermark) == (3, watermark)
        assert after.visit(peek=True) == 9
        after.pass_time(DAY)
        assert after.folded == 9
        assert after.visit(peek=True) == 9


def test_a_view_without_a_read_is_not_put_before_a_watermark_after_a_restart(
    tmp_path: Path,
) -> None:
    """The table can't be read, so its time is the clock's alone."""
    clock = Clock(NOON)
    with process(tmp_path, clock) as ahead:
        ahead.visit()
        ahead.pass_time(DAY)
        watermark = ahead.watermark
        assert ahead.folded == 1
    clock.now -= DAY
    with process(tmp_path, clock) as right:
        view = View("a", new_ulid(int(right.resources.view_clock() * 1000)))
        counting = Counting(right.resources.table, WINDOWS, right.resources.view_clock)
        assert store(counting, [view]) == {}
        assert view.milliseconds > watermark
        assert right.visit(peek=True) == 2


def test_a_file_is_correct_if_the_owner_resets_after_the_clock_is_set_back(
    tmp_path: Path,
) -> None:
    """3 views while it was a day ahead, 2 after the reset: the check and the backup agree."""
    clock = Clock(NOON + DAY)
    with process(tmp_path / "data", clock) as ahead:
        claiming.claim(ahead.resources.table, "a", 0, ahead.resources.view_clock(), SECRET)
        for _ in range(3):
            ahead.visit()
        ahead.pass_time(3_600)
        assert ahead.folded == 3
    clock.now -= DAY
    with process(tmp_path / "data", clock) as right:
        reset = changing.BadgeChange(reset=True)
        owned = finding.OwnedBadge("a", SECRET, ("a",))
        changing.change(right.resources.table, owned, reset, right.resources.view_clock())
        assert [right.visit() for _ in range(2)] == [0, 1]
        making.make(tmp_path / "data", tmp_path / "one")
        right.pass_time(DAY + 2 * 3_600)
        assert right.folded == right.visit(peek=True) == 2
    findings = check.check_content(tmp_path / "data")
    assert [str(one) for one in findings if one.kind is FindingKind.WRONG] == []
    making.make(tmp_path / "data", tmp_path / "two")
