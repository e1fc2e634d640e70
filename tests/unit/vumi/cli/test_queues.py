"""The commands of queues: a fold or a redrive that fails delays no other, and repeating is safe."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws

from chalicelib.aws.clients import aws_client
from chalicelib.aws.dynamodb import DynamoTable
from chalicelib.counting import keys
from chalicelib.counting.folding import BadgeFold
from chalicelib.counting.summary import read
from chalicelib.counting.windows import Counting, Windows
from chalicelib.events import schedule
from chalicelib.events.delivery import EventDelivery
from chalicelib.events.event import LEASE_SECONDS, DeliveryResult, Event, Leases, Status, message
from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.items import Item
from chalicelib.storage.ports import Table
from chalicelib.units import to_milliseconds
from simulation.aws_table import create_table
from simulation.clocks import NOON, FakeTime
from simulation.scheduled_events import AT, an_event, deliver
from simulation.storage import FakeQueue, FaultyTable, MemoryTable, raising
from simulation.views import shown, store, summary, view
from tests.unit.vumi.commands import Vumi
from vumi.cli.options import Invocation
from vumi.cli.queues import FoldedBadge, Redriven, RedriveOutcome, fold_badges, redrive_each, report
from vumi.errors import ReportedError
from vumi.operate.installations.file import FileInstallation
from vumi.operate.installations.stack import CLOCK_MARGIN_SECONDS, counting_behind, viewed_ids
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


def fold(table: Table, badge_ids: Iterable[str] = BADGES) -> Iterator[FoldedBadge]:
    patience = FakeTime().retry(attempts=2)
    return fold_badges(Counting(table, Windows(), lambda: LATER), map, badge_ids, patience)


def test_every_badge_is_folded_and_nothing_is_left_for_a_second_run(table: SqliteTable) -> None:
    take(table, *BADGES)
    assert list(fold(table)) == [FoldedBadge(badge_id, 2) for badge_id in BADGES]
    assert {read(table, badge_id).count for badge_id in BADGES} == {2}
    assert {shown(table, badge_id) for badge_id in BADGES} == {2}
    assert list(fold(table)) == [FoldedBadge(badge_id) for badge_id in BADGES]


def test_a_badge_that_fails_delays_no_other_and_is_named(
    table: SqliteTable, capsys: pytest.CaptureFixture[str]
) -> None:
    take(table, "a", "b", "c")
    broken: Item = {"PK": "USER#b", "SK": keys.SUMMARY, "count": "two"}
    table.put_all([broken])
    with pytest.raises(ReportedError, match="1 badge not folded"):
        report(fold(table, ["a", "b", "c"]))
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
    table: SqliteTable, failures: list[BaseException], reason: str
) -> None:
    """The first 100 are folded, and the next run folds the others. So it is after Ctrl-C."""
    take(table, *BADGES)
    once = UnavailableError("throttled")
    faulty = FaultyTable(table, before_write=raising(once, *[None] * 100, *failures))
    stopped = f"folding badges stopped after 100: {reason}; run it again for the rest"
    with pytest.raises(ReportedError, match=stopped):
        report(fold(faulty))
    assert sum(folded.views for folded in fold(table)) == 2 * 150


# ---- on AWS


def test_on_aws_the_badges_are_those_that_have_views() -> None:
    with mock_aws(), closing(aws_client("dynamodb")) as client:
        create_table(client, "vu-mi")
        table = DynamoTable(client, "vu-mi")
        take(table, "a", "ü/#VIEW", "c", views=40)
        table.put_all([{"PK": "USER#none", "SK": keys.SUMMARY}, {"PK": "WALLET#a", "SK": "WALLET"}])
        found = list(viewed_ids(client, "vu-mi"))
    assert sorted(found) == ["a", "c", "ü/#VIEW"]


def test_on_aws_a_badge_with_views_on_two_pages_is_returned_once() -> None:
    pages = [["USER#a", "USER#b"], [], ["USER#b", "USER#b", "USER#c"]]

    class Client:
        def get_paginator(self, operation: str) -> Client:
            assert operation == "scan"
            return self

        def paginate(self, **_: object) -> list[dict[str, Any]]:
            return [{"Items": [{"PK": {"S": pk}} for pk in page]} for page in pages]

    client: Any = Client()
    assert list(viewed_ids(client, "vu-mi")) == ["a", "b", "c"]


def test_on_aws_a_clock_that_is_an_hour_ahead_folds_no_young_view(table: SqliteTable) -> None:
    """Otherwise a young view could be put before the watermark."""
    ahead = NOON + CLOCK_MARGIN_SECONDS
    take(table, "young")
    take(table, "old", taken=NOON - 1_200)
    own = counting_behind(table, Windows(), lambda: ahead)
    assert [BadgeFold(own, badge_id).fold_all() for badge_id in ("young", "old")] == [0, 2]
    assert read(table, "young").watermark < NOON * 1000


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


GONE = DeliveryResult(code=410, error="answered 410", is_final=True)
REDRIVEN_AT = AT + 60_000


def accept(table: Table, name: str) -> Event:
    return schedule.accept(an_event(name), table, FakeQueue(), AT).event


def give_up(table: Table, *names: str) -> None:
    """Events whose receivers answered 410."""
    delivery = EventDelivery(table, FakeQueue(), lambda _: GONE, Leases(), lambda: AT / 1000, ())
    for name in names:
        accept(table, name)
        claimed = delivery.claim(name)
        assert claimed is not None
        deliver(delivery, claimed)


def redrive(
    table: Table, queue: FakeQueue | None = None, names: Sequence[str] = ()
) -> list[Redriven]:
    return list(redrive_each(table, queue or FakeQueue(), lambda: REDRIVEN_AT / 1000, names))


def test_all_failed_events_are_queued_again_and_no_others(table: Table) -> None:
    names = {f"lost-{number}" for number in range(20)}
    give_up(table, *names)
    accept(table, "waiting")
    accept(table, "cancelled")
    schedule.cancel(table, Leases(), "cancelled", AT)
    queue = FakeQueue()
    done = redrive(table, queue)
    assert {one.event_id for one in done} == names
    assert {(one.outcome, one.error) for one in done} == {(RedriveOutcome.REDRIVEN, "answered 410")}
    assert sorted(queue.bodies) == sorted(map(message, names))
    redriven = [schedule.read(table, name) for name in names]
    assert {(one.status, one.next_at) for one in redriven} == {(Status.ACTIVE, REDRIVEN_AT)}
    assert schedule.read(table, "waiting").next_at == AT
    assert schedule.read(table, "cancelled").status is Status.CANCELLED
    assert redrive(table) == []


def wear_out(table: Table, name: str, deliveries: list[DeliveryResult]) -> None:
    """Attempt an event twice; a worker without a result dies. Then the event has failed."""
    now = [AT]
    clock, leases = lambda: now[0] / 1000, Leases()
    delivery = EventDelivery(table, FakeQueue(), lambda _: deliveries.pop(), leases, clock, (1.0,))
    accept(table, name)
    for _ in range(2):
        claimed = delivery.claim(name)
        assert claimed is not None
        if deliveries:
            deliver(delivery, claimed)
        now[0] += LEASE_SECONDS * 1000
    assert delivery.claim(name) is None


def test_the_last_error_is_that_of_the_last_known_attempt(table: Table) -> None:
    wear_out(table, "told", [DeliveryResult(error="answered 500")])
    wear_out(table, "silent", [])
    assert redrive(table, names=["told", "silent"]) == [
        Redriven("told", RedriveOutcome.REDRIVEN, "answered 500"),
        Redriven("silent", RedriveOutcome.REDRIVEN, ""),
    ]


def test_only_named_failed_events_are_redriven_and_nothing_is_written_for_others(
    table: Table,
) -> None:
    give_up(table, "a", "b")
    accept(table, "waiting")
    watched = FaultyTable(table)
    assert redrive(watched, names=["waiting", "nobody", "b"]) == [
        Redriven("waiting", RedriveOutcome.NOT_FAILED),
        Redriven("nobody", RedriveOutcome.UNKNOWN),
        Redriven("b", RedriveOutcome.REDRIVEN, "answered 410"),
    ]
    assert {write.key.pk for writes in watched.written for write in writes} == {"TIMER#b"}
    assert schedule.read(table, "a").status is Status.ERROR


def test_two_concurrent_redrives_queue_an_event_once(table: Table) -> None:
    give_up(table, "a")
    queue = FakeQueue()

    def other(_: object) -> None:
        redrive(table, queue, ["a"])

    faulty = FaultyTable(table, before_write=other)
    assert redrive(faulty, queue, ["a"]) == [Redriven("a", RedriveOutcome.NOT_FAILED)]
    assert queue.bodies == [message("a")]


def test_a_redrive_that_failed_is_continued_by_the_next(table: Table) -> None:
    give_up(table, "a", "b", "c")
    faulty = FaultyTable(table, before_write=raising(None, UnavailableError("throttled")))
    begun = redrive_each(faulty, FakeQueue(), lambda: REDRIVEN_AT / 1000)
    first = next(begun)
    with pytest.raises(UnavailableError):
        next(begun)
    rest = {one.event_id for one in redrive(table)}
    assert rest == {"a", "b", "c"} - {first.event_id}


def test_the_report_has_every_event_and_its_last_error(vumi: Vumi) -> None:
    give_up(vumi.table, "a")
    assert [vumi("redrive-events", "a", "nobody"), vumi.err] == [0, ""]
    assert vumi.out == (
        "a queued again; its last error: answered 410\nnobody unknown\n"
        "1 event queued again\n1 event unknown\n"
    )
    assert vumi("redrive-events") == 0
    assert vumi.out == "0 events queued again\n"
