"""The commands of queues: a fold or a redrive that fails delays no other, and repeating is safe."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from moto import mock_aws

from chalicelib.aws.clients import aws_client
from chalicelib.counting import keys
from chalicelib.counting.folding import BadgeFold
from chalicelib.counting.summary import read
from chalicelib.counting.view import Counting, Windows
from chalicelib.events import schedule
from chalicelib.events.event import Event, Leases, Status, message
from chalicelib.settings import Settings
from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.items import Item, Value
from chalicelib.storage.ports import Table
from chalicelib.units import to_milliseconds
from simulation.aws_table import create_table
from simulation.clocks import NOON, FakeTime
from simulation.installation import MemoryInstallation, invoke_on
from simulation.scheduled_events import AT, an_event
from simulation.storage import FakeQueue, FaultyTable, MemoryTable, raising
from simulation.views import shown, store, summary, view
from tests.unit.vumi.commands import Vumi
from vumi.cli.options import Invocation
from vumi.cli.program import execute
from vumi.cli.queues import fold_badges
from vumi.errors import ReportedError
from vumi.operate.installations.file import FileInstallation
from vumi.operate.installations.stack import CLOCK_MARGIN_SECONDS, StackInstallation
from vumi.settings import StandaloneSettings
from vumi.storage.database import FILE, Database
from vumi.storage.table import SqliteTable

BADGES = [f"b{number:03}" for number in range(250)]
LATER = NOON + 3 * 86_400


@pytest.fixture
def table() -> Table:
    return MemoryTable()


def take(table: Table, *badge_ids: str, taken: float = NOON, views: int = 2) -> None:
    stored = [
        view(to_milliseconds(taken), number, badge_id)
        for badge_id in badge_ids
        for number in range(views)
    ]
    assert store(table, *stored, now=taken) == {}


def fold(table: Table, badge_ids: Iterable[str] = BADGES) -> None:
    patience = FakeTime().retry(attempts=2)
    fold_badges(Counting(table, Windows(), lambda: LATER), map, badge_ids, patience)


def test_every_badge_is_folded_and_nothing_is_left_for_a_second_run(
    table: SqliteTable, capsys: pytest.CaptureFixture[str]
) -> None:
    take(table, *BADGES)
    fold(table)
    assert {read(table, badge_id).count for badge_id in BADGES} == {2}
    assert {shown(table, badge_id) for badge_id in BADGES} == {2}
    fold(table)
    assert capsys.readouterr().out.splitlines() == [
        "folded 500 views of 250 badges",
        "folded 0 views of 250 badges",
    ]


def test_a_badge_that_fails_delays_no_other_and_is_named(
    table: SqliteTable, capsys: pytest.CaptureFixture[str]
) -> None:
    take(table, "a", "b", "c")
    broken: Item = {"PK": "USER#b", "SK": keys.SUMMARY, "count": "two"}
    table.put_all([broken])
    with pytest.raises(ReportedError, match="1 badge not folded"):
        fold(table, ["a", "b", "c"])
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith("b is not folded: TypeError(")
    assert told[1:] == ["folded 4 views of 3 badges"]
    assert (read(table, "a").count, read(table, "c").count) == (2, 2)


@pytest.mark.parametrize(
    ("failures", "reason"),
    [
        ([UnavailableError("throttled")] * 9, "throttled"),
        ([KeyboardInterrupt()], "it was interrupted"),
    ],
)
def test_a_storage_that_throttles_is_retried_and_then_ends_the_run_with_the_fix(
    table: SqliteTable,
    failures: list[BaseException],
    reason: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The first 100 are folded, and the next run folds the others. So it is after Ctrl-C."""
    take(table, *BADGES)
    once = UnavailableError("throttled")
    faulty = FaultyTable(table, before_write=raising(once, *[None] * 100, *failures))
    stopped = f"folding badges stopped after 100: {reason}; run it again for the rest"
    with pytest.raises(ReportedError, match=stopped):
        fold(faulty)
    fold(table)
    assert capsys.readouterr().out == "folded 300 views of 250 badges\n"


# ---- on AWS


@pytest.fixture
def stack() -> Iterator[StackInstallation]:
    """Return a stack, whose operator's clock is ahead."""
    with mock_aws(), closing(aws_client("dynamodb")) as client:
        create_table(client, "vu-mi")
        ahead = NOON + CLOCK_MARGIN_SECONDS
        yield StackInstallation("vu-mi", {"TableName": "vu-mi"}, Settings(), lambda: ahead)


def test_on_aws_the_badges_are_those_that_have_views(stack: StackInstallation) -> None:
    take(stack.table, "a", "ü/#VIEW", "c", views=40)
    others: list[Item] = [{"PK": "USER#none", "SK": keys.SUMMARY}, {"PK": "WALLET#a", "SK": "X"}]
    stack.table.put_all(others)
    assert sorted(stack.viewed_ids()) == ["a", "c", "ü/#VIEW"]


def test_on_aws_a_clock_that_is_an_hour_ahead_folds_no_young_view(
    stack: StackInstallation,
) -> None:
    """Otherwise a young view could be put before the watermark."""
    take(stack.table, "young")
    take(stack.table, "old", taken=NOON - 1_200)
    folds = [BadgeFold(stack.counting, badge_id).fold_all() for badge_id in ("young", "old")]
    assert folds == [0, 2]
    assert read(stack.table, "young").watermark < NOON * 1000


# ---- on one machine


