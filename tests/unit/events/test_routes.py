"""Routes of events: their statuses, their errors and their badges."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from chalicelib.events import event as events
from chalicelib.events import schedule
from chalicelib.events.event import Status, message
from chalicelib.http import tokens
from chalicelib.outgoing.urls import Record
from chalicelib.settings import Settings
from chalicelib.storage.errors import Refused, Unavailable
from chalicelib.storage.items import Item, Key
from chalicelib.storage.writes import Update, Write
from simulation.clocks import NOON
from simulation.memory_table import MemoryTable
from simulation.queues import FakeQueue
from simulation.resources import GivenResources
from simulation.tables import FaultyTable
from tests.unit import http_requests
from tests.unit.http_requests import Answer

TOKEN = tokens.new_token()
EVENTS = "/api/v1/events"
URL = "https://127.0.0.1:8443/hook"
LOG = {"log": True}
AN_HOUR_ON = "2026-03-14T13:00:00.000Z"
ENDPOINTS = (
    ("POST", "/timers"),
    ("GET", "/timers/e"),
    ("POST", EVENTS),
    ("GET", EVENTS),
    ("GET", f"{EVENTS}/e"),
    ("DELETE", f"{EVENTS}/e"),
    ("POST", "/echoAtTime"),
)


def resolved(host: str, port: int, **_: object) -> Sequence[Record]:
    """Resolve the one name of these tests, to a private address."""
    if host != "private.example.com":
        raise OSError("no such name")
    return [(2, 1, 6, "", ("10.0.0.1", port))]


@pytest.fixture
def resources() -> GivenResources:
    return GivenResources(
        table=MemoryTable(),
        delivery_queue=FakeQueue(),
        settings=Settings(
            api_token_digests=frozenset({tokens.digest(TOKEN)}),
            event_queues={"mails": "", "orders": ""},
            webhook_allow="127.0.0.0/8",
            has_webhook_secrets=True,
        ),
        clock=lambda: NOON,
        resolver=resolved,
    )


def sent(resources: GivenResources) -> list[str]:
    """Return the messages in the queue of timers."""
    assert isinstance(resources.delivery_queue, FakeQueue)
    return resources.delivery_queue.bodies


Ask = Callable[..., Answer]


@pytest.fixture
def ask(resources: GivenResources) -> Ask:
    return partial(http_requests.ask, resources, authorization=f"Bearer {TOKEN}")


def later(resources: GivenResources, seconds: float) -> None:
    resources.clock = partial(float, resources.clock() + seconds)


def wanted(**fields: Any) -> dict[str, Any]:
    return {"id": "e", "delay": 3_600, "target": LOG, **fields}


# ---- permissions


@pytest.mark.parametrize(("method", "target"), ENDPOINTS)
def test_each_endpoint_requires_a_token(ask: Ask, method: str, target: str) -> None:
    none = ask(method, target, authorization="")
    assert none.refusal == (401, "unauthorized")
    assert none.headers["WWW-Authenticate"] == "Bearer"
    assert none.says == "give a token: Authorization: Bearer TOKEN"
    wrong = f"Bearer {tokens.digest(TOKEN)}"
    assert ask(method, target, authorization=wrong).refusal == (403, "forbidden")
    assert ask(method, target).status not in (401, 403)


@pytest.mark.parametrize("target", [f"{EVENTS}/e/badge", f"{EVENTS}/e/badge.svg"])
def test_a_badge_requires_no_token(ask: Ask, target: str) -> None:
    assert ask("GET", target, authorization="").status == 200
    assert ask("HEAD", target, authorization="").status == 200


@pytest.mark.parametrize(("method", "target"), ENDPOINTS)
def test_without_valid_tokens_each_endpoint_is_closed(
    resources: GivenResources, ask: Ask, method: str, target: str
) -> None:
    resources.settings = Settings()
    assert ask(method, target).refusal == (403, "forbidden")


# ---- events


def test_an_event_is_accepted_shown_and_cancelled(resources: GivenResources, ask: Ask) -> None:
    made = ask("POST", EVENTS, wanted(payload={"a": [1, None]}))
    assert made.status == 201
    assert made.headers["Cache-Control"] == "no-store"
    assert made.body == {
        "id": "e",
        "status": "ACTIVE",
        "at": AN_HOUR_ON,
        "created": "2026-03-14T12:00:00.000Z",
        "target": LOG,
        "attempts": [],
        "attempt_count": 0,
        "payload": {"a": [1, None]},
        "next_attempt": AN_HOUR_ON,
    }
    assert ask("GET", f"{EVENTS}/e").body == made.body
    cancelled = ask("DELETE", f"{EVENTS}/e")
    assert (cancelled.status, cancelled.body["status"]) == (200, "CANCELLED")
    assert ask("DELETE", f"{EVENTS}/e").body == cancelled.body
    assert ask("GET", f"{EVENTS}/e").body == cancelled.body
    assert sent(resources) == []


def test_an_event_that_is_due_soon_goes_to_the_queue(resources: GivenResources, ask: Ask) -> None:
    assert ask("POST", EVENTS, wanted(delay=1.5)).status == 201
    assert sent(resources) == [message("e") + " after 1.5 s"]


def test_a_repeated_request_is_the_same_event_also_where_its_time_is_a_delay(
    resources: GivenResources, ask: Ask
) -> None:
    made = ask("POST", EVENTS, wanted())
    later(resources, 60)
    again = ask("POST", EVENTS, wanted())
    assert (made.status, again.status) == (201, 200)
    assert again.body == made.body


def test_an_id_with_a_different_body_is_a_conflict(resources: GivenResources, ask: Ask) -> None:
    ask("POST", EVENTS, wanted())
    later(resources, 60)
    refused = ask("POST", EVENTS, wanted(delay=3_601))
    assert refused.refusal == (409, "id_taken")
    assert refused.says == "there is an event e already, and it is another"
    assert ask("GET", f"{EVENTS}/e").body["at"] == AN_HOUR_ON


def test_a_repeated_request_does_not_restart_a_cancelled_event(
    resources: GivenResources, ask: Ask
) -> None:
    ask("POST", EVENTS, wanted(delay=1))
    ask("DELETE", f"{EVENTS}/e")
    sent(resources).clear()
    again = ask("POST", EVENTS, wanted(delay=1))
    assert (again.status, again.body["status"]) == (200, "CANCELLED")
    assert sent(resources) == []


def test_a_finished_event_is_too_late_to_cancel(resources: GivenResources, ask: Ask) -> None:
    ask("POST", EVENTS, wanted())
    resources.table.write(Update(events.key("e"), values={"status": "SUCCESS"}))
    refused = ask("DELETE", f"{EVENTS}/e")
    assert refused.refusal == (409, "too_late")
    assert refused.says == "the event is done: SUCCESS"


@pytest.mark.parametrize("name", ["e", "%00", "a%2Fb", "%FF", "%ED%A0%80", "a%20b", "x" * 3_000])
@pytest.mark.parametrize(
    ("method", "target"),
    [("GET", f"{EVENTS}/"), ("DELETE", f"{EVENTS}/"), ("GET", "/timers/")],
)
def test_an_unknown_event_is_not_found_whatever_its_id(
    ask: Ask, method: str, target: str, name: str
) -> None:
    assert ask(method, target + name).refusal == (404, "not_found")


@pytest.mark.parametrize("name", ["%00", "a%2Fb", "x" * 65, "x" * 3_000])
def test_a_malformed_id_is_not_read_from_the_table(
    resources: GivenResources, ask: Ask, name: str
) -> None:
    """DynamoDB refuses a key of more than 2,048 bytes."""
    resources.table = Unreadable(resources.table)
    assert ask("GET", f"{EVENTS}/{name}").refusal == (404, "not_found")
    assert ask("GET", f"{EVENTS}/e").refusal == (503, "unavailable")


def test_a_percent_encoded_id_is_found(ask: Ask) -> None:
    ask("POST", EVENTS, wanted(id="a-b_c"))
    for target in (f"{EVENTS}/a%2Db_%63", "/timers/a%2Db_%63", f"{EVENTS}/a%2db_c"):
        assert ask("GET", target).body["id"] == "a-b_c"


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"at": 1}, "give one of at and delay"),
        ({"target": {"queue": "q"}}, "target: no queue 'q'; there are mails, orders"),
        ({"payload": float("nan")}, "the body has a number that JSON does not know"),
    ],
)
def test_a_malformed_event_is_refused_and_not_stored(
    resources: GivenResources, ask: Ask, fields: dict[str, Any], named: str
) -> None:
    refused = ask("POST", EVENTS, wanted(**fields))
    assert refused.refusal == (400, "bad_request")
    assert refused.says == named
    assert sent(resources) == []
    assert ask("GET", f"{EVENTS}/e").status == 404


@pytest.mark.parametrize("body", [b"", b"\xff\xfe", b"[]", b"[" * 99_999, b'"\xed\xa0\x80"'])
@pytest.mark.parametrize("target", [EVENTS, "/timers"])
def test_a_body_that_is_no_json_object_is_a_bad_request(ask: Ask, body: bytes, target: str) -> None:
    for kind in ("application/json", "", "application/octet-stream", "text/plain"):
        refused = ask("POST", target, body, kind=kind)
        assert refused.refusal == (400, "bad_request")
        assert refused.says == "the body must be a JSON object"


def test_json_is_read_with_any_content_type(ask: Ask) -> None:
    for kind in ("", "text/plain", "application/x-www-form-urlencoded", "image/png"):
        assert (
            ask("POST", EVENTS, wanted(id=None) | {"id": f"e{len(kind)}"}, kind=kind).status == 201
        )


def test_a_payload_that_is_too_large_is_refused_with_its_limit(ask: Ask) -> None:
    refused = ask("POST", EVENTS, wanted(payload="x" * 65_535))
    assert refused.refusal == (413, "too_large")
    assert refused.says == "payload: give at most 65536 bytes of JSON"


@pytest.mark.parametrize("payload", ["\ud800", "\0", "🦆", 10**300, 1e-300, [[[]]] * 9, None])
def test_any_payload_is_returned_unchanged(ask: Ask, payload: object) -> None:
    assert ask("POST", EVENTS, wanted(payload=payload)).status == 201
    assert ask("GET", f"{EVENTS}/e").body["payload"] == payload
    assert ask("GET", EVENTS).body["events"][0]["payload"] == payload


# ---- URLs


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("ftp://example.com/", "the URL must begin with https://"),
        ("\ud800", "a space, a control character or a backslash"),
        ("https://10.0.0.1/", "10.0.0.1 resolves to an address that is not public"),
        ("https://private.example.com/", "resolves to an address that is not public"),
        ("https://unknown.example.com/", "does not resolve to an address"),
        ("https://" + "x" * 2_100, "give at most 2048"),
    ],
)
def test_a_url_that_may_not_be_called_is_refused_by_every_endpoint(
    ask: Ask, url: str, named: str
) -> None:
    for refused in (
        ask("POST", EVENTS, wanted(target={"url": url})),
        ask("POST", "/timers", {"hours": 0, "minutes": 0, "seconds": 0, "url": url}),
    ):
        assert refused.refusal == (400, "bad_request")
        assert named in refused.says


def test_without_a_secret_to_sign_with_no_event_goes_to_a_url(
    resources: GivenResources, ask: Ask
) -> None:
    resources.settings = replace(resources.settings, has_webhook_secrets=False)
    refused = ask("POST", EVENTS, wanted(target={"url": URL}))
    assert refused.refusal == (400, "bad_request")
    assert refused.says == (
        "url: no event can go to one here,"
        " because WEBHOOK_SECRETS is not set, so nothing can be signed"
    )
    assert ask("POST", EVENTS, wanted()).status == 201


# ---- timers


def timer(**parts: Any) -> dict[str, Any]:
    return {"hours": 0, "minutes": 0, "seconds": 0, "url": URL, **parts}


def test_a_timer_runs_down(resources: GivenResources, ask: Ask) -> None:
    made = ask("POST", "/timers", timer(hours=1, seconds=2))
    assert (made.status, set(made.body)) == (200, {"id"})
    name = made.body["id"]
    told = []
    for later in (0, 0.001, 1.5, 3_601.5, 3_602, 4_000):
        resources.clock = partial(float, NOON + later)
        told.append(ask("GET", f"/timers/{name}").body)
    assert told == [
        {"id": name, "time_left": left, "status": "ACTIVE"}
        for left in (3_602, 3_602, 3_601, 1, 0, 0)
    ]


@pytest.mark.parametrize(("seconds", "delay"), [(0, ""), (1, " after 1.0 s")])
def test_a_timer_of_at_most_one_second_is_enqueued_immediately(
    resources: GivenResources, ask: Ask, seconds: int, delay: str
) -> None:
    name = ask("POST", "/timers", timer(seconds=seconds)).body["id"]
    assert sent(resources) == [message(name) + delay]
    assert ask("GET", f"{EVENTS}/{name}").body["target"] == {"url": URL}


def test_every_event_can_be_looked_at_as_a_timer(ask: Ask) -> None:
    ask("POST", EVENTS, wanted())
    assert ask("GET", "/timers/e").body == {"id": "e", "time_left": 3_600, "status": "ACTIVE"}


# ---- echoes


def echo(ask: Ask, text: bytes, query: str = "", kind: str = "text/plain") -> Answer:
    return ask("POST", f"/echoAtTime{query}", text, kind=kind)


def test_the_id_of_an_echo_is_the_sha_1_of_time_and_text(
    resources: GivenResources, ask: Ask
) -> None:
    name = hashlib.sha1(b"1773496800500\nhello").hexdigest()  # noqa: S324
    made = echo(ask, b"hello", "?ts=1773496800.5")
    assert (made.status, made.body) == (201, {"id": name})
    later(resources, 1)
    again = echo(ask, b"hello", "?ts=1773496800.50")
    assert (again.status, again.body) == (200, {"id": name})
    assert ask("GET", f"{EVENTS}/{name}").body["payload"] == "hello"
    assert len(ask("GET", EVENTS).body["events"]) == 1


@pytest.mark.parametrize("query", ["", "?t=1", f"?ts={NOON:.0f}"])
def test_without_a_time_an_echo_is_due_now(resources: GivenResources, ask: Ask, query: str) -> None:
    name = echo(ask, b"hello", query).body["id"]
    assert sent(resources) == [message(name)]
    assert ask("GET", f"{EVENTS}/{name}").body["at"] == "2026-03-14T12:00:00.000Z"


def test_a_time_that_is_past_is_due_now(resources: GivenResources, ask: Ask) -> None:
    name = echo(ask, b"hello", "?ts=0").body["id"]
    assert sent(resources) == [message(name)]
    assert ask("GET", f"{EVENTS}/{name}").body["at"] == "1970-01-01T00:00:00.000Z"


@pytest.mark.parametrize("kind", ["application/json", "image/png", "text/plain;charset=latin1"])
def test_a_body_that_is_no_text_has_an_unsupported_type(ask: Ask, kind: str) -> None:
    refused = echo(ask, b"hello", kind=kind)
    assert refused.refusal == (415, "unsupported_media_type")
    assert refused.says == "give the text as text/plain, in UTF-8"


def test_a_text_without_a_type_is_a_text(ask: Ask) -> None:
    assert echo(ask, b"hello", kind="").status == 201


@pytest.mark.parametrize(
    ("query", "text", "named"),
    [
        ("?ts=soon", b"hello", "ts: give seconds since 1970"),
        ("?ts=1&ts=2", b"hello", "ts: give one, not 2"),
        ("", b"", "the body is empty: give the text to print"),
    ],
)
def test_a_malformed_echo_is_refused(ask: Ask, query: str, text: bytes, named: str) -> None:
    refused = echo(ask, text, query)
    assert refused.refusal == (400, "bad_request")
    assert refused.says.startswith(named)


def test_an_echo_whose_id_another_event_has_is_refused(ask: Ask) -> None:
    name = hashlib.sha1(b"0\nhello").hexdigest()  # noqa: S324
    ask("POST", EVENTS, wanted(id=name))
    assert echo(ask, b"hello", "?ts=0").refusal == (409, "id_taken")


# ---- lists


def test_events_are_listed_by_status_in_pages(ask: Ask) -> None:
    for number in range(60):
        ask("POST", EVENTS, wanted(id=f"e{number:02}", delay=3_600 + number))
    ask("DELETE", f"{EVENTS}/e07")
    first = ask("GET", EVENTS).body
    second = ask("GET", f"{EVENTS}?status=ACTIVE&cursor={first['cursor']}").body
    listed = [one["id"] for one in first["events"] + second["events"]]
    assert listed == [f"e{number:02}" for number in range(60) if number != 7]
    assert "cursor" not in second
    assert first["events"][0] == ask("GET", f"{EVENTS}/e00").body
    cancelled = ask("GET", f"{EVENTS}?status=CANCELLED").body
    assert [one["id"] for one in cancelled["events"]] == ["e07"]
    assert ask("GET", f"{EVENTS}?status=").body == first, "an empty one is as good as none"
    wrong = ask("GET", f"{EVENTS}?status=SUCCESS&cursor={first['cursor']}")
    assert wrong.refusal == (400, "bad_request")


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("status=active", "status: give ACTIVE, SUCCESS, ERROR, CANCELLED, not 'active'"),
        ("status=%ED%A0%80", "status: give ACTIVE"),
        ("status=ACTIVE&status=ERROR", "status: give one, not 2"),
        ("cursor=x", "cursor: give the one that the page of ACTIVE before answered"),
        ("cursor=%C3%BC", "cursor: give the one"),
        ("cursor=a&cursor=b", "cursor: give one, not 2"),
    ],
)
def test_a_malformed_query_of_the_list_is_refused(ask: Ask, query: str, named: str) -> None:
    refused = ask("GET", f"{EVENTS}?{query}")
    assert refused.refusal == (400, "bad_request")
    assert refused.says.startswith(named)


# ---- badges


def badge(ask: Ask, name: str = "e", query: str = "") -> tuple[str, str, bool]:
    """Return the message, colour and error flag of a badge, and check its status and headers."""
    json_badge = ask("GET", f"{EVENTS}/{name}/badge{query}", authorization="")
    drawn = ask("GET", f"{EVENTS}/{name}/badge.svg{query}", authorization="")
    for answer, kind in ((json_badge, "application/json"), (drawn, "image/svg+xml;charset=utf-8")):
        assert answer.status == 200
        assert answer.headers["Content-Type"] == kind
        assert answer.headers["Cache-Control"].startswith("max-age=0, no-cache, no-store")
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
    said = json_badge.body
    assert said["message"] in drawn.text
    assert drawn.text.startswith("<svg")
    assert (said["schemaVersion"], said["label"]) == (1, "event")
    return said["message"], said["color"], said.get("isError", False)


def test_a_badge_counts_down(resources: GivenResources, ask: Ask) -> None:
    ask("POST", EVENTS, wanted(delay=3 * 86_400))
    assert badge(ask) == ("in 3 days", "blue", False)
    later(resources, 2 * 86_400)
    assert badge(ask) == ("in 24 hours", "blue", False)
    later(resources, 86_400)
    assert badge(ask) == ("due now", "blue", False)
    later(resources, 60)
    assert badge(ask) == ("\u25b2 late by 60 seconds", "orange", False)
    resources.table.write(Update(events.key("e"), values={"status": "ERROR"}))
    assert badge(ask) == ("\u2717 failed", "red", False)
    resources.table.write(Update(events.key("e"), values={"status": "SUCCESS"}))
    assert badge(ask) == ("\u2713 fired", "brightgreen", False)


def test_a_badge_has_the_requested_options(ask: Ask) -> None:
    ask("POST", EVENTS, {"id": "e", "delay": 60, "target": {"log": True}})
    wanted = "?label=launch&color=red&labelColor=000&style=flat-square&logo=github"
    said = ask("GET", f"{EVENTS}/e/badge{wanted}", authorization="")
    assert said.body == {
        "schemaVersion": 1,
        "label": "launch",
        "message": "in 60 seconds",
        "color": "#dd4343",
        "labelColor": "#000000",
        "style": "flat-square",
        "namedLogo": "github",
    }
    drawn = ask("GET", f"{EVENTS}/e/badge.svg{wanted}", authorization="").text
    plain = ask("GET", f"{EVENTS}/e/badge.svg", authorization="").text
    assert "launch" in drawn
    assert len(drawn) != len(plain)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (
            "?style=round",
            "style: give flat, flat-square, plastic, for-the-badge, social, not 'round'",
        ),
        ("?label=a&label=b", "label: give one, not 2"),
    ],
)
def test_a_badge_with_a_malformed_option_says_how_to_fix_it(
    ask: Ask, query: str, reason: str
) -> None:
    assert badge(ask, "e", query) == (reason, "red", True)


@pytest.mark.parametrize("name", ["e", "%00", "a%2Fb", "%FF", "x" * 3_000])
def test_a_badge_of_an_unknown_event_is_an_error_badge(ask: Ask, name: str) -> None:
    assert badge(ask, name) == ("no such event", "red", True)


# ---- failures of the storage


class Unreadable(FaultyTable):
    """A table that can't be read."""

    failure: type[Exception] = Unavailable

    def get(self, key: Key) -> Item | None:
        raise self.failure(f"no answer for {key}")

    def query_due(self, batch: str, **_: Any) -> list[Any]:
        raise self.failure(f"no answer for {batch}")


