"""Routes of histories, and of the most viewed ids: their options and responses.

They count nothing. `tests/unit/vumi/operate/admin` has the numbers of the most viewed ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode
from xml.etree import ElementTree as ET

import pytest

from chalicelib.history.routes import TOP, TopBadge, TopQuery
from chalicelib.storage.ports import Table
from simulation.clocks import Clock
from simulation.views import put_views
from tests.unit.history.stored_days import put_days
from tests.unit.http_requests import Answer, Api

NOW = 1_795_249_800.0
"""2026-11-21T08:30:00Z."""
JSON, CHART = "/api/v1/views/history", "/api/v1/views/history.svg"
SVG = "{http://www.w3.org/2000/svg}"


@dataclass
class World(Api):
    """The routes on a Saturday morning."""

    clock: Clock = field(default_factory=lambda: Clock(NOW))

    def get(self, path: str, method: str = "GET", /, **query: str | list[str]) -> Answer:
        return self.ask(method, f"{path}?{urlencode(query, doseq=True)}")

    def history(self, **query: str | list[str]) -> dict[str, Any]:
        answer = self.get(JSON, id="a/b", **query)
        assert answer.status == 200
        body: dict[str, Any] = answer.body
        return body

    def title(self, **query: str | list[str]) -> str | None:
        return drawn(self.get(CHART, **query)).findtext(f"{SVG}title")


@pytest.fixture
def world() -> World:
    return World()


def drawn(answer: Answer) -> ET.Element:
    assert answer.status == 200
    return ET.fromstring(answer.text)  # noqa: S314  our own


def fill(table: Table, **earlier: int) -> None:
    days = {day: {"h00": views} for day, views in earlier.items()}
    put_days(table, {**days, "2026-11-20": {"h09": 2}}, "a/b")
    put_views(table, int(NOW * 1000), badge_id="a/b")


def test_a_history_has_30_days_by_default(world: World) -> None:
    fill(world.table)
    body = world.history()
    days = body.pop("views")
    assert body == {
        "id": "a/b",
        "by": "day",
        "days": 30,
        "since": "2026-11-20",
        "next": None,
        "total": 3,
        "github": [],
    }
    assert (len(days), days[0]["day"]) == (30, "2026-10-23")
    assert days[-2:] == [{"day": "2026-11-20", "views": 2}, {"day": "2026-11-21", "views": 1}]


@pytest.mark.parametrize("path", [JSON, CHART])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_request_for_a_history_counts_no_view(world: World, path: str, method: str) -> None:
    assert world.get(path, method, id="a/b").status == 200
    assert world.get(path, method, id="a/b", days="0").status == (200 if path == CHART else 400)
    assert (world.views, world.table.written, world.table.put) == ([], [], [])


A_DAY = "a day like 2026-11-21, from 1970-01-01 on"
EARLIER = ": give an earlier from"
OF_A_HISTORY = [
    ("days=0", "days: give a whole number from 1 to 9999, not '0'"),
    ("days=10000", "days: give a whole number from 1 to 9999, not '10000'"),
    ("from=2026-02-30", f"from: give first or {A_DAY}, not '2026-02-30'"),
    ("from=20261121", f"from: give first or {A_DAY}, not '20261121'"),
    ("from=1969-12-31", f"from: give first or {A_DAY}, not '1969-12-31'"),
    ("to=first", f"to: give {A_DAY}, not 'first'"),
    ("from=first&from=first", "from: give one, not 2"),
    ("from=2026-11-01&days=3", "days: give days or from, not both"),
    ("from=first&days=3", "days: give days or from, not both"),
    ("from=2026-11-22", f"from: 2026-11-22 is after the last day, 2026-11-21{EARLIER}"),
    (
        "from=2026-11-02&to=2026-11-01",
        f"from: 2026-11-02 is after the last day, 2026-11-01{EARLIER}",
    ),
    ("by=hour&days=32", "days: with by=hour give a whole number from 1 to 31, not '32'"),
    ("by=year", "by: give hour, day, week, month, not 'year'"),
]
OF_A_CHART = [
    ("width=199", "width: give a whole number from 200 to 1200, not '199'"),
    ("width=1201", "width: give a whole number from 200 to 1200, not '1201'"),
    ("height=79", "height: give a whole number from 80 to 400, not '79'"),
    ("height=401", "height: give a whole number from 80 to 400, not '401'"),
    ("color=blau", "color: no colour 'blau': give a name like green, or hex like 4c1"),
    ("theme=grey", "theme: give auto, light, dark, not 'grey'"),
    ("scale=sqrt", "scale: give linear, log, not 'sqrt'"),
    ("days=401&by=day", "by=day: a chart has at most 400 days: give a longer unit, or fewer days"),
]


@pytest.mark.parametrize(
    ("path", "query", "says"),
    [
        *((path, *row) for row in OF_A_HISTORY for path in (JSON, CHART)),
        *((CHART, *row) for row in OF_A_CHART),
    ],
)
def test_a_malformed_option_is_refused_or_drawn_with_the_fix(
    world: World, path: str, query: str, says: str
) -> None:
    answer = world.ask("GET", f"{path}?id=a/b&{query}")
    if path == JSON:
        assert (answer.refusal, answer.says) == ((400, "bad_request"), says)
    else:
        assert drawn(answer).findtext(f"{SVG}title") == says


def test_a_chart_has_the_requested_days_size_and_colour(world: World) -> None:
    fill(world.table)
    answer = world.get(CHART, id="a/b", days="7", width="200", height="80", color="DD4343")
    root = drawn(answer)
    assert root.findtext(f"{SVG}title") == "3 views in 7 days"
    assert (root.attrib["width"], root.attrib["height"]) == ("200", "80")
    assert "#dd4343" in answer.text
    usual = drawn(world.get(CHART, id="a/b"))
    assert (usual.attrib["width"], usual.attrib["height"]) == ("600", "150")
    assert usual.findtext(f"{SVG}title") == "3 views in 30 days"


def test_an_error_has_the_size_of_the_chart_unless_that_is_the_error(world: World) -> None:
    wrong_days = drawn(world.get(CHART, id="a/b", width="200", height="80", days="x"))
    wrong_width = drawn(world.get(CHART, id="a/b", width="20", height="80"))
    assert (wrong_days.attrib["width"], wrong_days.attrib["height"]) == ("200", "80")
    assert (wrong_width.attrib["width"], wrong_width.attrib["height"]) == ("600", "150")


def test_a_long_history_has_pages_that_next_leads_through(world: World) -> None:
    """Of the 402 days from the first one on, a page has 400."""
    fill(world.table, **{"2025-10-16": 5})
    page = world.history(**{"from": "first", "by": "day"})
    assert (page["since"], page["views"][0]["views"]) == ("2025-10-16", 5)
    assert (page["days"], page["total"], page["next"]) == (400, 5, "2026-11-20")
    last = world.history(**{"from": page["next"], "by": "day"})
    assert (last["days"], last["total"], last["next"]) == (2, 3, None)


def test_a_history_from_the_first_day_of_a_badge_without_views_has_today(world: World) -> None:
    assert world.history(**{"from": "first"})["views"] == [{"day": "2026-11-21", "views": 0}]
    assert world.title(**{"id": "a/b", "from": "first"}) == "0 views today"


def test_a_chart_has_every_option_of_a_history(world: World) -> None:
    fill(world.table)
    assert world.title(id="a/b", by="hour", days="1") == "3 views in 24 hours"
    assert world.title(id="a/b", by="week", days="9") == "3 views in 2 weeks"
    assert world.title(**{"id": "a/b", "from": "2016-11-01"}) == "3 views in 121 months"
    assert world.title(id="a/b", to="2026-11-20", days="1") == "2 views on 2026-11-20"


def test_a_chart_and_its_error_have_the_requested_theme(world: World) -> None:
    for query in ({"id": "a/b", "theme": "dark"}, {"theme": "dark"}):
        drawn = world.get(CHART, **query).text
        assert "#8b949e" in drawn
        assert "@media" not in drawn
    assert "@media" in world.get(CHART, id="a/b").text


# ---- the most viewed ids

PREFIX = "prefix=me.example/"


class GivenTop:
    """A top that has one badge, and the queries for it."""

    def __init__(self) -> None:
        self.queries: list[tuple[TopQuery, float]] = []

    def is_public(self, prefix: str) -> bool:
        return prefix.startswith("me.example/")

    def read(self, query: TopQuery, now: float) -> Sequence[TopBadge]:
        self.queries.append((query, now))
        return [TopBadge("me.example/post/", 41, 7)]


def read_top(world: World, options: str, top: GivenTop | None) -> Answer:
    world.resources.top = top
    return world.ask("GET", f"{TOP}?{options}")


@pytest.mark.parametrize(
    ("options", "days", "limit"), [("", 30, 10), ("&days=366&limit=100", 366, 100)]
)
def test_the_most_viewed_ids_of_a_public_prefix_are_for_every_site(
    world: World, options: str, days: int, limit: int
) -> None:
    top = GivenTop()
    answer = read_top(world, PREFIX + options, top)
    assert answer.body == {"top": [{"id": "me.example/post/", "count": 41, "views": 7}]}
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert top.queries == [(TopQuery("me.example/", days, limit), NOW)]


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ("prefix=other", (403, "not_public")),
        ("", (400, "bad_request")),
        ("prefix=", (400, "bad_request")),
        (f"{PREFIX}&days=367", (400, "bad_request")),
        (f"{PREFIX}&limit=101", (400, "bad_request")),
    ],
)
def test_nothing_is_read_for_another_request(
    world: World, options: str, refusal: tuple[int, str]
) -> None:
    top = GivenTop()
    assert read_top(world, options, top).refusal == refusal
    assert top.queries == []


def test_where_nothing_reads_them_the_route_says_why(world: World) -> None:
    answer = read_top(world, PREFIX, None)
    assert answer.refusal == (404, "one_machine_only")
    assert "on AWS" in answer.says