def test_on_one_machine_the_badges_are_those_that_have_views_however_many_they_are(
    tmp_path: Path,
) -> None:
    with closing(Database(tmp_path / FILE)) as database:
        table = SqliteTable(database)
        take(table, *BADGES[:50])
        table.put_all([{"PK": "USER#none", "SK": keys.SUMMARY}, {"PK": "WALLET#a", "SK": "WALLET"}])
        found = FileInstallation(database, StandaloneSettings.from_environment({}), time.time)
        assert list(found.viewed_ids(limit=7)) == BADGES[:50]


def test_on_one_machine_the_command_folds_all_and_keeps_its_time_in_the_file(
    vumi: Vumi, tmp_path: Path
) -> None:
    """After the clock is set back, views are still later than the watermark."""
    vumi.invocation = Invocation({"DATA": str(tmp_path)}, time.time)
    assert vumi("fold", "--all") == 1
    assert f"{tmp_path / FILE} does not exist" in vumi.err
    with closing(Database(tmp_path / FILE)) as database:
        table = SqliteTable(database)
        take(table, "a", "b")
        assert vumi("fold", "--all") == 0
        assert vumi.out == "folded 4 views of 2 badges\n"
        [(highest,)] = database.read("SELECT highest FROM clock")
        assert summary(table, "a")["count"] == 2
        assert highest * 1000 > read(table, "a").watermark


REDRIVEN_AT = AT + 60_000


def accept(table: Table, name: str) -> Event:
    return schedule.accept(an_event(name), table, FakeQueue(), AT)[0]


def fail(table: Table, *names: str, errors: Sequence[str] = ("answered 410",)) -> None:
    """Put events that have failed; an attempt whose worker died has no error."""
    attempts: list[Value] = [{"started": AT, "error": error} for error in errors]
    for name in names:
        event = an_event(name)
        failed = event.new_item() | event.end(Status.ERROR, AT)
        table.put_all([failed | {"attempts": attempts, "tries": len(attempts)}])


def redrive(vumi: Vumi, *names: str) -> list[tuple[str, str, str]]:
    """Return the events of a redrive, each with its outcome and its last error."""
    vumi.clock.now = REDRIVEN_AT / 1000
    found = vumi.json("redrive-events", *names)
    return [(one["id"], one["outcome"], one["error"]) for one in found]


def queued(vumi: Vumi) -> list[str]:
    assert isinstance(vumi.installation.delivery_queue, FakeQueue)
    return vumi.installation.delivery_queue.bodies


def test_all_failed_events_are_queued_again_and_no_others(vumi: Vumi) -> None:
    table, names = vumi.memory, {f"lost-{number}" for number in range(20)}
    fail(table, *names)
    accept(table, "waiting")
    accept(table, "cancelled")
    schedule.cancel(table, Leases(), "cancelled", AT)
    assert sorted(redrive(vumi)) == [(name, "redriven", "answered 410") for name in sorted(names)]
    assert sorted(queued(vumi)) == sorted(map(message, names))
    redriven = [schedule.read(table, name) for name in names]
    assert {(one.status, one.next_at) for one in redriven} == {(Status.ACTIVE, REDRIVEN_AT)}
    assert schedule.read(table, "waiting").next_at == AT
    assert schedule.read(table, "cancelled").status is Status.CANCELLED
    assert redrive(vumi) == []


def test_the_last_error_is_that_of_the_last_known_attempt(vumi: Vumi) -> None:
    fail(vumi.memory, "told", errors=("answered 410", "answered 500", ""))
    fail(vumi.memory, "silent", errors=("", ""))
    assert redrive(vumi, "told", "silent") == [
        ("told", "redriven", "answered 500"),
        ("silent", "redriven", ""),
    ]


def test_only_named_failed_events_are_redriven_and_nothing_is_written_for_others(
    vumi: Vumi,
) -> None:
    fail(vumi.memory, "a", "b")
    accept(vumi.memory, "waiting")
    vumi.installation.faulty = watched = FaultyTable(vumi.memory)
    assert redrive(vumi, "waiting", "nobody", "b") == [
        ("waiting", "not_failed", ""),
        ("nobody", "unknown", ""),
        ("b", "redriven", "answered 410"),
    ]
    assert {write.key.pk for writes in watched.written for write in writes} == {"TIMER#b"}
    assert schedule.read(vumi.memory, "a").status is Status.ERROR


def test_two_concurrent_redrives_queue_an_event_once(vumi: Vumi) -> None:
    fail(vumi.memory, "a")
    others = MemoryInstallation(vumi.memory, delivery_queue=vumi.installation.delivery_queue)

    def other(_: object) -> None:
        assert execute(["redrive-events", "a"], invoke_on(others)) == 0

    vumi.installation.faulty = FaultyTable(vumi.memory, before_write=other)
    assert vumi("redrive-events", "a") == 0
    assert vumi.out.count("a skipped, because it has not failed\n") == 1
    assert queued(vumi) == [message("a")]


def test_a_redrive_that_failed_is_continued_by_the_next(vumi: Vumi) -> None:
    fail(vumi.memory, "a", "b", "c")
    failure = raising(None, UnavailableError("throttled"))
    vumi.installation.faulty = FaultyTable(vumi.memory, before_write=failure)
    [(first, *_)] = redrive(vumi)
    assert vumi.err == "Error: throttled\n"
    vumi.installation.faulty = None
    assert {first} | {name for name, *_ in redrive(vumi)} == {"a", "b", "c"}


def test_the_report_has_every_event_and_its_last_error(vumi: Vumi) -> None:
    fail(vumi.table, "a")
    assert [vumi("redrive-events", "a", "nobody"), vumi.err] == [0, ""]
    assert vumi.out == (
        "a queued again; its last error: answered 410\nnobody unknown\n"
        "1 event queued again\n1 event unknown\n"
    )
    assert vumi("redrive-events") == 0
    assert vumi.out == "0 events queued again\n"