def failing(_: Sequence[Write]) -> None:
    raise Refused("no such table")


def test_a_table_that_does_not_answer_is_503_with_a_time_to_retry(
    resources: GivenResources, ask: Ask
) -> None:
    resources.table = Unreadable(resources.table, before_write=failing)
    for method, target, body in (
        ("POST", EVENTS, wanted()),
        ("POST", "/timers", timer()),
        ("GET", EVENTS, b""),
        ("GET", f"{EVENTS}/e", b""),
        ("DELETE", f"{EVENTS}/e", b""),
        ("GET", "/timers/e", b""),
    ):
        answer = ask(method, target, body)
        assert answer.refusal == (503, "unavailable"), target
        assert answer.headers["Retry-After"] == "1"
    assert echo(ask, b"hello").refusal == (503, "unavailable")
    assert badge(ask) == ("unavailable: try again", "red", True)


def test_a_queue_that_fails_leaves_an_accepted_event_to_the_sweep(
    resources: GivenResources, ask: Ask
) -> None:
    resources.delivery_queue = FakeQueue(Unavailable("down"))
    assert ask("POST", EVENTS, wanted(delay=0)).status == 201
    assert schedule.read(resources.table, "e").status is Status.ACTIVE


def test_a_retry_finds_an_event_whose_write_had_no_answer(
    resources: GivenResources, ask: Ask
) -> None:
    real = resources.table
    resources.table = FaultyTable(real, after_write=failing)
    assert ask("POST", EVENTS, wanted()).refusal == (503, "unavailable")
    resources.table = real
    later(resources, 5)
    again = ask("POST", EVENTS, wanted())
    assert (again.status, again.body["at"]) == (200, AN_HOUR_ON)
