"""Requests for several badges: the views of a page, and the counts of a list."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from chalicelib.counting import keys
from chalicelib.counting.view import View, ViewMessages
from chalicelib.limits import Action, Room
from chalicelib.settings import Settings
from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Put
from simulation.clocks import NOON
from simulation.memory_table import MemoryTable
from simulation.queues import FakeQueue
from simulation.resources import GivenResources, Places
from simulation.tables import FaultyTable, raising
from simulation.views import AT_NOON, put_views, shown
from tests.unit import http_requests
from tests.unit.http_requests import Answer
from vumi.server.client_limits import ClientLimits, Rate

PAGE, SITE = "me.example/post/", "me.example"
BOTH = f"?id={PAGE}&id={SITE}"


@pytest.fixture
def queue() -> FakeQueue:
    return FakeQueue()


@pytest.fixture
def resources(queue: FakeQueue) -> GivenResources:
    table = MemoryTable()
    put_views(table, AT_NOON - 2, AT_NOON - 1, badge_id=SITE)
    return GivenResources(table=table, views_queue=ViewMessages(queue), clock=lambda: NOON)


def ask(resources: GivenResources, method: str, target: str, **more: Any) -> Answer:
    return http_requests.ask(resources, method, f"/api/v1/views{target}", **more)


def views_in(queue: FakeQueue) -> list[str]:
    return [View.from_message(body).badge_id for body in queue.bodies]


def unreadable(table: Table) -> FaultyTable:
    """Return a table of which the first read fails."""
    return FaultyTable(table, before_read=raising(UnavailableError("no answer"), None))


def test_a_page_and_its_site_are_counted_by_one_request(
    resources: GivenResources, queue: FakeQueue
) -> None:
    answer = ask(resources, "POST", BOTH + "&format=comma")
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert answer.body == {
        "views": [
            {"id": PAGE, "count": 0, "message": "0"},
            {"id": SITE, "count": 2, "message": "2"},
        ]
    }
    assert views_in(queue) == [PAGE, SITE]


def test_the_messages_of_a_request_are_sent_in_one_call(resources: GivenResources) -> None:
    calls = []

    class Calls(FakeQueue):
        def send_all(self, messages: Any) -> None:
            calls.append(len(messages))

    resources.views_queue = ViewMessages(Calls())
    ask(resources, "POST", "?" + "&".join(f"id={number}" for number in range(10)))
    ask(resources, "POST", "?id=alone")
    assert calls == [10, 1]


def test_counts_are_read_in_the_order_of_their_ids_and_count_nothing(
    resources: GivenResources, queue: FakeQueue
) -> None:
    answer = ask(resources, "GET", f"/counts{BOTH}&id={SITE}&show=today&tz=2")
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert [(one["id"], one["count"]) for one in answer.body["counts"]] == [
        (PAGE, 0),
        (SITE, 2),
        (SITE, 2),
    ]
    assert queue.bodies == []


def test_a_badge_that_cannot_be_read_delays_no_other(
    resources: GivenResources, queue: FakeQueue
) -> None:
    table = resources.table
    resources.table = unreadable(table)
    assert ask(resources, "POST", BOTH).body["views"] == [
        {"id": PAGE, "count": None, "message": "count unavailable, view taken"},
        {"id": SITE, "count": 2, "message": "2"},
    ]
    assert views_in(queue) == [PAGE, SITE]
    resources.table = unreadable(table)
    assert ask(resources, "GET", f"/counts{BOTH}").body["counts"][0] == {
        "id": PAGE,
        "count": None,
        "message": "count unavailable: try again",
    }


def test_a_frozen_badge_takes_no_view_beside_one_that_does(
    resources: GivenResources, queue: FakeQueue
) -> None:
    pk, sk = keys.summary(SITE)
    resources.table.write(Put({"PK": pk, "SK": sk, "frozen": 1}))
    ask(resources, "POST", BOTH)
    assert views_in(queue) == [PAGE]


def limit_new_ids(resources: GivenResources) -> None:
    resources.limits = ClientLimits({Action.NEW_ID: Rate(1, 60)}, lambda: NOON)


def limit_badges(resources: GivenResources) -> None:
    resources.quota = Places(1)


def fill(resources: GivenResources) -> None:
    resources.room = lambda: Room.VIEWS


def list_ids(resources: GivenResources) -> None:
    resources.settings = Settings(ids=("me.example", "me.example/a"))


@pytest.mark.parametrize(
    ("prepare", "query", "refusal"),
    [
        (limit_badges, "?id=me.example&id=a&id=b", (403, "no_new_badges")),
        (limit_new_ids, "?id=me.example&id=a&id=b", (429, "too_many_requests")),
        (fill, "?id=me.example&id=a", (507, "no_room")),
        (list_ids, "?id=me.example&id=me.example/b", (403, "not_counted")),
        (lambda _: None, "?id=me.example&id=a&id=a", (400, "bad_request")),
        (lambda _: None, "?id=me.example&id=", (400, "bad_request")),
        (
            lambda _: None,
            "?" + "&".join(f"id={number}" for number in range(11)),
            (400, "bad_request"),
        ),
        (lambda _: None, "", (400, "bad_request")),
    ],
    ids=["full", "limited", "no room", "not listed", "twice", "empty", "eleven", "none"],
)
def test_a_request_that_is_refused_for_one_id_counts_none(
    resources: GivenResources,
    queue: FakeQueue,
    prepare: Callable[[GivenResources], object],
    query: str,
    refusal: tuple[int, str],
) -> None:
    prepare(resources)
    assert ask(resources, "POST", query, client="192.0.2.1").refusal == refusal
    assert queue.bodies == []


@pytest.mark.parametrize(("number", "status"), [(100, 200), (101, 400)])
def test_a_list_has_up_to_100_ids_and_its_options(
    resources: GivenResources, number: int, status: int
) -> None:
    ids = "&".join(f"id={number}" for number in range(number))
    assert ask(resources, "GET", f"/counts?{ids}&format=comma").status == status


def test_a_list_takes_no_base(resources: GivenResources) -> None:
    assert ask(resources, "GET", f"/counts{BOTH}&base=5").refusal == (400, "bad_request")


@pytest.mark.parametrize("after", [False, True])
def test_views_that_the_queue_fails_are_stored_directly_and_once(
    resources: GivenResources, *, after: bool
) -> None:
    """The queue may have some of them nevertheless."""
    failing = FakeQueue(UnavailableError("throttled"), after=after)
    resources.views_queue = ViewMessages(failing)
    assert ask(resources, "POST", BOTH).status == 200
    stored = partial(shown, resources.table)
    assert (stored(PAGE), stored(SITE)) == (1, 3)
