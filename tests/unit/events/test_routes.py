"""Routes of events: their statuses, their errors, their JSON and their badges."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.badges.options import Badge
from chalicelib.events import event as events
from chalicelib.events import schedule, serializers
from chalicelib.events.event import Attempt, Status, Target, TargetKind
from chalicelib.http import tokens
from chalicelib.storage.writes import Update
from simulation.resources import Names
from simulation.scheduled_events import AT, an_event
from simulation.storage import FakeQueue, store_token
from tests.unit.http_requests import Answer, Api, read_badge

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


class World(Api):
    """A client that sends the operator's token, unless a test gives another one."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.deliveries = FakeQueue()
        self.resources.delivery_queue = self.deliveries
        self.resources.resolver = Names(["10.0.0.1"])
        self.set(
            api_token_digests=frozenset({tokens.digest(TOKEN)}),
            event_queues={"mails": "", "orders": ""},
            webhook_allow="127.0.0.0/8",
            has_webhook_secrets=True,
        )

    def ask(
        self, method: str, target: str, body: object = b"", token: str = TOKEN, **more: Any
    ) -> Answer:
        return super().ask(method, target, body, token, **more)


@pytest.fixture
def world() -> World:
    return World()


def wanted(**fields: Any) -> dict[str, Any]:
    return {"id": "e", "delay": 3_600, "target": LOG, **fields}


# ---- permissions


@pytest.mark.parametrize(("method", "target"), ENDPOINTS)
def test_each_endpoint_requires_a_token_of_an_operator(
    world: World, method: str, target: str
) -> None:
    user = tokens.new_token()
    store_token(world.table, user, "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11")
    assert world.ask(method, target, token="").refusal == (401, "unauthorized")
    assert world.ask(method, target, token=user).refusal == (403, "forbidden")
    assert world.ask(method, target).status not in (401, 403)


# ---- events


def test_an_event_is_accepted_shown_and_cancelled(world: World) -> None:
    made = world.ask("POST", EVENTS, wanted(payload={"a": [1, None]}))
    assert made.status == 201
    assert made.headers["Cache-Control"] == "no-store"
    assert made.body == serializers.to_json(schedule.read(world.table, "e"))
    assert (made.body["at"], made.body["payload"]) == (AN_HOUR_ON, {"a": [1, None]})
    assert world.ask("GET", f"{EVENTS}/e").body == made.body
    cancelled = world.ask("DELETE", f"{EVENTS}/e")
    assert (cancelled.status, cancelled.body["status"]) == (200, "CANCELLED")
    assert world.ask("DELETE", f"{EVENTS}/e").body == cancelled.body
    assert world.ask("GET", f"{EVENTS}/e").body == cancelled.body
    assert world.deliveries.bodies == []


def test_a_repeated_request_is_the_same_event_and_another_of_its_id_a_conflict(
    world: World,
) -> None:
    made = world.ask("POST", EVENTS, wanted())
    world.clock.now += 60
    again = world.ask("POST", EVENTS, wanted())
    assert (made.status, again.status, again.body) == (201, 200, made.body)
    assert world.ask("POST", EVENTS, wanted(delay=3_601)).refusal == (409, "id_taken")


def test_a_finished_event_is_too_late_to_cancel(world: World) -> None:
    world.ask("POST", EVENTS, wanted())
    world.table.write(Update(events.key("e"), values={"status": "SUCCESS"}))
    assert world.ask("DELETE", f"{EVENTS}/e").refusal == (409, "too_late")


@pytest.mark.parametrize("name", ["e", "%00", "a%2Fb", "%ED%A0%80", "x" * 3_000])
@pytest.mark.parametrize(
    ("method", "target"),
    [("GET", f"{EVENTS}/"), ("DELETE", f"{EVENTS}/"), ("GET", "/timers/")],
)
def test_an_unknown_event_is_not_found_whatever_its_id(
    world: World, method: str, target: str, name: str
) -> None:
    assert world.ask(method, target + name).refusal == (404, "not_found")


# ---- URLs


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("ftp://example.com/", "the URL must begin with https://"),
        ("https://private.example.com/", "resolves to an address that is not public"),
    ],
)
def test_a_url_that_may_not_be_called_is_refused_by_every_endpoint(
    world: World, url: str, named: str
) -> None:
    for refused in (
        world.ask("POST", EVENTS, wanted(target={"url": url})),
        world.ask("POST", "/timers", {"hours": 0, "minutes": 0, "seconds": 0, "url": url}),
    ):
        assert refused.refusal == (400, "bad_request")
        assert named in refused.says


