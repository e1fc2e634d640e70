"""The sweep: it enqueues each event that is due soon once, and finds overdue ones."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from chalicelib.events import schedule
from chalicelib.events.event import (
    PARTITION,
    SHARDS,
    Leases,
    Status,
    batch,
    batches,
    event_id_in,
    message,
)
from chalicelib.events.schedule import DIRECT_SECONDS
from chalicelib.events.sweep import (
    AHEAD_SECONDS,
    CURSOR,
    GROUP,
    OVERDUE_SECONDS,
    PAGE,
    RESCUE_SECONDS,
    SKEW_SECONDS,
    distribute,
    group_in,
    sweep,
)
from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.items import Due
from chalicelib.storage.messages import MalformedError
from chalicelib.storage.ports import MAX_DELAY_SECONDS, Message, Table
from chalicelib.storage.writes import Update, Write
from simulation.logs import logged_events
from simulation.scheduled_events import AT, an_event
from simulation.storage import FakeQueue, FaultyTable, once

MINUTE = 60_000
AHEAD = AHEAD_SECONDS * 1000


def accept(table: Table, *times: int, name: str = "e") -> None:
    for number, at in enumerate(times):
        schedule.accept(an_event(f"{name}{number}", at), table, FakeQueue(), AT)


def sent(queue: FakeQueue) -> dict[str, int]:
    """Return the events that the sweep sent, with their times."""
    found = [event for body in queue.bodies for event in json.loads(body)["events"]]
    events = dict(found)
    assert len(events) == len(found), "none twice"
    return events


def swept(table: Table, now: int) -> dict[str, int]:
    queue = FakeQueue()
    sweep(table, queue, now)
    return sent(queue)


def test_a_sweep_continues_from_the_cursor(table: Table) -> None:
    accept(table, AT + AHEAD, AT + AHEAD + 1, AT + AHEAD + MINUTE, AT + AHEAD + MINUTE + 1)
    assert set(swept(table, AT)) == {"e0"}
    assert set(swept(table, AT + MINUTE)) == {"e1", "e2"}
    assert set(swept(table, AT + MINUTE)) == set()


def test_a_missed_event_is_found_when_it_is_overdue_and_then_waits(table: Table) -> None:
    """It entered the index behind the cursor."""
    swept(table, AT)
    accept(table, AT + MINUTE)
    overdue = AT + MINUTE + OVERDUE_SECONDS * 1000
    assert swept(table, overdue - 1) == {}
    assert swept(table, overdue) == {"e0": AT + MINUTE}
    assert swept(table, overdue + RESCUE_SECONDS * 1000 - 1) == {}
    later = overdue + (RESCUE_SECONDS + OVERDUE_SECONDS) * 1000
    assert set(swept(table, later)) == {"e0"}


def test_an_event_that_changes_while_it_is_rescued_delays_no_other(table: Table) -> None:
    """Of twenty events, some share a shard with the first and come after it."""
    swept(table, AT)
    accept(table, *[AT] * 20)

    def cancel(writes: Sequence[Write]) -> None:
        schedule.cancel(table, Leases(), writes[0].key.pk.removeprefix(PARTITION), AT)

    def before(writes: Sequence[Write]) -> None:
        if writes[0].key != CURSOR and left:
            left.pop()(writes)

    left = [cancel]
    sweep(FaultyTable(table, before_write=before), FakeQueue(), AT + 2 * MINUTE)
    assert indexed(table, Status.CANCELLED) == [AT]
    assert indexed(table, Status.ACTIVE) == [AT + 2 * MINUTE + RESCUE_SECONDS * 1000] * 19


def indexed(table: Table, status: Status) -> list[int]:
    return [due.due for one in batches(status) for due in table.query_due(one, limit=99)]


class RefusingQueue(FakeQueue):
    """A queue that takes some messages and refuses all others."""

    def __init__(self, takes: int) -> None:
        super().__init__()
        self._takes = takes

    def send_all(self, messages: Sequence[Message]) -> None:
        if len(self.bodies) == self._takes:
            raise UnavailableError("throttled")
        super().send_all(messages)


@pytest.mark.parametrize("takes", [0, 1])
def test_an_overdue_event_that_the_queue_refused_is_found_by_the_next_sweep(
    table: Table, takes: int
) -> None:
    """An event that the queue took is not sent again so soon."""
    swept(table, AT)
    accept(table, *[AT] * 20)
    queue = RefusingQueue(takes)
    with pytest.raises(UnavailableError):
        sweep(table, queue, AT + 2 * MINUTE)
    names = {f"e{number}" for number in range(20)}
    assert swept(table, AT + 3 * MINUTE).keys() == names - set(sent(queue))


LEADS = [SKEW_SECONDS * 1000 + 1, 2 * MINUTE, 60 * MINUTE, 10**12]
"""Errors of a clock that was ahead, from the smallest that the next sweep notices."""


@pytest.mark.parametrize("lead", LEADS)
def test_a_cursor_from_a_clock_that_was_ahead_makes_no_event_late(table: Table, lead: int) -> None:
    """Events that are accepted later are sent before their time, each once."""
    swept(table, AT + lead)
    accept(table, AT - MINUTE, AT + 1, AT + AHEAD, AT + AHEAD + 1, AT + AHEAD + MINUTE)
    assert set(swept(table, AT)) == {"e0", "e1", "e2"}
    assert set(swept(table, AT + MINUTE)) == {"e3", "e4"}
    assert set(swept(table, AT + MINUTE)) == set()


def test_a_cursor_that_is_slightly_ahead_stays(table: Table) -> None:
    """Events accepted since the last sweep with times before the cursor went to the queue."""
    swept(table, AT + SKEW_SECONDS * 1000)
    watched = FaultyTable(table)
    accept(table, AT + AHEAD)
    assert swept(watched, AT) == {}
    assert watched.written == []
    assert SKEW_SECONDS + 60 + AHEAD_SECONDS <= DIRECT_SECONDS


def test_setting_the_cursor_back_is_logged(table: Table, caplog: pytest.LogCaptureFixture) -> None:
    """The time is in whole seconds."""
    swept(table, AT + 60 * MINUTE + 500)
    swept(table, AT)
    assert logged_events(caplog) == [(logging.WARNING, "sweep_cursor_ahead", {"seconds": 3600})]


def test_setting_the_cursor_back_changes_no_event_that_no_rescue_has_moved(table: Table) -> None:
    accept(table, AT + 10 * MINUTE, AT + 20 * MINUTE)
    swept(table, AT + 30 * MINUTE)
    watched = FaultyTable(table)
    sweep(watched, FakeQueue(), AT)
    assert {write.key for writes in watched.written for write in writes} == {CURSOR}


def test_a_cursor_that_another_sweep_moves_meanwhile_is_not_set_back(table: Table) -> None:
    swept(table, AT + 60 * MINUTE)
    later = once(lambda: swept(table, AT + 61 * MINUTE))
    sweep(FaultyTable(table, before_write=later), FakeQueue(), AT)
    assert (table.get(CURSOR) or {})["swept"] == AT + 61 * MINUTE + AHEAD


@pytest.mark.parametrize("ahead", [-2, 1, 5, 6, 30])
def test_an_event_that_a_clock_ahead_took_for_overdue_is_found_in_time(
    table: Table, ahead: int
) -> None:
    """The second sweep with that clock sent it again, and moved it to five minutes later."""
    accept(table, AT + ahead * MINUTE)
    swept(table, AT + 59 * MINUTE)
    swept(table, AT + 60 * MINUTE)
    found = [minute for minute in range(31) if swept(table, AT + minute * MINUTE)]
    assert found[0] == max(0, ahead - 5)


def test_a_sweep_counts_its_events_and_warns_only_of_overdue_ones(
    table: Table, caplog: pytest.LogCaptureFixture, counted: dict[str, int]
) -> None:
    accept(table, AT)
    with caplog.at_level(logging.WARNING, "vu-mi"):
        swept(table, AT)
        assert caplog.messages == []
        assert counted == {"events_swept": 1, "events_overdue": 0}
        swept(table, AT + MINUTE)
    assert counted == {"events_swept": 1, "events_overdue": 1}
    [warning] = caplog.records
    assert warning.message == "overdue_events_sent"
    assert (warning.levelname, vars(warning)["fields"]["events"]) == ("WARNING", 1)


def test_events_are_sent_in_groups_from_all_pages_of_the_shards(table: Table) -> None:
    accept(table, *range(AT, AT + SHARDS * PAGE + 850))
    queue = FakeQueue()
    assert sweep(table, queue, AT) == (SHARDS * PAGE + 850, 0)
    assert len(sent(queue)) == SHARDS * PAGE + 850
    assert max(len(json.loads(body)["events"]) for body in queue.bodies) == GROUP


def test_the_cursor_moves_up_to_now_then_by_two_minutes_up_to_the_horizon(table: Table) -> None:
    watched = FaultyTable(table)
    sweep(watched, FakeQueue(), AT)
    moved = [write.values["swept"] for (write,) in watched.written if isinstance(write, Update)]
    assert moved == [AT, AT + 2 * MINUTE, AT + 4 * MINUTE, AT + 5 * MINUTE]


class Stale(FaultyTable):
    """An index of one page that shows an event at its old place."""

    def query_due(self, batch: str, **how: Any) -> list[Due]:
        found = [] if how.get("after") else self.table.query_due(batch, **how)
        return [Due(one.due - 1, one.key) for one in found]


def test_an_index_that_lags_moves_no_event_again(table: Table) -> None:
    swept(table, AT)
    accept(table, AT)
    sweep(Stale(table), FakeQueue(), AT + 2 * MINUTE)
    [due] = table.query_due(batch(Status.ACTIVE, "e0"), limit=9)
    assert due.due == AT


def test_events_sent_by_a_fast_clock_wait_as_long_as_the_queue_can() -> None:
    queue = FakeQueue()
    assert distribute([(("a", AT + 60 * MINUTE), ("b", AT))], queue, AT) == []
    assert queue.bodies == [message("a") + f" after {MAX_DELAY_SECONDS} s", message("b")]


def test_a_group_that_the_queue_refuses_is_delivered_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    refused, taken = (("a", AT),), (("b", AT), ("c", AT))
    queue = RefusingQueue(takes=0)
    assert distribute([refused], queue, AT) == [refused]
    logged = (logging.WARNING, "events_not_distributed", {"reason": "throttled"})
    assert logged_events(caplog) == [logged]
    full = RefusingQueue(takes=2)
    assert distribute([taken, refused], full, AT) == [refused]


EVENTS = '{"events": %s}'
BROKEN = (None, "", "[]", "{}", "[" * 100_000)


@pytest.mark.parametrize(
    ("parse", "body"),
    [
        *((group_in, body) for body in BROKEN),
        *((event_id_in, body) for body in (*BROKEN, '{"event": ""}', '{"event": 1}')),
        *((group_in, EVENTS % one) for one in (1, '[["a"]]', '[["a", "1"]]', '[["a", 1.5]]')),
        *((group_in, EVENTS % one) for one in ('[["a", true]]', '[["", 1]]', "[[1, 1]]", '["ab"]')),
    ],
)
def test_a_malformed_message_is_refused_completely(
    parse: Callable[[object], object], body: object
) -> None:
    with pytest.raises(MalformedError, match="expected"):
        parse(body)


def test_a_sweep_usually_queries_each_shard_once(table: Table) -> None:
    asked = []

    class Asked(FaultyTable):
        def query_due(self, batch: str, **how: Any) -> list[Due]:
            asked.append((how["first"], how["last"]))
            return super().query_due(batch, **how)

    sweep(table, FakeQueue(), AT)
    later = AT + 61_000
    sweep(Asked(table), FakeQueue(), later)
    horizon = AT + AHEAD_SECONDS * 1000
    ahead = (horizon + 1, later + AHEAD_SECONDS * 1000)
    assert asked == [ahead] * SHARDS + [(0, later - OVERDUE_SECONDS * 1000)] * SHARDS


def test_overdue_events_are_moved_in_parallel_up_to_the_limit(table: Table) -> None:
    swept(table, AT)
    accept(table, *[AT] * 150)
    groups: list[int] = []

    def each(function: Callable[[Any], Any], parts: Iterable[Any], /) -> list[Any]:
        done = [function(part) for part in parts]
        groups.append(len(done))
        return done

    found = sweep(table, FakeQueue(), AT + 2 * MINUTE, each)
    assert found == (150, 150)
    assert sum(groups) == 150
    assert max(groups) <= GROUP
