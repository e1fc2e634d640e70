"""The routes of bans, and what every other route says of a banned id."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.counting.bans import TimedBans
from chalicelib.http.tokens import digest
from simulation.storage import store_token
from simulation.views import AT_NOON, put_views
from tests.unit.http_requests import Answer, Api

TOKEN, SECRET = "t" * 30, "s" * 30
BANS = "/api/v1/bans"
SAID = "not counted here"
ID = "a%2Fb"


@pytest.fixture
def api(api: Api) -> Api:
    """Give `a/b` an owner and 1,007 views, and an operator a token."""
    store_token(api.table, TOKEN)
    api.resources.bans = TimedBans(lambda: api.table, api.clock)
    api.set(drop_in=("visitor-badge",))
    for badge_id in ("a/b", "other"):
        claim = {"id": badge_id, "digest": digest(SECRET), "base": 1_000}
        assert api.ask("POST", "/api/v1/badges", claim).status == 201
    put_views(api.table, *(AT_NOON + 10_000 + at for at in range(7)), badge_id="a/b")
    return api


def ask_bans(api: Api, method: str, pattern: str = "", body: object = b"") -> Answer:
    query = f"?pattern={pattern}" if pattern else ""
    return api.ask(method, BANS + query, body, TOKEN)


def ban(api: Api, pattern: str = "a/*", **body: Any) -> Answer:
    return ask_bans(api, "PUT", pattern, body)


def lift(api: Api) -> Answer:
    return ask_bans(api, "DELETE", "a/*")


def test_an_operator_sets_lists_and_lifts_bans(api: Api) -> None:
    at = "2026-03-14T12:00:00.000Z"
    first = {"pattern": "a/*", "reason": "spam", "by": "a-test", "at": at}
    second = {**first, "pattern": "z", "reason": ""}
    assert ban(api, "z").body == second
    assert ban(api, reason="spam").body == ban(api, reason="spam").body == first
    assert ask_bans(api, "GET").body == {"bans": [first, second]}
    assert ask_bans(api, "GET", "z").body == {"bans": [second]}
    assert [lift(api).status for _ in range(2)] == [204, 204]
    assert ask_bans(api, "GET").body == {"bans": [second]}


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
    api: Api, asked: str, body: object, token: str, refusal: tuple[int, str]
) -> None:
    method, _, query = asked.partition(" ")
    assert api.ask(method, BANS + query, body, token).refusal == refusal
    assert ask_bans(api, "GET").body == {"bans": []}


def message(answer: Answer) -> str:
    return str(answer.body["message"])


def text(answer: Answer) -> str:
    assert answer.status == 200
    return answer.text


def refused(answer: Answer) -> str:
    assert answer.refusal[0] == 403
    assert answer.refusal[1] in {"banned", "not_counted"}
    return answer.says


def list_another(api: Api) -> None:
    """Let the operator count no other id than this one."""
    api.set(ids=("other",))


COUNTING: list[tuple[str, object, Callable[[Answer], str]]] = [
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
    (f"PATCH /api/v1/badges?id={ID}", {"rename": "free"}, refused),
    ("PATCH /api/v1/badges?id=other", {"rename": "a/other"}, refused),
]
OWNED: list[tuple[str, object, Callable[[Answer], str]]] = [
    (f"GET /api/v1/badges?id={ID}", None, refused),
    (f"GET /api/v1/badges/{ID}", None, refused),
    (f"PATCH /api/v1/badges?id={ID}", {"digest": "0" * 64}, refused),
]
"""What an owner may do with an id that is not listed, but not with a banned one."""


@pytest.mark.parametrize(
    ("refuse", "asked", "body", "read"),
    [(ban, *one) for one in COUNTING + OWNED] + [(list_another, *one) for one in COUNTING],
)
def test_an_id_that_is_banned_or_not_listed_says_so_counts_nothing_and_tells_no_number(
    api: Api,
    refuse: Callable[[Api], object],
    asked: str,
    body: object,
    read: Callable[[Answer], str],
) -> None:
    refuse(api)
    before, (method, _, target) = api.items, asked.partition(" ")
    answer = api.ask(method, target, body or b"", SECRET)
    assert SAID in read(answer)
    assert "1007" not in answer.text
    assert (api.viewed, api.items) == ([], before)
    lift(api)
    api.set(ids=())
    assert SAID not in api.ask(method, target, body or b"", SECRET).response.body.decode("latin")


def test_a_list_of_badges_hides_the_numbers_of_banned_ones(api: Api) -> None:
    ban(api)
    assert api.ask("GET", "/api/v1/badges", token=SECRET).body["badges"] == [
        {"id": "a/b", "count": None, "today": None},
        {"id": "other", "count": 1_000, "today": 0},
    ]


def test_an_operator_sees_a_banned_badge_and_its_owner_may_delete_it(api: Api) -> None:
    ban(api)
    assert api.ask("GET", f"/api/v1/badges?id={ID}", token=TOKEN).body["count"] == 1_007
    assert api.ask("DELETE", f"/api/v1/badges?id={ID}", token=SECRET).status == 204
