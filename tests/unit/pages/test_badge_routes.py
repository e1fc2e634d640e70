"""The badge's routes: which view is taken, and what happens when storage fails."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from chalicelib import telemetry
from chalicelib.counting import keys
from chalicelib.counting.badge_count import AHEAD_MILLISECONDS
from chalicelib.counting.view import View, ViewMessages
from chalicelib.limits import Action, Room
from chalicelib.settings import Settings
from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.items import Item, Value
from chalicelib.storage.ports import Table
from simulation.clocks import NOON
from simulation.logs import logged_events
from simulation.memory_table import MemoryTable
from simulation.queues import FakeQueue
from simulation.resources import GivenResources, Places
from simulation.tables import FaultyTable, raising
from simulation.views import AT_NOON, BADGE, put_summary, put_views, shown
from tests.unit import http_requests
from tests.unit.http_requests import Answer
from vumi.server.client_limits import ClientLimits, Rate


def unreadable(table: Table) -> FaultyTable:
    """Return a table whose counts can't be read."""

    def fail(_: str) -> None:
        raise UnavailableError("no answer")

    return FaultyTable(table, before_read=fail)


@pytest.fixture
def resources() -> GivenResources:
    return GivenResources(
        table=MemoryTable(), views_queue=ViewMessages(FakeQueue()), clock=lambda: NOON
    )


def queue_of(resources: GivenResources) -> FakeQueue:
    assert isinstance(resources.views_queue, ViewMessages)
    assert isinstance(resources.views_queue.queue, FakeQueue)
    return resources.views_queue.queue


def view_in_queue(resources: GivenResources) -> View:
    """Return the one view that is in the queue."""
    [body] = queue_of(resources).bodies
    return View.from_message(body)


def ask(
    resources: GivenResources, method: str = "GET", path: str = "/api/v1/views", query: str = ""
) -> str:
    answer = http_requests.ask(resources, method, f"{path}?id={BADGE}{query}")
    assert answer.status == 200
    return str(answer.body["message"])


@pytest.mark.parametrize("path", ["/api/v1/views", "/v1/api/views"])
def test_head_is_answered_by_both_paths_and_counts_nothing(
    resources: GivenResources, path: str
) -> None:
    assert ask(resources, "HEAD", path) == "0"
    assert queue_of(resources).bodies == []


def test_a_view_follows_the_summary_that_its_visitor_read(resources: GivenResources) -> None:
    """It is later than the watermark, not the first of its window, and hot."""
    put_summary(resources.table, count=5, watermark=AT_NOON + 4_000, hot=int(NOON) + 1)
    put_views(resources.table, AT_NOON + 4_001)
    assert ask(resources) == "6"
    one = view_in_queue(resources)
    assert one == View(BADGE, one.ulid, first=False, hot=True)
    assert one.milliseconds == AT_NOON + 4_001


@pytest.mark.parametrize(("live", "hot"), [(69, False), (70, True)])
def test_the_settings_say_from_how_many_live_views_on_a_badge_is_hot(
    resources: GivenResources, live: int, *, hot: bool
) -> None:
    resources.settings = Settings(hot_views=70)
    put_views(resources.table, *range(AT_NOON - live, AT_NOON))
    ask(resources)
    assert (view_in_queue(resources).hot, view_in_queue(resources).fold) == (hot, hot)


def test_a_frozen_badge_takes_no_view_and_shows_its_live_ones(resources: GivenResources) -> None:
    put_summary(resources.table, count=5, frozen=1)
    put_views(resources.table, AT_NOON)
    assert ask(resources) == "6"
    assert queue_of(resources).bodies == []


