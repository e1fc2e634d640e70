"""The routes of the operator's page: public text, and data for operators alone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from chalicelib import VERSION
from chalicelib.events.event import Event, Status, Target, TargetKind, batch
from chalicelib.http import page
from chalicelib.http.dispatch import dispatch
from chalicelib.http.messages import Request
from chalicelib.http.query import parse
from chalicelib.http.routing import RouteTable
from chalicelib.http.tokens import digest
from chalicelib.settings import Settings
from chalicelib.storage.items import Item, Value
from chalicelib.units import Seconds
from simulation.clocks import NOON, Clock
from simulation.resources import GivenResources
from simulation.views import AT_NOON, put_summary, put_views
from tests.unit.http_requests import Answer
from vumi.operate.admin import overview_file
from vumi.operate.admin.overview import of_file
from vumi.operate.admin.overview_file import Overview, OverviewStamp
from vumi.operate.admin.routes import FAILED_EVENTS, Admin
from vumi.server.common_commits import ADMIN_DATA as DATA
from vumi.storage.database import Database
from vumi.storage.queue import DEAD_LETTERS, SqliteQueue
from vumi.storage.table import SqliteTable
from vumi.storage.upkeep import sample_size

TOKEN = "a" * 43
USERS = "b" * 43


class MadeOverview(Overview):
    """An overview that is made for each request, unless it fails."""

    def __init__(self, database: Database) -> None:
        super().__init__(database.path.parent, lambda: NOON)
        self.database, self.is_ready = database, True

    def refresh(self, now: Seconds) -> OverviewStamp | None:
        overview_file.write(self.path, of_file(self.database.read, now), now, lambda: 0.0)
        return overview_file.read_stamp(self.path) if self.is_ready else None


@pytest.fixture
def made(database: Database) -> MadeOverview:
    return MadeOverview(database)


@pytest.fixture
def clock() -> Clock:
    return Clock(NOON)


Get = Callable[..., Answer]


@pytest.fixture
def get(database: Database, made: MadeOverview, clock: Clock) -> Get:
    """Send requests to the routes of a server that starts at noon."""
    table = RouteTable(Admin(database, made, clock).routes)
    resources = GivenResources(
        SqliteTable(database),
        settings=Settings(api_token_digests=frozenset({digest(TOKEN)})),
        clock=clock,
    )

    def get(target: str = DATA, token: str = TOKEN, method: str = "GET") -> Answer:
        path, _, query = target.partition("?")
        headers = {"authorization": f"Bearer {token}"} if token else {}
        request = Request(method, path, query=parse(query), headers=headers)
        return Answer(dispatch(table, request, resources))

    return get


def test_the_page_is_public_and_runs_nothing_but_its_own_script(get: Get) -> None:
    answer = get("/admin", token="")
    assert answer.status == 200
    policy = answer.headers["Content-Security-Policy"]
    assert policy == page.policy(answer.text)
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not re.search("https?://(?!www.w3.org/2000/svg)", answer.text)
    assert not re.search(r'\b(style|on\w+)="', answer.text)
    unsafe = "innerHTML|outerHTML|insertAdjacentHTML|document.write|eval"
    assert not re.search(unsafe, answer.text), "text of others is never parsed as HTML"
    assert get("/admin", token="", method="HEAD").status == 200


@pytest.mark.parametrize("address", [DATA, f"{DATA}/badges"])
@pytest.mark.parametrize(("token", "status"), [("", 401), ("c" * 43, 403), (USERS, 403)])
def test_only_an_operator_gets_the_data(
    table: SqliteTable, get: Get, address: str, token: str, status: int
) -> None:
    user = "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11"
    item: Item = {"PK": f"TOKEN#{digest(USERS)}", "SK": "TOKEN", "role": "user", "user": user}
    table.put_all([item])
    assert get(address, token).refusal[0] == status
    assert get(address).status == 200


def test_the_data_has_the_version_the_uptime_the_sizes_and_the_queues(
    database: Database, get: Get, clock: Clock
) -> None:
    for name in ("orders", f"views{DEAD_LETTERS}", f"views{DEAD_LETTERS}", "views"):
        SqliteQueue(database, name, lambda: NOON).send("{}")
    sample_size(database, clock)
    clock.now += 90
    body = get().body
    started, now = "2026-03-14T12:00:00.000Z", "2026-03-14T12:01:30.000Z"
    assert (body["version"], body["started"], body["now"]) == (VERSION, started, now)
    assert body["file"]["name"] == str(database.path)
    assert body["file"]["bytes"] > 4_096
    assert [one["day"] for one in body["file"]["days"]] == ["2026-03-14"]
    assert body["queues"] == [
        {"queue": "orders", "messages": 1, "dead_letters": 0},
        {"queue": "views", "messages": 1, "dead_letters": 2},
    ]


def failed_event(place: int, **attributes: Any) -> dict[str, Any]:
    target = Target(TargetKind.URL, "https://example.com/")
    event = Event(f"event-{place}", AT_NOON, AT_NOON, target, '{"secret": 1}', "r")
    return {
        **event.new_item(),
        "status": "ERROR",
        "tries": 1,
        "attempts": [{"started": AT_NOON, "ended": AT_NOON + 5, "code": 0, "error": "refused"}],
        "batch": batch(Status.ERROR, event.event_id),
        "due": AT_NOON + place,
        **attributes,
    }


def test_the_latest_failed_events_have_their_last_error_and_no_payload(
    table: SqliteTable, get: Get
) -> None:
    places = range(FAILED_EVENTS + 5)
    table.put_all([failed_event(place, batch="ERROR#0") for place in places])
    failed = get().body["failed_events"]
    assert failed["failed"] == FAILED_EVENTS + 5
    last = [f"event-{place}" for place in reversed(range(5, FAILED_EVENTS + 5))]
    assert [event["id"] for event in failed["latest"]] == last
    assert failed["latest"][0] == {
        "id": f"event-{FAILED_EVENTS + 4}",
        "target": {"url": "https://example.com/"},
        "at": "2026-03-14T12:00:00.000Z",
        "failed": "2026-03-14T12:00:00.005Z",
        "attempts": 1,
        "error": "refused",
    }


def test_the_state_is_read_once_in_two_seconds(table: SqliteTable, get: Get, clock: Clock) -> None:
    def failed() -> int:
        return int(get().body["failed_events"]["failed"])

    assert failed() == 0
    table.put_all([failed_event(1)])
    clock.now += 1.9
    assert failed() == 0
    clock.now += 0.1
    assert failed() == 1


def test_badges_have_their_numbers_and_their_views_by_day(table: SqliteTable, get: Get) -> None:
    put_summary(table, count=7, today={"day": "2026-03-13", "h01": 2}, watermark=AT_NOON - 1)
    put_views(table, AT_NOON)
    body = get(f"{DATA}/badges").body
    days = [*[0] * 28, 2, 1]
    assert body["overview"] == {
        "ready": True,
        "at": "2026-03-14T12:00:00.000Z",
        "badges": 1,
        "total": 8,
        "month": 3,
        "today": 1,
        "now": 1,
        "days": days,
    }
    assert body["found"] == 1
    [badge] = body["badges"]
    assert (badge["id"], badge["total"], badge["month"], badge["now"]) == ("octocat", 8, 3, 1)
    assert badge["days"] == days


def test_the_views_of_all_badges_are_a_chart_of_the_page_s_width(
    table: SqliteTable, get: Get
) -> None:
    for name in "ab":
        put_summary(table, name, count=5, today={"day": "2026-03-13", "h01": 5})
    chart = get(f"{DATA}/badges?width=900&height=170").body["chart"]
    assert chart["svg"].startswith("<svg")
    assert 'width="900" height="170"' in chart["svg"]
    assert chart["description"].startswith("10 views in 30 days. Views a day from 2026-02-13 to ")


def test_a_badge_far_above_its_own_month_comes_first(table: SqliteTable, get: Get) -> None:
    today: Value = {"day": "2026-03-14", "h11": 1_001}
    put_summary(table, "hubot", count=1_001, today=today)
    body = get(f"{DATA}/badges").body
    [badge] = body["bursts"]
    assert body["badges"] == body["bursts"]
    assert (badge["name"], badge["burst"]) == ("hubot", True)
    assert (badge["last_hour"], badge["mean_hour"]) == (1_001, 1.39)


def test_before_the_first_overview_it_is_not_ready(get: Get, made: MadeOverview) -> None:
    made.is_ready, made.failure = False, "the disk is full"
    body = get(f"{DATA}/badges").body
    assert body == {"overview": {"ready": False, "failure": "the disk is full"}}


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("search=&sort=", ["octo/b", "octo/a", "hubot"]),
        ("search=octo%2F&sort=today", ["octo/a", "octo/b"]),
        ("sort=today&offset=1&limit=1", ["octo/b"]),
    ],
)
def test_badges_are_searched_sorted_and_paged(
    table: SqliteTable, get: Get, query: str, names: list[str]
) -> None:
    for name, count, today in (("hubot", 1, 0), ("octo/a", 5, 5), ("octo/b", 9, 1)):
        put_summary(table, name, count=count, today={"day": "2026-03-14", "h01": today})
    assert [badge["name"] for badge in get(f"{DATA}/badges?{query}").body["badges"]] == names


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("sort=name", "sort: give now, today, month, total, not 'name'"),
        ("limit=101", "limit: give a whole number from 1 to 100, not '101'"),
        ("search=" + "x" * 201, "search: give at most 200 characters, not 201"),
    ],
)
def test_a_wrong_query_is_refused_in_words(get: Get, query: str, says: str) -> None:
    answer = get(f"{DATA}/badges?{query}")
    assert answer.refusal == (400, "bad_request")
    assert answer.says.startswith(says)


def test_without_events_no_failed_events_are_shown(
    database: Database, made: MadeOverview, clock: Clock
) -> None:
    resources = GivenResources(SqliteTable(database), settings=Settings(events=False), clock=clock)
    response = Admin(database, made, clock).get_data(Request("GET", DATA), resources)
    assert json.loads(response.body)["failed_events"] is None