def test_without_a_secret_to_sign_with_no_event_goes_to_a_url(world: World) -> None:
    world.set(has_webhook_secrets=False)
    refused = world.ask("POST", EVENTS, wanted(target={"url": URL}))
    assert refused.refusal == (400, "bad_request")
    assert refused.says == (
        "url: no event can go to one here,"
        " because WEBHOOK_SECRETS is not set, so nothing can be signed"
    )
    assert world.ask("POST", EVENTS, wanted()).status == 201


# ---- timers


def timer(**parts: Any) -> dict[str, Any]:
    return {"hours": 0, "minutes": 0, "seconds": 0, "url": URL, **parts}


def test_a_timer_is_an_event_that_runs_down(world: World) -> None:
    made = world.ask("POST", "/timers", timer(hours=1, seconds=2))
    assert (made.status, set(made.body)) == (200, {"id"})
    name = made.body["id"]
    assert world.ask("GET", f"{EVENTS}/{name}").body["target"] == {"url": URL}
    world.clock.now += 1.5
    assert world.ask("GET", f"/timers/{name}").body == {
        "id": name,
        "time_left": 3_601,
        "status": "ACTIVE",
    }


# ---- echoes


def echo(world: World, text: bytes, query: str = "", kind: str = "text/plain") -> Answer:
    return world.ask("POST", f"/echoAtTime{query}", text, kind=kind)


def test_a_repeated_echo_is_one_event(world: World) -> None:
    made = echo(world, b"hello", "?ts=1773496800.5")
    world.clock.now += 1
    again = echo(world, b"hello", "?ts=1773496800.50")
    assert (made.status, again.status, again.body) == (201, 200, made.body)
    [listed] = world.ask("GET", EVENTS).body["events"]
    assert (listed["id"], listed["payload"]) == (made.body["id"], "hello")


def test_an_echo_is_text_of_any_or_no_type(world: World) -> None:
    assert echo(world, b"hello", kind="").status == 201
    refused = echo(world, b"hello", kind="application/json")
    assert refused.refusal == (415, "unsupported_media_type")


def test_an_empty_time_of_an_echo_is_not_a_missing_one(world: World) -> None:
    assert echo(world, b"hello", "?ts=").says.startswith("ts: give seconds since 1970")


# ---- lists


def test_events_are_listed_by_status_in_pages(world: World) -> None:
    for number in range(52):
        world.ask("POST", EVENTS, wanted(id=f"e{number:02}", delay=3_600 + number))
    world.ask("DELETE", f"{EVENTS}/e07")
    first = world.ask("GET", EVENTS).body
    second = world.ask("GET", f"{EVENTS}?status=ACTIVE&cursor={first['cursor']}").body
    assert first["events"][0] == world.ask("GET", f"{EVENTS}/e00").body
    assert [[one["id"] for one in second["events"]], second.keys()] == [["e51"], {"events"}]
    cancelled = world.ask("GET", f"{EVENTS}?status=CANCELLED").body
    assert [one["id"] for one in cancelled["events"]] == ["e07"]


# ---- badges


def badge(world: World, name: str = "e", query: str = "") -> tuple[str, str, str, bool]:
    return read_badge(
        lambda path: world.ask("GET", path, token=""), f"{EVENTS}/{name}/badge", query
    )


def test_a_badge_counts_down(world: World) -> None:
    world.ask("POST", EVENTS, wanted(delay=3 * 86_400))
    assert badge(world) == ("event", "in 3 days", "blue", False)
    world.clock.now += 3 * 86_400 + 60
    late = ("launch", "\u25b2 late by 60 seconds", "orange", False)
    assert badge(world, query="?label=launch") == late


@pytest.mark.parametrize("name", ["e", "x" * 3_000])
def test_a_badge_of_an_unknown_event_is_an_error_badge(world: World, name: str) -> None:
    assert badge(world, name) == ("event", "no such event", "red", True)


# ---- JSON


NOON = "2026-03-14T12:00:00.000Z"
DAY, HOUR, MINUTE, SECOND = 86_400_000, 3_600_000, 60_000, 1_000


def test_an_active_event_has_its_next_attempt() -> None:
    assert serializers.to_json(replace(an_event(), next_at=AT + 1)) == {
        "id": "e",
        "status": "ACTIVE",
        "at": NOON,
        "created": NOON,
        "target": {"log": True},
        "attempts": [],
        "attempt_count": 0,
        "payload": "hello",
        "next_attempt": "2026-03-14T12:00:00.001Z",
    }


@pytest.mark.parametrize(
    ("status", "said", "color"),
    [
        (Status.SUCCESS, "\u2713 fired", "brightgreen"),
        (Status.ERROR, "\u2717 failed", "red"),
        (Status.CANCELLED, "cancelled", "lightgrey"),
    ],
)
def test_a_finished_event_says_so_has_no_time_left_and_no_missing_attributes(
    status: Status, said: str, color: str
) -> None:
    """A cancelled timer has not elapsed, but never will."""
    event = replace(an_event(at=AT + DAY), status=status, payload="")
    assert serializers.to_json(event).keys() == {
        "id", "status", "at", "created", "target", "attempts", "attempt_count",
    }  # fmt: skip
    assert serializers.timer(event, AT) == {"id": "e", "time_left": 0, "status": str(status)}
    assert serializers.badge(event, AT) == Badge("event", said, color)