def test_a_client_that_creates_too_many_badges_gets_one_that_says_so_and_stores_nothing(
    resources: GivenResources,
) -> None:
    resources.limits = ClientLimits({Action.NEW_ID: Rate(1, 60)}, lambda: NOON)

    def visit(badge_id: str, kind: str = "", method: str = "GET") -> Answer:
        path = f"/api/v1/views{kind}?id={badge_id}"
        return http_requests.ask(resources, method, path, client="192.0.2.1")

    assert visit("first").body["message"] == "0"
    refused = visit("second")
    assert refused.body == {
        "schemaVersion": 1,
        "label": "views",
        "message": "too many new badges from your address: try again in 60 s",
        "color": "red",
        "isError": True,
    }
    assert refused.status == 200
    assert "no-store" in refused.headers["Cache-Control"]
    assert "too many new badges" in visit("third", ".svg").text
    assert ask(resources, query="&peek=1") == "0"
    assert visit("second", method="HEAD").status == 200
    assert [View.from_message(body).badge_id for body in queue_of(resources).bodies] == ["first"]


def test_a_client_that_made_its_ids_of_a_day_gets_a_badge_that_says_so(
    resources: GivenResources,
) -> None:
    """A minute's limit that refuses takes nothing from the day's."""
    now = [0.0]
    rates = {Action.NEW_ID: Rate(1, 60), Action.NEW_ID_A_DAY: Rate(2, 86_400)}
    resources.limits = limits = ClientLimits(rates, lambda: now[0])
    said = []
    for place, now[0] in enumerate((0, 40, 80, 150)):
        answer = http_requests.ask(
            resources, "GET", f"/api/v1/views?id={place}", client="192.0.2.1"
        )
        said.append(answer.body["message"])
    assert [text.partition(" from")[0] for text in said] == [
        "0",
        "too many new badges",
        "0",
        "too many new badges in a day",
    ]
    assert limits.left()["new_id_a_day"] == 0
    assert len(queue_of(resources).bodies) == 2


def test_without_a_place_a_new_id_gets_a_badge_that_says_so_and_others_count(
    resources: GivenResources,
) -> None:
    put_summary(resources.table, count=5)
    resources.quota = Places(1)

    def visit(badge_id: str, **more: str) -> Answer:
        return http_requests.ask(resources, "GET", f"/api/v1/views?id={badge_id}", **more)

    assert [visit(one).body["message"] for one in ("a", "b")] == ["0", "no new badges here"]
    assert ask(resources) == "5"
    assert visit("b&peek=1").body["message"] == "0", "reads nothing into being"
    taken = [View.from_message(body).badge_id for body in queue_of(resources).bodies]
    assert taken == ["a", BADGE]


def test_without_a_place_no_new_id_is_claimed(resources: GivenResources) -> None:
    put_summary(resources.table, "known", version=1)
    resources.quota = Places(1)

    def claim(badge_id: str) -> Answer:
        return http_requests.ask(resources, "POST", "/api/v1/badges", {"id": badge_id})

    assert claim("a").status == 201
    assert claim("b").refusal == (403, "no_new_badges")
    assert claim("known").status == 201


@pytest.mark.parametrize("room", [Room.VIEWS, Room.COUNTS])
def test_without_room_a_new_id_gets_a_badge_that_says_so_and_stores_nothing(
    resources: GivenResources, room: Room
) -> None:
    put_summary(resources.table, count=5)
    resources.room = lambda: room

    def visit(badge_id: str, method: str = "GET") -> Answer:
        return http_requests.ask(resources, method, f"/api/v1/views?id={badge_id}")

    refused = visit("new")
    assert (refused.status, refused.body["isError"]) == (200, True)
    said = "no new badges now: the disk of this server is nearly full"
    assert refused.body["message"] == said
    assert visit("new", "POST").refusal == (507, "no_room")
    assert queue_of(resources).bodies == []
    assert ask(resources) == "5"
    assert len(queue_of(resources).bodies) == 1


@pytest.mark.parametrize(
    "known",
    [
        lambda table: put_views(table, AT_NOON),
        lambda table: put_summary(table, count=5, version=1),
        lambda table: put_summary(table, base=5, version=1),
    ],
    ids=["views", "folded", "claimed"],
)
def test_a_view_of_a_known_id_is_never_refused(
    resources: GivenResources, known: Callable[[Table], object]
) -> None:
    resources.limits = ClientLimits({Action.NEW_ID: Rate(1, 60)}, lambda: NOON)
    known(resources.table)
    for _ in range(3):
        http_requests.ask(resources, "GET", f"/api/v1/views?id={BADGE}", client="192.0.2.1")
    assert len(queue_of(resources).bodies) == 3


