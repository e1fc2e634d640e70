"""The routes of a history: what they ask for, what they answer, and that they count nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from app import app
from chalicelib.aws import resources
from chalicelib.storage.ports import Item, Key, Refused, StorageError, Table, Unavailable
from simulation import aws_events as events
from simulation.queues import FakeViewQueue
from simulation.resources import MISSING, GivenResources
from simulation.tables import FaultyTable, sqlite_table
from simulation.views import put_summary, put_views

NOW = 1_795_249_800.0
"""2026-11-21T08:30:00Z."""
JSON, CHART = "/api/v1/views/history", "/api/v1/views/history.svg"
SVG = "{http://www.w3.org/2000/svg}"


@dataclass
class Failing(FaultyTable):
    """A table that fails when it is asked for an item."""

    failure: Exception | None = None

    def get(self, key: Key) -> Item | None:
        if self.failure is not None:
            raise self.failure
        return super().get(key)


@dataclass
class World(GivenResources):
    """The resources of the routes at a fixed time."""

    table: Failing = MISSING
    views_queue: FakeViewQueue = field(default_factory=FakeViewQueue)
    clock: Callable[[], float] = lambda: NOW


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with sqlite_table(tmp_path) as table:
        world = World(table=Failing(table))
        resources.use(world)
        yield world
        resources.use(None)


def ask(path: str, method: str = "GET", /, **query: str | list[str]) -> dict[str, Any]:
    given = {name: value if isinstance(value, list) else [value] for name, value in query.items()}
    answer: dict[str, Any] = app(events.http_event(given or None, method, path), None)
    return answer


def asked(**query: str | list[str]) -> dict[str, Any]:
    answer = ask(JSON, id="a/b", **query)
    assert answer["statusCode"] == 200
    body: dict[str, Any] = json.loads(answer["body"])
    return body


def drawn(answer: Mapping[str, Any]) -> ET.Element:
    assert answer["statusCode"] == 200
    return ET.fromstring(answer["body"])  # noqa: S314  our own


def title(answer: Mapping[str, Any]) -> str | None:
    return drawn(answer).findtext(f"{SVG}title")


def fill(table: Table) -> None:
    """2 views yesterday, folded, and one now, live."""
    put_summary(table, "a/b", today={"day": "2026-11-20", "h09": 2})
    put_views(table, int(NOW * 1000), badge_id="a/b")


def test_a_history_is_one_of_30_days_unless_it_says_otherwise(world: World) -> None:
    fill(world.table)
    body = asked()
    days = body.pop("views")
    assert body == {"id": "a/b", "by": "day", "days": 30, "since": "2026-11-20", "total": 3}
    assert (len(days), days[0]["day"]) == (30, "2026-10-23")
    assert days[-2:] == [{"day": "2026-11-20", "views": 2}, {"day": "2026-11-21", "views": 1}]


def test_by_hour_it_is_one_of_the_same_days(world: World) -> None:
    fill(world.table)
    body = asked(by="hour", days="1")
    hours = body.pop("views")
    assert body == {"id": "a/b", "by": "hour", "days": 1, "since": "2026-11-20", "total": 3}
    assert len(hours) == 24
    assert hours[0] == {"hour": "2026-11-20T09:00Z", "views": 2}
    assert hours[-1] == {"hour": "2026-11-21T08:00Z", "views": 1}
    assert len(asked(by="hour")["views"]) == 30 * 24


@pytest.mark.usefixtures("world")
def test_days_are_those_asked_for() -> None:
    assert len(asked(days="1")["views"]) == 1
    assert len(asked(days="400", by="day")["views"]) == 400
    assert len(asked(days="31", by="hour")["views"]) == 744
    assert len(asked(days="", by="")["views"]) == 30


@pytest.mark.usefixtures("world")
def test_an_id_nobody_knows_has_a_history_and_a_chart() -> None:
    assert asked()["total"] == 0
    assert title(ask(CHART, id="a/b")) == "0 views in 30 days"


@pytest.mark.parametrize("path", [JSON, CHART])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_look_at_the_history_counts_nothing(world: World, path: str, method: str) -> None:
    assert ask(path, method, id="a/b")["statusCode"] == 200
    assert ask(path, method, id="a/b", days="0")["statusCode"] == (200 if path == CHART else 400)
    assert (world.views_queue.views, world.table.written, world.table.put) == ([], [], [])


def test_two_ways_to_write_one_id_have_one_history(world: World) -> None:
    put_summary(world.table, "\u00dcber", today={"day": "2026-11-21", "h00": 4})
    body = json.loads(ask(JSON, id="U\u0308ber")["body"])
    assert (body["id"], body["total"]) == ("\u00dcber", 4)


BAD_OPTIONS: list[tuple[dict[str, str | list[str]], str]] = [
    ({"days": "0"}, "days: give a whole number from 1 to 400, not '0'"),
    ({"days": "401"}, "days: give a whole number from 1 to 400, not '401'"),
    ({"days": "-1"}, "days: give a whole number from 1 to 400, not '-1'"),
    ({"days": "1.5"}, "days: give a whole number from 1 to 400, not '1.5'"),
    ({"days": "\u0663"}, "days: give a whole number from 1 to 400, not '\u0663'"),
    ({"days": "9" * 5000}, f"days: give a whole number from 1 to 400, not '{'9' * 19}"),
    ({"days": ["1", "2"]}, "days: give one, not 2"),
]


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize(
    ("query", "says"),
    [
        *BAD_OPTIONS,
        (
            {"by": "hour", "days": "32"},
            "days: with by=hour give a whole number from 1 to 31, not '32'",
        ),
        ({"by": "week"}, "by: give day or hour, not 'week'"),
        ({"by": "HOUR"}, "by: give day or hour, not 'HOUR'"),
        ({"by": "x" * 99}, f"by: give day or hour, not '{'x' * 19}"),
        ({"by": ["day", "day"]}, "by: give one, not 2"),
    ],
)
def test_a_wrong_option_is_refused_with_what_to_give(
    query: dict[str, str | list[str]], says: str
) -> None:
    answer = ask(JSON, id="a/b", **query)
    assert answer["statusCode"] == 400
    assert json.loads(answer["body"]) == {"error": {"code": "bad_option", "message": says}}


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize(
    ("query", "says"),
    [
        *BAD_OPTIONS,
        ({"width": "199"}, "width: give a whole number from 200 to 1200, not '199'"),
        ({"width": "1201"}, "width: give a whole number from 200 to 1200, not '1201'"),
        ({"height": "79"}, "height: give a whole number from 80 to 400, not '79'"),
        ({"height": "401"}, "height: give a whole number from 80 to 400, not '401'"),
        (
            {"color": "<blau>"},
            "color: no colour '<blau>': give a name like green, or hex like 4c1",
        ),
        ({"color": ["red", "red"]}, "color: give one, not 2"),
        ({"id": ""}, "the id is empty: give one like owner/name"),
        ({"id": ["a", "b"]}, "give one id, not 2"),
    ],
)
def test_a_chart_says_what_is_wrong_with_its_query(
    query: dict[str, str | list[str]], says: str
) -> None:
    assert title(ask(CHART, **({"id": "a/b"} | query))) == says


@pytest.mark.usefixtures("world")
def test_a_missing_or_wrong_id_is_refused() -> None:
    nothing, wrong = ask(JSON), ask(JSON, id="a\nb")
    assert (nothing["statusCode"], wrong["statusCode"]) == (400, 400)
    assert json.loads(nothing["body"])["error"] == {
        "code": "bad_id",
        "message": "give an id: ?id=owner/name",
    }
    assert json.loads(wrong["body"])["error"]["code"] == "bad_id"
    assert title(ask(CHART)) == "give an id: ?id=owner/name"


@pytest.mark.parametrize("failure", [Unavailable("throttled"), Refused("no such table")])
def test_a_table_that_does_not_answer_is_said_so(world: World, failure: StorageError) -> None:
    world.table.failure = failure
    answer = ask(JSON, id="a/b")
    assert answer["statusCode"] == 503
    assert json.loads(answer["body"])["error"] == {
        "code": "unavailable",
        "message": "history unavailable: try again",
    }
    assert answer["headers"]["Retry-After"] == "1"
    assert title(ask(CHART, id="a/b")) == "history unavailable: try again"


def test_what_nobody_expected_is_an_error_in_the_shape_of_all_others(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.table.failure = RuntimeError("boom")
    answer = ask(JSON, id="a/b")
    assert answer["statusCode"] == 500
    assert json.loads(answer["body"])["error"] == {
        "code": "internal",
        "message": "out of order: see the log",
    }
    assert title(ask(CHART, id="a/b")) == "out of order: see the log"
    assert [record.getMessage() for record in caplog.records] == ["a history failed"] * 2
    for record in caplog.records:
        assert "boom" in str(record.exc_info)
        assert vars(record)["fields"] == {"function": "api_handler"}


@pytest.mark.usefixtures("world")
def test_what_the_caller_did_wrong_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    ask(JSON)
    ask(CHART, id="a/b", days="x")
    assert caplog.records == []


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize("query", [{"id": "a/b"}, {}])
def test_no_cache_keeps_a_history(query: dict[str, str]) -> None:
    answer, chart = ask(JSON, **query), ask(CHART, **query)
    assert answer["headers"]["Cache-Control"] == "no-store"
    assert answer["headers"]["Content-Type"] == "application/json"
    words = {word.strip() for word in chart["headers"]["Cache-Control"].split(",")}
    assert words == {"max-age=0", "no-cache", "no-store", "must-revalidate"}
    assert chart["headers"]["Content-Type"].split(";")[0] == "image/svg+xml"
    assert "isBase64Encoded" not in chart


def test_a_chart_has_the_days_the_size_and_the_colour_asked_for(world: World) -> None:
    fill(world.table)
    answer = ask(CHART, id="a/b", days="7", width="200", height="80", color="DD4343")
    root = drawn(answer)
    assert root.findtext(f"{SVG}title") == "3 views in 7 days"
    assert (root.attrib["width"], root.attrib["height"]) == ("200", "80")
    assert "#dd4343" in answer["body"]
    usual = drawn(ask(CHART, id="a/b", by="hour"))
    assert (usual.attrib["width"], usual.attrib["height"]) == ("600", "150")
    assert usual.findtext(f"{SVG}title") == "3 views in 30 days"


@pytest.mark.usefixtures("world")
def test_an_error_has_the_size_of_the_chart_unless_that_is_the_error() -> None:
    wrong_days = drawn(ask(CHART, id="a/b", width="200", height="80", days="x"))
    wrong_width = drawn(ask(CHART, id="a/b", width="20", height="80"))
    assert (wrong_days.attrib["width"], wrong_days.attrib["height"]) == ("200", "80")
    assert (wrong_width.attrib["width"], wrong_width.attrib["height"]) == ("600", "150")


def test_a_process_that_only_draws_badges_imports_nothing_of_this() -> None:
    script = (
        "import sys; import chalicelib.views.history_routes; print([name for name in sys.modules"
        " if name.startswith('chalicelib.') and name.endswith(('history', 'chart', 'colors'))])"
    )
    done = subprocess.run(  # noqa: S603  our own words
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
