"""A redrive delivers failed events again and changes no other event."""

from __future__ import annotations

import pytest

from chalicelib.events import schedule
from chalicelib.events.delivery import EventDelivery
from chalicelib.events.event import LEASE_SECONDS, DeliveryResult, Event, Leases, Status, message
from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.ports import Table
from simulation.memory_table import MemoryTable
from simulation.queues import FakeQueue
from simulation.scheduled_events import AT, an_event, deliver
from simulation.tables import FaultyTable, raising
from vumi.cli import redrive as redrive_command
from vumi.cli.redrive import Redrive, Redriven, RedriveOutcome

GONE = DeliveryResult(code=410, error="answered 410", is_final=True)
LATER = AT + 60_000


@pytest.fixture
def table() -> Table:
    return MemoryTable()


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


def redrive(table: Table, queue: FakeQueue | None = None) -> Redrive:
    return Redrive(table, queue or FakeQueue(), lambda: LATER / 1000)


def test_all_failed_events_are_queued_again_and_no_others(table: Table) -> None:
    names = {f"lost-{number}" for number in range(20)}
    give_up(table, *names)
    accept(table, "waiting")
    accept(table, "cancelled")
    schedule.cancel(table, Leases(), "cancelled", AT)
    queue = FakeQueue()
    done = list(redrive(table, queue).run())
    assert {one.event_id for one in done} == names
    assert {(one.outcome, one.error) for one in done} == {(RedriveOutcome.REDRIVEN, "answered 410")}
    assert sorted(queue.bodies) == sorted(map(message, names))
    redriven = [schedule.read(table, name) for name in names]
    assert {(one.status, one.next_at) for one in redriven} == {(Status.ACTIVE, LATER)}
    assert schedule.read(table, "waiting").next_at == AT
    assert schedule.read(table, "cancelled").status is Status.CANCELLED
    assert list(redrive(table).run()) == []


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
    assert list(redrive(table).run(["told", "silent"])) == [
        Redriven("told", RedriveOutcome.REDRIVEN, "answered 500"),
        Redriven("silent", RedriveOutcome.REDRIVEN, ""),
    ]


def test_only_named_failed_events_are_redriven_and_nothing_is_written_for_others(
    table: Table,
) -> None:
    give_up(table, "a", "b")
    accept(table, "waiting")
    watched = FaultyTable(table)
    assert list(redrive(watched).run(["waiting", "nobody", "b"])) == [
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
        list(redrive(table, queue).run(["a"]))

    faulty = FaultyTable(table, before_write=other)
    assert list(redrive(faulty, queue).run(["a"])) == [Redriven("a", RedriveOutcome.NOT_FAILED)]
    assert queue.bodies == [message("a")]


def test_a_redrive_that_failed_is_continued_by_the_next(table: Table) -> None:
    give_up(table, "a", "b", "c")
    faulty = FaultyTable(table, before_write=raising(None, UnavailableError("throttled")))
    begun = redrive(faulty).run()
    first = next(begun)
    with pytest.raises(UnavailableError):
        next(begun)
    rest = {one.event_id for one in redrive(table).run()}
    assert rest == {"a", "b", "c"} - {first.event_id}


def test_the_report_has_every_event_and_its_last_error(
    table: Table, capsys: pytest.CaptureFixture[str]
) -> None:
    give_up(table, "a")
    redrive_command.run(redrive(table), ["a", "nobody"])
    redrive_command.run(redrive(table), [])
    assert capsys.readouterr().out == (
        "a queued again; its last error: answered 410\n"
        "nobody unknown\n"
        "1 event queued again\n"
        "1 event unknown\n"
        "0 events queued again\n"
    )