def test_attempts_are_in_order_and_the_last_error_and_the_worker_are_separate() -> None:
    attempts = (Attempt(AT, AT + 1, 500, "status 500"), Attempt(AT, AT + 1, 204), Attempt(AT))
    event = replace(an_event(), attempts=attempts, tries=7, claim="worker", lease=AT + MINUTE)
    shown = serializers.to_json(
        replace(event, payload="null", target=Target(TargetKind.QUEUE, "mails"))
    )
    ended = {"started": NOON, "ended": "2026-03-14T12:00:00.001Z"}
    assert shown["attempts"] == [
        ended | {"status": 500, "error": "status 500"},
        ended | {"status": 204},
        {"started": NOON},
    ]
    assert (shown["last_error"], shown["attempt_count"]) == ("status 500", 7)
    assert shown["claim"] == {"by": "worker", "until": "2026-03-14T12:01:00.000Z"}
    assert (shown["payload"], shown["target"]) == (None, {"queue": "mails"})


@pytest.mark.parametrize(
    ("ahead", "left"), [(-5_000, 0), (-1, 0), (0, 0), (1, 1), (1_000, 1), (1_001, 2), (DAY, 86_400)]
)
def test_the_time_left_of_a_timer_is_whole_seconds_and_never_below_0(ahead: int, left: int) -> None:
    assert serializers.timer(an_event(at=AT + ahead), AT) == {
        "id": "e",
        "time_left": left,
        "status": "ACTIVE",
    }


@pytest.mark.parametrize(
    ("ahead", "said", "color"),
    [
        (4 * DAY - SECOND, "in 3 days", "blue"),
        (2 * DAY, "in 2 days", "blue"),
        (2 * DAY - SECOND, "in 47 hours", "blue"),
        (2 * HOUR, "in 2 hours", "blue"),
        (2 * MINUTE, "in 2 minutes", "blue"),
        (2 * MINUTE - SECOND, "in 119 seconds", "blue"),
        (SECOND + 1, "in 2 seconds", "blue"),
        (SECOND, "in 1 second", "blue"),
        (1, "in 1 second", "blue"),
        (0, "due now", "blue"),
        (1 - MINUTE, "due now", "blue"),
        (-MINUTE, "\u25b2 late by 60 seconds", "orange"),
        (-2 * MINUTE, "\u25b2 late by 2 minutes", "orange"),
        (1 - 3 * DAY, "\u25b2 late by 2 days", "orange"),
    ],
)
def test_a_countdown_has_the_largest_unit_with_two_or_more_until_the_event_is_late(
    ahead: int, said: str, color: str
) -> None:
    assert serializers.badge(an_event(at=AT + ahead), AT) == Badge("event", said, color)


FAILED, RUNNING = Attempt(AT, AT + 1, 500, "status 500"), Attempt(AT + MINUTE)


@pytest.mark.parametrize(
    ("attempts", "left", "said", "color"),
    [
        ((FAILED,), 5 * MINUTE, "\u25b2 failing, retry in 5 minutes", "orange"),
        ((FAILED, RUNNING), 5 * MINUTE, "\u25b2 failing, retry in 5 minutes", "orange"),
        ((RUNNING,), 5 * MINUTE, "in 5 minutes", "blue"),
        ((FAILED,), SECOND, "\u25b2 failing, retry in 1 second", "orange"),
        ((FAILED,), -DAY, "\u25b2 failing, retry due now", "orange"),
    ],
)
def test_a_failing_event_says_when_the_next_attempt_is_and_is_not_late(
    attempts: tuple[Attempt, ...], left: int, said: str, color: str
) -> None:
    next_at, tries = AT + left, len(attempts)
    event = replace(an_event(at=AT - DAY), attempts=attempts, tries=tries, next_at=next_at)
    assert serializers.badge(event, AT) == Badge("event", said, color)


def test_attempts_before_a_redrive_are_not_failures_of_the_new_round() -> None:
    event = replace(an_event(), attempts=(FAILED,), tries=1, round=1, next_at=AT + DAY)
    assert serializers.badge(event, AT + DAY).message == "due now"
    running = replace(event, attempts=(FAILED, RUNNING), tries=2)
    assert serializers.badge(running, AT + DAY).message == "due now"
    failed = replace(event, attempts=(FAILED, FAILED), tries=2, next_at=AT + 2 * DAY)
    assert serializers.badge(failed, AT + DAY).message == "\u25b2 failing, retry in 24 hours"
