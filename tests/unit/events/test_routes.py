"""Routes of events: their statuses, their errors and their badges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from chalicelib.events import event as events
from chalicelib.events import schedule, serializers
from chalicelib.http import tokens
from chalicelib.settings import Settings
from chalicelib.storage.writes import Update
from simulation.clocks import NOON
from simulation.hosts import Names
from simulation.memory_table import MemoryTable
from simulation.queues import FakeQueue
from simulation.resources import GivenResources
from simulation.tokens import store_token
from tests.unit import http_requests
from tests.unit.http_requests import Answer, read_badge

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
        resolver=Names(["10.0.0.1"]),
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
def test_each_endpoint_requires_a_token_of_an_operator(
    resources: GivenResources, ask: Ask, method: str, target: str
) -> None:
    user = tokens.new_token()
    store_token(resources.table, user, "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11")
    assert ask(method, target, authorization="").refusal == (401, "unauthorized")
    assert ask(method, target, authorization=f"Bearer {user}").refusal == (403, "forbidden")
    assert ask(method, target).status not in (401, 403)


# ---- events


def test_an_event_is_accepted_shown_and_cancelled(resources: GivenResources, ask: Ask) -> None:
    made = ask("POST", EVENTS, wanted(payload={"a": [1, None]}))
    assert made.status == 201
    assert made.headers["Cache-Control"] == "no-store"
    assert made.body == serializers.to_json(schedule.read(resources.table, "e"))
    assert (made.body["at"], made.body["payload"]) == (AN_HOUR_ON, {"a": [1, None]})
    assert ask("GET", f"{EVENTS}/e").body == made.body
    cancelled = ask("DELETE", f"{EVENTS}/e")
    assert (cancelled.status, cancelled.body["status"]) == (200, "CANCELLED")
    assert ask("DELETE", f"{EVENTS}/e").body == cancelled.body
    assert ask("GET", f"{EVENTS}/e").body == cancelled.body
    assert sent(resources) == []


def test_a_repeated_request_is_the_same_event_and_another_of_its_id_a_conflict(
    resources: GivenResources, ask: Ask
) -> None:
    made = ask("POST", EVENTS, wanted())
    later(resources, 60)
    again = ask("POST", EVENTS, wanted())
    assert (made.status, again.status, again.body) == (201, 200, made.body)
    assert ask("POST", EVENTS, wanted(delay=3_601)).refusal == (409, "id_taken")


def test_a_finished_event_is_too_late_to_cancel(resources: GivenResources, ask: Ask) -> None:
    ask("POST", EVENTS, wanted())
    resources.table.write(Update(events.key("e"), values={"status": "SUCCESS"}))
    assert ask("DELETE", f"{EVENTS}/e").refusal == (409, "too_late")


@pytest.mark.parametrize("name", ["e", "%00", "a%2Fb", "%ED%A0%80", "x" * 3_000])
@pytest.mark.parametrize(
    ("method", "target"),
    [("GET", f"{EVENTS}/"), ("DELETE", f"{EVENTS}/"), ("GET", "/timers/")],
)
def test_an_unknown_event_is_not_found_whatever_its_id(
    ask: Ask, method: str, target: str, name: str
) -> None:
    assert ask(method, target + name).refusal == (404, "not_found")


# ---- URLs


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("ftp://example.com/", "the URL must begin with https://"),
        ("https://private.example.com/", "resolves to an address that is not public"),
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


def test_a_timer_is_an_event_that_runs_down(resources: GivenResources, ask: Ask) -> None:
    made = ask("POST", "/timers", timer(hours=1, seconds=2))
    assert (made.status, set(made.body)) == (200, {"id"})
    name = made.body["id"]
    assert ask("GET", f"{EVENTS}/{name}").body["target"] == {"url": URL}
    later(resources, 1.5)
    assert ask("GET", f"/timers/{name}").body == {
        "id": name,
        "time_left": 3_601,
        "status": "ACTIVE",
    }


# ---- echoes


def echo(ask: Ask, text: bytes, query: str = "", kind: str = "text/plain") -> Answer:
    return ask("POST", f"/echoAtTime{query}", text, kind=kind)


def test_a_repeated_echo_is_one_event(resources: GivenResources, ask: Ask) -> None:
    made = echo(ask, b"hello", "?ts=1773496800.5")
    later(resources, 1)
    again = echo(ask, b"hello", "?ts=1773496800.50")
    assert (made.status, again.status, again.body) == (201, 200, made.body)
    [listed] = ask("GET", EVENTS).body["events"]
    assert (listed["id"], listed["payload"]) == (made.body["id"], "hello")


def test_an_echo_is_text_of_any_or_no_type(ask: Ask) -> None:
    assert echo(ask, b"hello", kind="").status == 201
    refused = echo(ask, b"hello", kind="application/json")
    assert refused.refusal == (415, "unsupported_media_type")


def test_an_empty_time_of_an_echo_is_not_a_missing_one(ask: Ask) -> None:
    assert echo(ask, b"hello", "?ts=").says.startswith("ts: give seconds since 1970")


# ---- lists


def test_events_are_listed_by_status_in_pages(ask: Ask) -> None:
    for number in range(52):
        ask("POST", EVENTS, wanted(id=f"e{number:02}", delay=3_600 + number))
    ask("DELETE", f"{EVENTS}/e07")
    first = ask("GET", EVENTS).body
    second = ask("GET", f"{EVENTS}?status=ACTIVE&cursor={first['cursor']}").body
    assert first["events"][0] == ask("GET", f"{EVENTS}/e00").body
    assert [[one["id"] for one in second["events"]], second.keys()] == [["e51"], {"events"}]
    cancelled = ask("GET", f"{EVENTS}?status=CANCELLED").body
    assert [one["id"] for one in cancelled["events"]] == ["e07"]


# ---- badges


def badge(ask: Ask, name: str = "e", query: str = "") -> tuple[str, str, str, bool]:
    return read_badge(
        lambda path: ask("GET", path, authorization=""), f"{EVENTS}/{name}/badge", query
    )


def test_a_badge_counts_down(resources: GivenResources, ask: Ask) -> None:
    ask("POST", EVENTS, wanted(delay=3 * 86_400))
    assert badge(ask) == ("event", "in 3 days", "blue", False)
    later(resources, 3 * 86_400 + 60)
    late = ("launch", "\u25b2 late by 60 seconds", "orange", False)
    assert badge(ask, query="?label=launch") == late


@pytest.mark.parametrize("name", ["e", "x" * 3_000])
def test_a_badge_of_an_unknown_event_is_an_error_badge(ask: Ask, name: str) -> None:
    assert badge(ask, name) == ("event", "no such event", "red", True)
