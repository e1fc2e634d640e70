"""Accepting, listing and cancelling events: once, also with repeated and concurrent requests."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, cast

import pytest

from chalicelib.events.event import Event, Leases, Status, batch, key, message
from chalicelib.events.schedule import (
    DIRECT_SECONDS,
    PAGE,
    TooLateError,
    UnknownEventError,
    accept,
    cancel,
    read,
    read_page,
)
from chalicelib.http.errors import BadRequestError
from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.items import Item, Key, Value
from chalicelib.storage.ports import MAX_DUE, Table
from chalicelib.storage.writes import ConditionFailedError, Update, Write
from simulation.scheduled_events import AT, an_event
from simulation.storage import FakeQueue, FaultyTable

CLAIMED: dict[str, Value] = {"claim": "somebody", "lease": AT + 60_000, "tries": 1}


@pytest.mark.parametrize(
    ("ahead", "bodies"),
    [
        (-5_000, [message("e")]),
        (0, [message("e")]),
        (1_250, [message("e") + " after 1.25 s"]),
        (DIRECT_SECONDS * 1000, [message("e") + f" after {float(DIRECT_SECONDS)} s"]),
        (DIRECT_SECONDS * 1000 + 1, []),
    ],
)
def test_an_event_that_is_due_soon_is_enqueued_immediately(
    table: Table, ahead: int, bodies: list[str]
) -> None:
    queue = FakeQueue()
    accept(an_event(at=AT + ahead), table, queue, AT)
    assert queue.bodies == bodies


def test_only_events_that_are_due_soon_are_enqueued(
    table: Table, caplog: pytest.LogCaptureFixture
) -> None:
    down = FakeQueue(UnavailableError("down"))
    accept(an_event("far", AT + 10**9), table, down, AT)
    assert caplog.messages == []
    assert accept(an_event("near"), table, down, AT)[1]
    [warning] = caplog.records
    assert warning.message == "events_left_to_sweep"
    assert (warning.levelname, vars(warning)["fields"]["reason"]) == ("WARNING", "down")


def test_a_conflicting_event_that_is_then_removed_fails_the_request(table: Table) -> None:
    def gone(_: Sequence[Write]) -> None:
        raise ConditionFailedError({0: None})

    with pytest.raises(ConditionFailedError):
        accept(an_event(), FaultyTable(table, before_write=gone), FakeQueue(), AT)


def test_a_repeated_request_is_the_same_event_and_is_enqueued_again_until_it_is_done(
    table: Table,
) -> None:
    """The response to the first request may have been lost, and its message too."""
    (first, _), queue = accept(an_event(), table, FakeQueue(), AT), FakeQueue()
    assert accept(an_event(), table, queue, AT + 7)[0] == first
    assert queue.bodies == [message("e")]
    cancel(table, Leases(), "e", AT)
    again, _ = accept(an_event(), table, queue, AT)
    assert (again.status, queue.bodies) == (Status.CANCELLED, [message("e")])


def test_an_event_that_was_stored_while_its_answer_was_lost_is_new(table: Table) -> None:
    def store_first(writes: Sequence[Write]) -> None:
        table.write(*writes)

    _, is_new = accept(an_event(), FaultyTable(table, before_write=store_first), FakeQueue(), AT)
    assert is_new


@pytest.mark.parametrize("name", ["", "a/b", "x" * 65, "x" * 100_000])
def test_a_malformed_id_is_quoted_in_part_and_never_read(name: str) -> None:
    with pytest.raises(UnknownEventError) as refused:
        read(cast("Table", None), name)
    quoted = name if len(name) < 65 else "x" * 64
    assert str(refused.value) == f"there is no event {quoted}, or it was done long ago"


def test_a_claimed_event_can_not_be_cancelled_before_its_claim_ends(table: Table) -> None:
    accept(an_event(), table, FakeQueue(), AT)
    table.write(Update(key("e"), values=CLAIMED))
    with pytest.raises(TooLateError, match="its delivery has begun"):
        cancel(table, Leases(), "e", AT + 59_999)
    assert cancel(table, Leases(), "e", AT + 60_000).status is Status.CANCELLED
    item = table.get(key("e")) or {}
    assert {"claim", "lease"} & item.keys() == set()


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (CLAIMED, "its delivery has begun"),
        ({"status": "SUCCESS"}, "is done: SUCCESS"),
        ({"status": "ERROR"}, "is done: ERROR"),
    ],
)
def test_a_concurrent_claim_or_delivery_prevents_a_cancellation(
    table: Table, values: dict[str, Value], said: str
) -> None:
    accept(an_event(), table, FakeQueue(), AT)

    def overtake(_: Sequence[Write]) -> None:
        table.write(Update(key("e"), values=values))

    with pytest.raises(TooLateError, match=said):
        cancel(FaultyTable(table, before_write=overtake), Leases(), "e", AT)


# ---- lists


def accept_numbered(table: Table, number: int) -> Event:
    return accept(an_event(f"e{number}", AT + number), table, FakeQueue(), AT)[0]


def pages(table: Table) -> Iterator[list[Event]]:
    cursor = ""
    while True:
        events, cursor = read_page(table, Status.ACTIVE, cursor)
        yield events
        if not cursor:
            return


def names(events: list[Event]) -> list[str]:
    return [event.event_id for event in events]


def cursor(content: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


def test_each_event_is_listed_once_in_the_order_of_its_time(table: Table) -> None:
    """100 events in eight shards: two full pages, and then the end."""
    accepted = [accept_numbered(table, number) for number in range(2 * PAGE)]
    assert len({batch(Status.ACTIVE, event.event_id) for event in accepted}) == 8
    found = [*pages(table)]
    assert [len(events) for events in found] == [PAGE, PAGE, 0]
    assert [*chain(*found)] == accepted


def test_an_event_that_changes_its_status_between_two_pages_hides_no_other(table: Table) -> None:
    """The events at the cursor are removed, one before it, and one after it."""
    for number in range(120):
        accept_numbered(table, number)
    first, cursor = read_page(table, Status.ACTIVE)
    gone = {f"e{number}" for number in (7, *range(42, 52), 99)}
    for name in gone:
        cancel(table, Leases(), name, AT)
    rest, cursor = read_page(table, Status.ACTIVE, cursor)
    last, _ = read_page(table, Status.ACTIVE, cursor)
    listed = names(first + rest + last)
    assert len(set(listed)) == len(listed)
    assert set(listed) == {f"e{number}" for number in range(120)} - (gone - set(listed))
    assert not gone & set(names(rest + last))


class Lagging:
    """A table whose index still has items that the table no longer has."""

    def __init__(self, table: Table, *missing: str) -> None:
        self.table = table
        self.missing = {key(name) for name in missing}

    def query_due(self, *of: Any, **how: Any) -> Any:
        return self.table.query_due(*of, **how)

    def get_all(self, keys: Sequence[Key]) -> list[Item]:
        return self.table.get_all([key for key in keys if key not in self.missing])


def test_an_index_that_lags_shows_no_old_event(table: Table) -> None:
    for number in range(3):
        accept_numbered(table, number)
    late: Any = Lagging(table, "e1")
    assert names(read_page(late, Status.ACTIVE)[0]) == ["e0", "e2"]
    table.write(Update(key("e2"), values={"status": "SUCCESS"}))
    assert names(read_page(late, Status.ACTIVE)[0]) == ["e0"]


PLACE = [AT, "e"]


@pytest.mark.parametrize(
    "wrong",
    [
        "x",
        "ü",
        "\ud800",
        "AAAA",
        base64.urlsafe_b64encode(b"[" * 90_000).decode(),
        cursor({}),
        cursor(["SUCCESS", {"0": PLACE}]),
        cursor(["ACTIVE"]),
        cursor(["ACTIVE", {"0": PLACE}, 1]),
        cursor(["ACTIVE", {"8": PLACE}]),
        cursor(["ACTIVE", {"٣": PLACE}]),
        cursor(["ACTIVE", {"0": None}]),
        cursor(["ACTIVE", {"0": [AT]}]),
        cursor(["ACTIVE", {"0": [AT, "e", 1]}]),
        cursor(["ACTIVE", {"0": [True, "e"]}]),
        cursor(["ACTIVE", {"0": [1.0, "e"]}]),
        cursor(["ACTIVE", {"0": [-1, "e"]}]),
        cursor(["ACTIVE", {"0": [MAX_DUE + 1, "e"]}]),
        cursor(["ACTIVE", {"0": [AT, ""]}]),
        cursor(["ACTIVE", {"0": [AT, "x" * 65]}]),
        cursor(["ACTIVE", {"0": [AT, 1]}]),
    ],
)
def test_a_malformed_cursor_is_refused(table: Table, wrong: str) -> None:
    with pytest.raises(BadRequestError) as refusal:
        read_page(table, Status.ACTIVE, wrong)
    assert str(refusal.value) == "cursor: give the one of the page of ACTIVE before"


@pytest.mark.parametrize("places", [{}, {"0": PLACE}, {"7": [MAX_DUE, "e"]}, {"3": [0, "nobody"]}])
def test_a_cursor_may_be_at_a_place_without_events(table: Table, places: dict[str, Any]) -> None:
    assert read_page(table, Status.ACTIVE, cursor(["ACTIVE", places])) == ([], "")