@pytest.mark.parametrize("path", ["/api/v1/views", "/v1/api/views", "/api/v1/views.svg"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_an_id_that_the_operator_does_not_count_has_a_badge_that_says_so(
    resources: GivenResources, path: str, method: str
) -> None:
    """Its count is not read, so a badge that was counted before shows nothing either."""
    resources.settings = Settings(ids=("owner/*",))
    resources.table = FaultyTable(resources.table, before_read=raising(AssertionError()))
    answer = http_requests.ask(resources, method, f"{path}?id={BADGE}")
    assert answer.status == 200
    assert "this id is not counted here: the operator must add it to IDS" in answer.text
    assert queue_of(resources).bodies == []


@pytest.mark.parametrize("path", ["/api/v1/views", "/v1/api/views", "/api/v1/views.svg"])
def test_a_badge_with_an_unknown_option_says_so_and_counts_nothing(
    resources: GivenResources, path: str
) -> None:
    answer = http_requests.ask(resources, "GET", f"{path}?id={BADGE}&colour=red")
    assert answer.status == 200
    assert "unknown option 'colour': did you mean color" in answer.text
    assert queue_of(resources).bodies == []


@pytest.mark.parametrize(
    ("query", "label", "message"),
    [
        ("", "views", "1008"),
        ("&show=today", "views today", "5"),
        ("&show=week", "views this week", "8"),
        ("&show=month&label=seen", "seen", "8"),
        ("&show=year&tz=%2B14:00", "views this year", "8"),
        ("&show=today-total&format=comma", "views", "5 today · 1,008"),
        ("&show=today-total&base=7", "views", "5 today · 1015"),
        ("&show=today&tz=-11", "views today", "1"),
    ],
)
def test_a_badge_shows_the_views_of_a_period_and_counts_as_usual(
    resources: GivenResources, query: str, label: str, message: str
) -> None:
    """It is Saturday noon: 4 views of today are counted, one is live, 3 are of yesterday."""
    put_period(resources.table)
    answer = http_requests.ask(resources, "GET", f"/api/v1/views?id={BADGE}{query}")
    assert (answer.body["label"], answer.body["message"]) == (label, message)
    assert view_in_queue(resources).milliseconds == AT_NOON
    drawn = http_requests.ask(resources, "HEAD", f"/api/v1/views.svg?id={BADGE}{query}").text
    assert f"<title>{label}: {message}</title>" in drawn
    assert len(queue_of(resources).bodies) == 1


def test_an_image_has_a_line_of_the_last_days_and_json_has_none(resources: GivenResources) -> None:
    put_period(resources.table)
    path, query = "/api/v1/views.svg", f"?id={BADGE}&spark=7&show=today"
    drawn = http_requests.ask(resources, "GET", path + query).text
    assert "<title>views today: 5; last 7 days: 8, at most 5 a day</title>" in drawn
    assert drawn.count("<path") == 2
    refused = http_requests.ask(resources, "GET", "/api/v1/views" + query).body
    assert refused["message"] == "unknown option 'spark': leave it out"
    assert len(queue_of(resources).bodies) == 1


@pytest.mark.parametrize("query", ["&show=year", "&show=week", "&spark=7"])
def test_a_view_is_taken_if_the_days_of_a_period_cannot_be_read(
    resources: GivenResources, query: str
) -> None:
    put_period(resources.table)
    failure = UnavailableError("no answer")
    resources.table = FaultyTable(resources.table, before_read=raising(None, failure))
    answer = http_requests.ask(resources, "GET", f"/api/v1/views.svg?id={BADGE}{query}")
    assert "count unavailable, view taken" in answer.text
    assert view_in_queue(resources).milliseconds == AT_NOON + AHEAD_MILLISECONDS


def put_period(table: Table) -> None:
    """Put views of yesterday and today, and a base."""
    yesterday: Item = {"PK": f"USER#{BADGE}", "SK": "DAY#2026-03-13", "views": 3, "h23": 3}
    table.put_all([yesterday])
    today: dict[str, Value] = {"day": "2026-03-14", "h01": 4}
    put_summary(table, count=7, base=1_000, today=today, watermark=AT_NOON - 1_000)
    put_views(table, AT_NOON - 500)


def test_a_peek_that_cannot_read_the_count_takes_no_view(resources: GivenResources) -> None:
    resources.table = unreadable(resources.table)
    assert (
        ask(resources, query="&peek=1") == ask(resources, "HEAD") == "count unavailable: try again"
    )
    assert queue_of(resources).bodies == []


def test_a_view_without_a_read_is_as_far_ahead_as_a_life_begins_and_has_a_marker(
    resources: GivenResources, caplog: pytest.LogCaptureFixture
) -> None:
    resources.table = unreadable(resources.table)
    assert ask(resources) == "count unavailable, view taken"
    assert view_in_queue(resources) == View(BADGE, view_in_queue(resources).ulid, first=True)
    assert view_in_queue(resources).milliseconds == AT_NOON + AHEAD_MILLISECONDS
    assert logged_events(caplog) == [(logging.ERROR, "count_not_read", {"badge": BADGE})]


def counts(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [r.__dict__["fields"] for r in caplog.records if r.name == telemetry.metrics.name]


@pytest.mark.parametrize("queue_fails", [False, True])
@pytest.mark.parametrize("is_readable", [False, True])
def test_only_a_view_that_the_queue_refuses_is_stored_directly_and_logged(
    resources: GivenResources,
    caplog: pytest.LogCaptureFixture,
    *,
    queue_fails: bool,
    is_readable: bool,
) -> None:
    queue_of(resources).failure = UnavailableError("the queue") if queue_fails else None
    table, resources.table = (
        resources.table,
        resources.table if is_readable else unreadable(resources.table),
    )
    with caplog.at_level(logging.INFO, telemetry.metrics.name):
        assert ask(resources) == ("0" if is_readable else "count unavailable, view taken")
    counted = {"function": "api_handler", "queue_refusals": 1}
    assert counts(caplog) == [counted] * queue_fails
    assert ("view_stored_directly" in caplog.messages) == queue_fails
    assert shown(table) == int(queue_fails)
    marker = table.get(keys.marker(BADGE, int(NOON) + 300))
    assert (marker is not None) == queue_fails


@pytest.mark.parametrize("place", [0, 1], ids=["marker", "view"])
def test_a_badge_says_that_its_view_was_not_counted(
    resources: GivenResources, caplog: pytest.LogCaptureFixture, place: int
) -> None:
    queue_of(resources).failure = UnavailableError("the queue")
    failure = UnavailableError("the table")
    table = resources.table
    resources.table = FaultyTable(table, before_put=raising(*[None] * place, failure))
    with caplog.at_level(logging.INFO, telemetry.metrics.name):
        assert ask(resources) == "internal error, view not counted"
    assert shown(table) == 0
    assert counts(caplog) == [{"function": "api_handler", "queue_refusals": 1}]
    assert "view_stored_directly" not in caplog.messages


# ---- the number, for scripts


def count(resources: GivenResources, query: str = "", **more: Any) -> Answer:
    """Send what a script of another site sends."""
    return http_requests.ask(
        resources,
        "POST",
        f"/api/v1/views?id={BADGE}{query}",
        kind="text/plain;charset=UTF-8",
        origin="https://me.example",
        sec_fetch_site="cross-site",
        **more,
    )


def test_a_script_of_any_site_counts_a_view_and_gets_the_number_before_it(
    resources: GivenResources,
) -> None:
    put_summary(resources.table, count=1_230, base=4, watermark=AT_NOON - 1)
    answer = count(resources)
    assert answer.status == 200
    assert answer.body == {"id": BADGE, "count": 1_234, "message": "1234"}
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert view_in_queue(resources).badge_id == BADGE
    formatted = count(resources, "&format=comma&base=1")
    assert formatted.body == {"id": BADGE, "count": 1_235, "message": "1,235"}
    assert len(queue_of(resources).bodies) == 2
    assert ask(resources, query="&peek=1") == "1234"


@pytest.mark.parametrize(
    ("show", "number", "message"),
    [("today", 2, "2"), ("year", 2, "2"), ("total", 45, "45"), ("today-total", 45, "2 today · 45")],
)
def test_a_script_gets_the_number_of_a_period(
    resources: GivenResources, show: str, number: int, message: str
) -> None:
    """The base has no time, so only the number of all views has it."""
    put_summary(resources.table, count=40, watermark=AT_NOON - 9)
    put_views(resources.table, AT_NOON - 2, AT_NOON - 1)
    answer = count(resources, f"&show={show}&base=3")
    assert answer.body == {"id": BADGE, "count": number, "message": message}


def test_a_script_that_sends_a_body_counts_nothing(resources: GivenResources) -> None:
    """Nothing that a script knows of a visitor is read."""
    refused = count(resources, body=b" ")
    assert refused.refusal == (400, "bad_request")
    assert refused.says == "the body has 1 bytes: send none, all is in the query"
    assert refused.headers["Access-Control-Allow-Origin"] == "*"
    assert queue_of(resources).bodies == []


@pytest.mark.parametrize("query", ["&format=roman", "&peek=1"])
def test_a_script_with_a_wrong_option_counts_nothing(resources: GivenResources, query: str) -> None:
    refused = count(resources, query)
    assert refused.refusal == (400, "bad_request")
    assert queue_of(resources).bodies == []


def test_a_script_is_told_of_an_id_that_is_not_counted_and_of_a_limit(
    resources: GivenResources,
) -> None:
    resources.limits = ClientLimits({Action.NEW_ID: Rate(1, 60)}, lambda: NOON)
    assert count(resources, client="192.0.2.1").status == 200
    limited = count(resources, client="192.0.2.1")
    assert limited.refusal == (429, "too_many_requests")
    assert limited.headers["Retry-After"] == "60"
    resources.settings = Settings(ids=("owner/*",))
    refused = count(resources)
    assert refused.refusal == (403, "not_counted")
    for answer in (limited, refused):
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert len(queue_of(resources).bodies) == 1


def test_a_script_whose_view_is_taken_gets_no_number_if_it_cannot_be_read(
    resources: GivenResources,
) -> None:
    """The status is that of success, because the same request again would count another view."""
    resources.table = unreadable(resources.table)
    answer = count(resources)
    assert answer.status == 200
    assert answer.body == {"id": BADGE, "count": None, "message": "count unavailable, view taken"}
    assert view_in_queue(resources).first


def test_a_script_whose_view_is_not_taken_is_told_to_send_it_again(
    resources: GivenResources,
) -> None:
    queue_of(resources).failure = UnavailableError("the queue")
    resources.table = FaultyTable(
        resources.table, before_put=raising(UnavailableError("the table"))
    )
    refused = count(resources)
    assert refused.refusal == (503, "unavailable")
    assert refused.headers["Access-Control-Allow-Origin"] == "*"


# ---- the pixel


def test_a_pixel_counts_and_its_error_is_drawn(resources: GivenResources) -> None:
    pixel = http_requests.ask(resources, "GET", f"/api/v1/views.svg?id={BADGE}&style=pixel")
    assert pixel.text.count("<") == 1
    assert len(queue_of(resources).bodies) == 1
    wrong = http_requests.ask(resources, "GET", "/api/v1/views.svg?style=pixel")
    assert "give an id" in wrong.text
    in_json = ask(resources, query="&style=pixel")
    assert in_json.startswith("style: give flat, ")
    assert len(queue_of(resources).bodies) == 1
