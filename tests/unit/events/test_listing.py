"""The pages of the events with a status: each event once, in order, for any cursor."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import pytest

from chalicelib.events import schedule
from chalicelib.events.claims import Leases
from chalicelib.events.event import Event, Status, batch, key
from chalicelib.events.listing import PAGE, Page, read
from chalicelib.http.errors import BadRequestError
from chalicelib.storage.items import Item, Key
from chalicelib.storage.ports import MAX_DUE, Table
from chalicelib.storage.writes import Put
from simulation.queues import FakeQueue
from simulation.scheduled_events import AT, an_event


def accept(table: Table, number: int, at: int | None = None) -> Event:
    event = an_event(f"e{number}", AT + number if at is None else at)
    return schedule.accept(event, table, FakeQueue(), AT).event


def pages(table: Table, status: Status = Status.ACTIVE) -> Iterator[Page]:
    page = read(table, status)
    yield page
    while page.cursor:
        page = read(table, status, page.cursor)
        yield page


def names(events: list[Event]) -> list[str]:
    return [event.event_id for event in events]


def cursor(content: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


def test_each_event_is_listed_once_in_the_order_of_its_time(table: Table) -> None:
    """100 events in eight shards: two full pages, and then the end."""
    accepted = [accept(table, number) for number in range(2 * PAGE)]
    assert len({batch(Status.ACTIVE, event.event_id) for event in accepted}) == 8
    found = [page.events for page in pages(table)]
    assert [len(events) for events in found] == [PAGE, PAGE, 0]
    assert [*chain(*found)] == accepted


def test_an_event_that_changes_its_status_between_two_pages_hides_no_other(table: Table) -> None:
    """The events at the cursor are removed, one before it, and one after it."""
    for number in range(120):
        accept(table, number)
    first = read(table, Status.ACTIVE)
    gone = {f"e{number}" for number in (7, *range(42, 52), 99)}
    for name in gone:
        schedule.cancel(table, Leases(), name, AT)
    rest = read(table, Status.ACTIVE, first.cursor)
    last = read(table, Status.ACTIVE, rest.cursor)
    listed = names(first.events + rest.events + last.events)
    assert len(set(listed)) == len(listed)
    assert set(listed) == {f"e{number}" for number in range(120)} - (gone - set(listed))
    assert not gone & set(names(rest.events + last.events))


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
        accept(table, number)
    late: Any = Lagging(table, "e1")
    assert names(read(late, Status.ACTIVE).events) == ["e0", "e2"]
    item = table.get(key("e2"))
    assert item is not None
    table.write(Put(item | {"status": "SUCCESS"}))
    assert names(read(late, Status.ACTIVE).events) == ["e0"]


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
        read(table, Status.ACTIVE, wrong)
    assert str(refusal.value) == "cursor: give the one of the page of ACTIVE before"


@pytest.mark.parametrize("places", [{}, {"0": PLACE}, {"7": [MAX_DUE, "e"]}, {"3": [0, "nobody"]}])
def test_a_cursor_may_be_at_a_place_without_events(table: Table, places: dict[str, Any]) -> None:
    assert read(table, Status.ACTIVE, cursor(["ACTIVE", places])) == Page([], "")
