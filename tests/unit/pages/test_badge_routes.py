"""The badge's routes: which view is taken, and what happens when storage fails."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from chalicelib import telemetry
from chalicelib.counting import keys
from chalicelib.counting.badge_count import AHEAD_MILLISECONDS
from chalicelib.counting.view import View
from chalicelib.resources import Room
from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.ports import Table
from simulation.clocks import NOON
from simulation.logs import logged_events
from simulation.resources import Places
from simulation.storage import raising
from simulation.views import AT_NOON, BADGE, put_summary, put_views, shown
from tests.unit.history.stored_days import put_days
from tests.unit.http_requests import Answer, Api
from vumi.server.clients import Rate

JSON, OLD, SVG = "/api/v1/views", "/v1/api/views", "/api/v1/views.svg"
CLIENT = "192.0.2.1"


def fail(api: Api) -> None:
    def step(_: str) -> None:
        raise UnavailableError("no answer")

    api.table.before_read = step


def ask(
    api: Api, options: str = "", method: str = "GET", path: str = JSON, badge_id: str = BADGE
) -> Answer:
    """Send a request for a badge, which always has the status 200."""
    answer = api.ask(method, f"{path}?id={badge_id}{options}", client=CLIENT)
    assert answer.status == 200
    return answer


def message(api: Api, options: str = "", **more: str) -> str:
    return str(ask(api, options, **more).body["message"])


@pytest.mark.parametrize("path", [JSON, OLD])
def test_head_is_answered_by_both_paths_and_counts_nothing(api: Api, path: str) -> None:
    assert message(api, method="HEAD", path=path) == "0"
    assert api.views == []


def test_a_view_follows_the_summary_that_its_visitor_read(api: Api) -> None:
    """It is later than the watermark, not the first of its window, and hot."""
    put_summary(api.table, count=5, watermark=AT_NOON + 4_000, hot=int(NOON) + 1)
    put_views(api.table, AT_NOON + 4_001)
    assert message(api) == "6"
    [one] = api.views
    assert one == View(BADGE, one.ulid, first=False, hot=True)
    assert one.milliseconds == AT_NOON + 4_001


@pytest.mark.parametrize(("live", "hot"), [(69, False), (70, True)])
def test_the_settings_say_from_how_many_live_views_on_a_badge_is_hot(
    api: Api, live: int, *, hot: bool
) -> None:
    api.set(hot_views=70)
    put_views(api.table, *range(AT_NOON - live, AT_NOON))
    ask(api)
    assert [(one.hot, one.fold) for one in api.views] == [(hot, hot)]


def test_a_frozen_badge_takes_no_view_and_shows_its_live_ones(api: Api) -> None:
    put_summary(api.table, count=5, frozen=1)
    put_views(api.table, AT_NOON)
    assert message(api) == "6"
    assert api.views == []


# ---- limits of new ids


def test_a_client_that_creates_too_many_badges_gets_one_that_says_so_and_stores_nothing(
    api: Api,
) -> None:
    api.limit(NEW_ID=Rate(1, 60))
    assert message(api, badge_id="first") == "0"
    refused = ask(api, badge_id="second")
    assert refused.body == {
        "schemaVersion": 1,
        "label": "views",
        "message": "too many new badges from your address: try again in 60 s",
        "color": "red",
        "isError": True,
    }
    assert "no-store" in refused.headers["Cache-Control"]
    assert "too many new badges" in ask(api, badge_id="third", path=SVG).text
    for options, method in (("&peek=1", "GET"), ("", "HEAD")):
        assert message(api, options, method=method) == "0"
    assert api.viewed == ["first"]


def test_a_client_that_made_its_ids_of_a_day_gets_a_badge_that_says_so(api: Api) -> None:
    """A minute's limit that refuses takes nothing from the day's."""
    api.clock.now = 0
    api.limit(NEW_ID=Rate(1, 60), NEW_ID_A_DAY=Rate(2, 86_400))
    said = []
    for place, api.clock.now in enumerate((0, 40, 80, 150)):
        said.append(message(api, badge_id=f"{place}").partition(" from")[0])
    assert said == ["0", "too many new badges", "0", "too many new badges in a day"]
    assert len(api.views) == 2


def test_without_a_place_a_new_id_gets_a_badge_that_says_so_and_others_count(api: Api) -> None:
    put_summary(api.table, count=5)
    api.resources.quota = Places(1)
    assert [message(api, badge_id=one) for one in ("a", "b")] == ["0", "no new badges here"]
    assert message(api) == "5"
    assert message(api, "&peek=1", badge_id="b") == "0", "reads nothing into being"
    assert api.viewed == ["a", BADGE]


@pytest.mark.parametrize("room", [Room.VIEWS, Room.COUNTS])
def test_without_room_a_new_id_gets_a_badge_that_says_so_and_stores_nothing(
    api: Api, room: Room
) -> None:
    put_summary(api.table, count=5)
    api.resources.room = lambda: room
    refused = ask(api, badge_id="new").body
    said = "no new badges now: the disk of this server is nearly full"
    assert (refused["isError"], refused["message"]) == (True, said)
    assert message(api) == "5"
    assert api.viewed == [BADGE]


@pytest.mark.parametrize(
    "known",
    [
        lambda table: put_views(table, AT_NOON),
        lambda table: put_summary(table, count=5, version=1),
        lambda table: put_summary(table, base=5, version=1),
    ],
    ids=["views", "folded", "claimed"],
)
def test_a_view_of_a_known_id_is_never_refused(api: Api, known: Callable[[Table], object]) -> None:
    api.limit(NEW_ID=Rate(1, 60))
    known(api.table)
    for _ in range(3):
        ask(api)
    assert len(api.views) == 3


# ---- what a badge shows


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
    api: Api, query: str, label: str, message: str
) -> None:
    """It is Saturday noon: 4 views of today are counted, one is live, 3 are of yesterday."""
    put_period(api.table)
    badge = ask(api, query).body
    assert (badge["label"], badge["message"]) == (label, message)
    assert [one.milliseconds for one in api.views] == [AT_NOON]
    assert f"<title>{label}: {message}</title>" in ask(api, query, "HEAD", SVG).text
    assert len(api.views) == 1


def test_an_image_has_a_line_of_the_last_days_and_json_has_none(api: Api) -> None:
    put_period(api.table)
    drawn = ask(api, "&spark=7&show=today", path=SVG).text
    assert "<title>views today: 5; last 7 days: 8, at most 5 a day</title>" in drawn
    assert drawn.count("<path") == 2
    assert message(api, "&spark=7&show=today") == "unknown option 'spark': leave it out"
    assert len(api.views) == 1


def test_a_pixel_counts_and_its_error_is_drawn(api: Api) -> None:
    assert ask(api, "&style=pixel", path=SVG).text.count("<") == 1
    assert len(api.views) == 1
    assert "give an id" in api.ask("GET", f"{SVG}?style=pixel").text
    assert message(api, "&style=pixel").startswith("style: give flat, ")
    assert len(api.views) == 1


def put_period(table: Table) -> None:
    """Put views of yesterday and today, and a base."""
    days = {"2026-03-13": {"h23": 3}, "2026-03-14": {"h01": 4}}
    put_days(table, days, base=1_000, watermark=AT_NOON - 1_000)
    put_views(table, AT_NOON - 500)


# ---- storage that fails


@pytest.mark.parametrize("query", ["&show=year", "&show=week", "&spark=7"])
def test_a_view_is_taken_if_the_days_of_a_period_cannot_be_read(api: Api, query: str) -> None:
    put_period(api.table)
    api.table.before_read = raising(None, UnavailableError("no answer"))
    assert "count unavailable, view taken" in ask(api, query, path=SVG).text
    assert [one.milliseconds for one in api.views] == [AT_NOON + AHEAD_MILLISECONDS]


def test_a_peek_that_cannot_read_the_count_takes_no_view(api: Api) -> None:
    fail(api)
    for options, method in (("&peek=1", "GET"), ("", "HEAD")):
        assert message(api, options, method=method) == "count unavailable: try again"
    assert api.views == []


def test_a_view_without_a_read_is_as_far_ahead_as_a_life_begins_and_has_a_marker(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    fail(api)
    assert message(api) == "count unavailable, view taken"
    [one] = api.views
    assert one == View(BADGE, one.ulid, first=True)
    assert one.milliseconds == AT_NOON + AHEAD_MILLISECONDS
    assert logged_events(caplog) == [(logging.ERROR, "count_not_read", {"badge": BADGE})]


def counts(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [r.__dict__["fields"] for r in caplog.records if r.name == telemetry.metrics.name]


REFUSED = {"function": "api_handler", "queue_refusals": 1}


@pytest.mark.parametrize("queue_fails", [False, True])
@pytest.mark.parametrize("is_readable", [False, True])
def test_only_a_view_that_the_queue_refuses_is_stored_directly_and_logged(
    api: Api, caplog: pytest.LogCaptureFixture, *, queue_fails: bool, is_readable: bool
) -> None:
    api.queue.failure = UnavailableError("the queue") if queue_fails else None
    if not is_readable:
        fail(api)
    with caplog.at_level(logging.INFO, telemetry.metrics.name):
        assert message(api) == ("0" if is_readable else "count unavailable, view taken")
    assert counts(caplog) == [REFUSED] * queue_fails
    assert ("view_stored_directly" in caplog.messages) == queue_fails
    assert shown(api.table.table) == int(queue_fails)
    marker = api.table.table.get(keys.marker(BADGE, int(NOON) + 300))
    assert (marker is not None) == queue_fails


@pytest.mark.parametrize("place", [0, 1], ids=["marker", "view"])
def test_a_badge_says_that_its_view_was_not_counted(
    api: Api, caplog: pytest.LogCaptureFixture, place: int
) -> None:
    api.queue.failure = UnavailableError("the queue")
    api.table.before_put = raising(*[None] * place, UnavailableError("the table"))
    with caplog.at_level(logging.INFO, telemetry.metrics.name):
        assert message(api) == "internal error, view not counted"
    assert shown(api.table) == 0
    assert counts(caplog) == [REFUSED]
    assert "view_stored_directly" not in caplog.messages
