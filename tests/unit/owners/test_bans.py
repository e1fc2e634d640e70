"""The routes of bans, and what every other route says of a banned id."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.api import table_of
from chalicelib.counting.bans import TimedBans
from chalicelib.counting.view import ViewMessages
from chalicelib.http import query
from chalicelib.http.dispatch import dispatch
from chalicelib.http.messages import Request
from chalicelib.http.tokens import digest
from chalicelib.settings import Settings
from chalicelib.storage.items import Item, Key
from simulation.clocks import NOON
from simulation.memory_table import MemoryTable
from simulation.queues import FakeQueue
from simulation.resources import GivenResources
from simulation.tokens import store_token
from simulation.views import AT_NOON, put_views
from tests.unit import http_requests
from tests.unit.http_requests import Answer

TOKEN, SECRET = "t" * 30, "s" * 30
BANS = "/api/v1/bans"
SAID = "not counted here"
ID = "a%2Fb"


@pytest.fixture
def queue() -> FakeQueue:
    return FakeQueue()


@pytest.fixture
def resources(queue: FakeQueue) -> GivenResources:
    """Give `a/b` an owner and 1,007 views, and an operator a token."""
    table = MemoryTable()
    store_token(table, TOKEN)
    made = GivenResources(
        table=table,
        views_queue=ViewMessages(queue),
        clock=lambda: NOON,
        bans=TimedBans(lambda: table, lambda: NOON),
        settings=Settings(drop_in=("visitor-badge",)),
    )
    for badge_id in ("a/b", "other"):
        claim = {"id": badge_id, "digest": digest(SECRET), "base": 1_000}
        assert http_requests.ask(made, "POST", "/api/v1/badges", claim).status == 201
    put_views(table, *(AT_NOON + 10_000 + at for at in range(7)), badge_id="a/b")
    return made


def ask(
    resources: GivenResources, method: str, target: str, body: object = b"", token: str = ""
) -> Answer:
    authorization = f"Bearer {token}" if token else ""
    return http_requests.ask(resources, method, target, body, authorization=authorization)


def ban(resources: GivenResources, pattern: str = "a/*", **body: Any) -> Answer:
    return ask(resources, "PUT", f"{BANS}?pattern={pattern}", body, TOKEN)


def lift(resources: GivenResources, pattern: str = "a/*") -> Answer:
    return ask(resources, "DELETE", f"{BANS}?pattern={pattern}", token=TOKEN)


def test_an_operator_sets_lists_and_lifts_bans(resources: GivenResources) -> None:
    at = "2026-03-14T12:00:00.000Z"
    first = {"pattern": "a/*", "reason": "spam", "by": "a-test", "at": at}
    second = {**first, "pattern": "z", "reason": ""}
    assert ban(resources, "z").body == second
    assert ban(resources, reason="spam").body == ban(resources, reason="spam").body == first
    assert ask(resources, "GET", BANS, token=TOKEN).body == {"bans": [first, second]}
    assert ask(resources, "GET", f"{BANS}?pattern=z", token=TOKEN).body == {"bans": [second]}
    assert [lift(resources).status for _ in range(2)] == [204, 204]
    assert ask(resources, "GET", BANS, token=TOKEN).body == {"bans": [second]}


@pytest.mark.parametrize(
    ("asked", "body", "token", "refusal"),
    [
        ("PUT ?pattern=a", {}, "", (401, "unauthorized")),
        ("DELETE ?pattern=a", b"", "x" * 30, (403, "forbidden")),
        ("GET ", b"", "", (401, "unauthorized")),
        ("PUT ", {}, TOKEN, (400, "bad_request")),
        ("PUT ?pattern=", {}, TOKEN, (400, "bad_request")),
        ("DELETE ", b"", TOKEN, (400, "bad_request")),
        ("PUT ?pattern=a", {"reason": "x" * 201}, TOKEN, (400, "bad_request")),
        ("PUT ?pattern=a", {"reason": 1}, TOKEN, (400, "bad_request")),
    ],
)
def test_a_wrong_request_bans_nothing(
    resources: GivenResources, asked: str, body: object, token: str, refusal: tuple[int, str]
) -> None:
    method, _, query = asked.partition(" ")
    assert ask(resources, method, BANS + query, body, token).refusal == refusal
    assert ask(resources, "GET", BANS, token=TOKEN).body == {"bans": []}


def message(answer: Answer) -> str:
    return str(answer.body["message"])


def text(answer: Answer) -> str:
    assert answer.status == 200
    return answer.text


def refused(answer: Answer) -> str:
    assert answer.refusal == (403, "banned")
    return answer.says


@pytest.mark.parametrize(
    ("asked", "body", "read"),
    [
        (f"GET /api/v1/views?id={ID}", None, message),
        (f"GET /api/v1/views?id={ID}&peek=1&show=today", None, message),
        (f"GET /v1/api/views?id={ID}", None, message),
        (f"HEAD /api/v1/views?id={ID}", None, message),
        (f"GET /api/v1/views.svg?id={ID}&style=pixel&spark=7", None, text),
        (f"GET /api/v1/views/history.svg?id={ID}", None, text),
        (f"GET /badge?page_id={ID}", None, text),
        (f"POST /api/v1/views?id={ID}", None, refused),
        (f"POST /api/v1/views?id={ID}&id=other", None, refused),
        (f"GET /api/v1/views/counts?id=other&id={ID}", None, refused),
        (f"GET /api/v1/views/history?id={ID}", None, refused),
        (f"GET /s?id={ID}", None, refused),
        (f"GET /s.png?id={ID}", None, refused),
        ("POST /api/v1/badges", {"id": "a/new"}, refused),
        ("POST /api/v1/badges", {"id": "a/b", "proof": True}, refused),
        ("POST /api/v1/badges", {"id": "a/b", "proof": "k" * 43}, refused),
        (f"GET /api/v1/badges?id={ID}", None, refused),
        (f"GET /api/v1/badges/{ID}", None, refused),
        (f"PATCH /api/v1/badges?id={ID}", {"rename": "free"}, refused),
        (f"PATCH /api/v1/badges?id={ID}", {"digest": "0" * 64}, refused),
        ("PATCH /api/v1/badges?id=other", {"rename": "a/other"}, refused),
    ],
)
def test_a_banned_id_says_so_counts_nothing_and_tells_no_number(
    resources: GivenResources,
    queue: FakeQueue,
    asked: str,
    body: object,
    read: Callable[[Answer], str],
) -> None:
    ban(resources)
    before = stored(resources)
    answer = ask_any(resources, asked, body)
    assert SAID in read(answer)
    assert "1007" not in answer.text
    assert queue.bodies == []
    assert stored(resources) == before
    lift(resources)
    assert SAID.encode() not in ask_any(resources, asked, body).response.body


def stored(resources: GivenResources) -> dict[Key, Item]:
    assert isinstance(resources.table, MemoryTable)
    return {**resources.table.items}


def ask_any(resources: GivenResources, asked: str, body: object = None) -> Answer:
    """Send a request of an owner, or a URL of another counter."""
    method, _, target = asked.partition(" ")
    path, _, raw = target.partition("?")
    request = Request(
        method,
        path,
        query=query.parse(raw),
        headers={"authorization": f"Bearer {SECRET}"},
        body=json.dumps(body).encode() if body else b"",
    )
    return Answer(dispatch(table_of(resources.settings.drop_in), request, resources))


def test_the_numbers_stay_and_are_shown_again(resources: GivenResources, queue: FakeQueue) -> None:
    ban(resources)
    dispatched = [ask_any(resources, f"GET /api/v1/views?id={ID}") for _ in range(3)]
    assert [one.body["isError"] for one in dispatched] == [True] * 3
    lift(resources)
    assert ask_any(resources, f"GET /api/v1/views?id={ID}").body["message"] == "1007"
    assert len(queue.bodies) == 1


def test_a_list_of_badges_hides_the_numbers_of_banned_ones(resources: GivenResources) -> None:
    ban(resources)
    listed = ask_any(resources, "GET /api/v1/badges").body["badges"]
    assert listed == [
        {"id": "a/b", "count": None, "today": None},
        {"id": "other", "count": 1_000, "today": 0},
    ]


def test_an_operator_sees_a_banned_badge_and_its_owner_may_delete_it(
    resources: GivenResources,
) -> None:
    ban(resources)
    assert ask(resources, "GET", f"/api/v1/badges?id={ID}", token=TOKEN).body["count"] == 1_007
    assert ask_any(resources, f"DELETE /api/v1/badges?id={ID}").status == 204
