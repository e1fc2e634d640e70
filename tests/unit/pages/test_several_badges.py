"""Requests of scripts: the views of a page and its site, and the counts of a list."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from chalicelib.counting.view import ViewMessages
from chalicelib.resources import Room
from chalicelib.storage.errors import UnavailableError
from simulation.resources import Places
from simulation.storage import FakeQueue, raising
from simulation.views import AT_NOON, put_summary, put_views, shown
from tests.unit.http_requests import Answer, Api
from vumi.server.clients import Rate

PAGE, SITE = "me.example/post/", "me.example"
BOTH = f"?id={PAGE}&id={SITE}"
TAKEN, UNAVAILABLE = "count unavailable, view taken", "count unavailable: try again"
FAILURE = UnavailableError("no answer")


@pytest.fixture
def api(api: Api) -> Api:
    put_views(api.table, AT_NOON - 2, AT_NOON - 1, badge_id=SITE)
    return api


def ask(api: Api, method: str, target: str, body: bytes = b"") -> Answer:
    """Send what a script of another site sends, which may read the response."""
    answer = api.ask(
        method,
        f"/api/v1/views{target}",
        body,
        kind="text/plain;charset=UTF-8",
        origin="https://me.example",
        sec_fetch_site="cross-site",
        client="192.0.2.1",
    )
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert answer.headers["Cache-Control"] == "no-store"
    return answer


def number(badge_id: str, count: int | None, message: str) -> dict[str, object]:
    return {"id": badge_id, "count": count, "message": message}


def test_a_page_and_its_site_are_counted_by_one_request(api: Api) -> None:
    answer = ask(api, "POST", BOTH + "&format=comma")
    assert answer.body == {"views": [number(PAGE, 0, "0"), number(SITE, 2, "2")]}
    assert api.viewed == [PAGE, SITE]


@pytest.mark.parametrize(
    ("options", "count", "message"),
    [
        ("", 1_232, "1232"),
        ("&format=comma&base=1", 1_233, "1,233"),
        ("&show=today&base=3", 2, "2"),
        ("&show=year&base=3", 2, "2"),
        ("&show=today-total&base=3", 1_235, "2 today · 1235"),
    ],
)
def test_one_id_has_a_response_of_its_own(api: Api, options: str, count: int, message: str) -> None:
    """The base has no time, so only the number of all views has it."""
    put_summary(api.table, SITE, count=1_226, base=4, watermark=AT_NOON - 9)
    assert ask(api, "POST", f"?id={SITE}{options}").body == number(SITE, count, message)
    assert api.viewed == [SITE]


def test_the_messages_of_a_request_are_sent_in_one_call(api: Api) -> None:
    calls = []

    class Calls(FakeQueue):
        def send_all(self, messages: Any) -> None:
            calls.append(len(messages))

    api.resources.views_queue = ViewMessages(Calls())
    ask(api, "POST", "?" + "&".join(f"id={number}" for number in range(10)))
    ask(api, "POST", "?id=alone")
    assert calls == [10, 1]


def test_counts_are_read_in_the_order_of_their_ids_and_count_nothing(api: Api) -> None:
    answer = ask(api, "GET", f"/counts{BOTH}&id={SITE}&show=today&tz=2")
    found = [(one["id"], one["count"]) for one in answer.body["counts"]]
    assert found == [(PAGE, 0), (SITE, 2), (SITE, 2)]
    assert api.views == []


def test_a_badge_that_cannot_be_read_delays_no_other(api: Api) -> None:
    """The status is that of success, because the same request again would count another view."""
    api.table.before_read = raising(FAILURE)
    listed = [number(PAGE, None, TAKEN), number(SITE, 2, "2")]
    assert ask(api, "POST", BOTH).body["views"] == listed
    assert api.viewed == [PAGE, SITE]
    assert api.views[0].first
    api.table.before_read = raising(FAILURE)
    found = ask(api, "GET", f"/counts{BOTH}").body["counts"]
    assert found[0] == number(PAGE, None, UNAVAILABLE)


def test_a_frozen_badge_takes_no_view_beside_one_that_does(api: Api) -> None:
    put_summary(api.table, SITE, frozen=1)
    ask(api, "POST", BOTH)
    assert api.viewed == [PAGE]


def limit_new_ids(api: Api) -> None:
    api.limit(NEW_ID=Rate(1, 60))


def limit_badges(api: Api) -> None:
    api.resources.quota = Places(1)


def fill(api: Api) -> None:
    api.resources.room = lambda: Room.VIEWS


def lose(api: Api) -> None:
    api.queue.failure = FAILURE
    api.table.before_put = raising(FAILURE)


def change_nothing(_: Api) -> None:
    """Leave the settings and limits as they are."""


@pytest.mark.parametrize(
    ("prepare", "query", "refusal"),
    [
        (limit_badges, f"?id={SITE}&id=a&id=b", (403, "no_new_badges")),
        (limit_new_ids, f"?id={SITE}&id=a&id=b", (429, "too_many_requests")),
        (fill, f"?id={SITE}&id=a", (507, "no_room")),
        (lose, f"?id={SITE}", (503, "unavailable")),
        (change_nothing, f"?id={SITE}&id=a&id=a", (400, "bad_request")),
        (change_nothing, f"?id={SITE}&id=", (400, "bad_request")),
        (change_nothing, f"?id={SITE}&format=roman", (400, "bad_request")),
        (change_nothing, f"?id={SITE}&peek=1", (400, "bad_request")),
        (change_nothing, "?" + "&".join(f"id={one}" for one in range(11)), (400, "bad_request")),
        (change_nothing, "", (400, "bad_request")),
    ],
)
def test_a_request_that_is_refused_for_one_id_counts_none(
    api: Api, prepare: Callable[[Api], object], query: str, refusal: tuple[int, str]
) -> None:
    prepare(api)
    answer = ask(api, "POST", query)
    assert answer.refusal == refusal
    assert ("Retry-After" in answer.headers) == (answer.status in {429, 503})
    assert api.views == []


def test_a_script_that_sends_a_body_counts_nothing(api: Api) -> None:
    """Nothing that a script knows of a visitor is read."""
    refused = ask(api, "POST", BOTH, b" ")
    assert refused.refusal == (400, "bad_request")
    assert refused.says == "the body has 1 bytes: send none, all is in the query"
    assert api.views == []


@pytest.mark.parametrize(
    ("ids", "options", "status"), [(100, "&format=comma", 200), (101, "", 400), (2, "&base=5", 400)]
)
def test_a_list_has_up_to_100_ids_and_its_options(
    api: Api, ids: int, options: str, status: int
) -> None:
    listed = "&".join(f"id={number}" for number in range(ids))
    assert ask(api, "GET", f"/counts?{listed}{options}").status == status


@pytest.mark.parametrize("after", [False, True])
def test_views_that_the_queue_fails_are_stored_directly_and_once(api: Api, *, after: bool) -> None:
    """The queue may have some of them nevertheless."""
    failing = FakeQueue(UnavailableError("throttled"), after=after)
    api.resources.views_queue = ViewMessages(failing)
    assert ask(api, "POST", BOTH).status == 200
    stored = partial(shown, api.table)
    assert (stored(PAGE), stored(SITE)) == (1, 3)
