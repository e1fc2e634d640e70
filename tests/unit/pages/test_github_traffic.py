"""GitHub's numbers of a badge: what its owner tells, what is refused, and what stays."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.counting import keys
from chalicelib.history import github
from chalicelib.history.github import Traffic
from chalicelib.http.tokens import digest
from chalicelib.owners import finding
from chalicelib.owners.finding import NotClaimedError
from chalicelib.pages.owned_badges import tell
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Put
from simulation.clocks import NOON
from simulation.storage import MemoryTable, once
from simulation.views import BADGE
from tests.unit.http_requests import Answer, Api

SECRET = "a-secret-of-these-tests-0123456789"  # noqa: S105  no server knows it
DAY = 86_400
DOCUMENTED = json.loads(Path(__file__).with_name("github_traffic.json").read_text())
"""The examples of GitHub's documentation, "REST API endpoints for repository traffic"."""


@pytest.fixture
def api(api: Api) -> Api:
    claim = {"id": BADGE, "digest": digest(SECRET)}
    assert api.ask("POST", "/api/v1/badges", claim).status == 201
    return api


def put(api: Api, body: object, secret: str = SECRET) -> Answer:
    return api.ask("PUT", f"/api/v1/badges/traffic?id={BADGE}", body, secret)


def change(api: Api, method: str, body: object = b"") -> None:
    assert api.ask(method, f"/api/v1/badges?id={BADGE}", body, SECRET).status < 300


def show(api: Api, query: str, path: str = "/api/v1/views") -> Answer:
    return api.ask("GET", f"{path}?id={BADGE}{query}")


def traffic(kind: str, uniques: int, **days: tuple[int, int]) -> Traffic:
    """Return a response; d13 is the 13th of March 2026."""
    numbers = {f"2026-03-{name[1:]}": value for name, value in days.items()}
    return Traffic(kind, uniques, numbers)


def store(table: Table, *told: Traffic, now: float = NOON) -> None:
    tell(table, finding.look_up(table, BADGE), list(told), now)


def stored(table: Table) -> dict[str, Any]:
    """Return the items of GitHub's numbers by month, without their keys and times."""
    items = table.query(keys.partition(BADGE), first=keys.TRAFFIC, last=keys.VIEW, limit=999)
    return {
        str(item["SK"]).removeprefix(keys.TRAFFIC): {
            name: item[name] for name in item if name in {"days", "visitors", "until"}
        }
        for item in items
    }


def test_the_responses_of_the_documentation_are_stored_as_they_came(api: Api) -> None:
    answer = put(api, DOCUMENTED)
    told = {kind: len(DOCUMENTED[kind][kind]) for kind in DOCUMENTED}
    assert (answer.status, answer.body) == (200, {"id": BADGE, "days": told})
    month = stored(api.table)["2016-10"]
    assert (month["visitors"], month["until"]) == (3782, "2016-10-24")
    for kind, (count, uniques) in github.NAMES.items():
        days = {
            day["timestamp"][:10]: (day["count"], day["uniques"]) for day in DOCUMENTED[kind][kind]
        }
        known = {day: (one[count], one[uniques]) for day, one in month["days"].items()}
        assert known == days


@pytest.mark.parametrize("order", [1, -1])
def test_months_are_items_and_the_newest_has_the_visitors_of_14_days(order: int) -> None:
    table = MemoryTable()
    first, second, third = "2026-01-31", "2026-02-01", "2026-03-01"
    views = Traffic("views", 5, {first: (3, 2), second: (5, 4)})
    clones = Traffic("clones", 9, {first: (7, 6), third: (1, 1)})
    for one in [views, clones][::order]:
        store(table, one)
    both = {"views": 3, "visitors": 2, "clones": 7, "cloners": 6}
    of_march = {"days": {third: {"clones": 1, "cloners": 1}}, "visitors": 5, "until": second}
    assert stored(table) == {
        "2026-01": {"days": {first: both}},
        "2026-02": {"days": {second: {"views": 5, "visitors": 4}}},
        "2026-03": of_march,
    }


kinds = st.sampled_from(["views", "clones"])
numbers = st.tuples(st.integers(0, 9), st.integers(0, 9))
dates = st.sampled_from(
    [f"2026-{month}-{day:02}" for month in ("01", "02", "03") for day in (1, 2, 3)]
)
responses = st.builds(Traffic, kinds, st.integers(0, 9), st.dictionaries(dates, numbers))


@given(told=st.lists(responses, max_size=6), order=st.randoms(use_true_random=False))
def test_any_order_and_repetition_stores_the_highest_of_each_day(
    told: list[Traffic], order: Any
) -> None:
    """A number that nobody told is missing. The visitors are those of the latest window."""
    first, second = MemoryTable(), MemoryTable()
    for one in told:
        store(first, one)
    again = [*told, *told]
    order.shuffle(again)
    for one in again:
        store(second, one)
    expected: dict[str, dict[str, int]] = {}
    for one in told:
        for day, pair in one.days.items():
            for name, value in zip(github.NAMES[one.kind], pair, strict=True):
                known = expected.setdefault(day, {})
                known[name] = max(value, known.get(name, 0))
    windows = [(one.until("2026-03-14"), one.uniques) for one in told if one.kind == "views"]
    for table in (first, second):
        months = stored(table)
        days = {day: one for month in months.values() for day, one in month["days"].items()}
        assert days == expected
        for newest in [months[max(months)]] if windows else []:
            assert (newest["until"], newest["visitors"]) in windows
            assert newest["until"] == max(windows)[0]


def test_the_visitors_of_14_days_fall_as_github_tells_them() -> None:
    """The days go on, and those without visitors are left out, so the last day stays."""
    table = MemoryTable()
    for uniques in (9, 4):
        store(table, traffic("views", uniques, d13=(3, 2)))
    store(table, traffic("views", 30, d12=(1, 1)))
    assert stored(table)["2026-03"]["visitors"] == 4


WRONG: list[tuple[object, str]] = [
    ({}, "give at least one of views, clones"),
    ({"view": {}}, "no field 'view': there are clones, views"),
    ({"views": {"message": "Bad credentials"}}, "views: give GitHub's response to GET /repos/"),
    ({"views": None}, "views: give GitHub's response"),
    ({"clones": {"uniques": 1, "views": []}}, "clones: give GitHub's response"),
    ({"views": {"uniques": -1, "views": []}}, "views: uniques: give a whole number from 0"),
]
WRONG_DAYS: list[tuple[dict[str, object], str]] = [
    ({"count": "3"}, r"views: views[0].count: give a whole number from 0 to 1000000000000000, not"),
    ({"uniques": True}, "views: views[0].uniques: give a whole number"),
    ({"uniques": None}, "views: views[0].uniques: give a whole number"),
    ({"timestamp": "2026-03-13"}, "views: views[0].timestamp: give a day like"),
    ({"timestamp": "2026-02-30T00:00:00Z"}, "views: views[0].timestamp: give a day like"),
    ({"timestamp": "2026-03-16T00:00:00Z"}, "views: 2026-03-16 is in the future"),
]
GOOD: dict[str, object] = {"timestamp": "2026-03-13T00:00:00Z", "count": 3, "uniques": 2}


@pytest.mark.parametrize(
    ("body", "says"),
    [
        *WRONG,
        *(({"views": {"uniques": 1, "views": [GOOD | day]}}, says) for day, says in WRONG_DAYS),
        ({"views": {"uniques": 1, "views": [GOOD, GOOD]}}, "views: views: give each timestamp"),
        ({"views": {"uniques": 1, "views": [GOOD] * 32}}, "views: views: give at most 31 days"),
        ({"views": {"uniques": 1, "views": [GOOD, {}]}}, "views: views[1]: give timestamp, count"),
    ],
)
def test_a_wrong_body_stores_nothing_and_says_where_it_is_wrong(
    api: Api, body: object, says: str
) -> None:
    answer = put(api, body)
    assert answer.refusal == (400, "bad_request")
    assert answer.says.startswith(says)
    assert stored(api.table) == {}


def test_only_the_owner_tells(api: Api) -> None:
    body = {"views": {"uniques": 1, "views": [GOOD]}}
    assert put(api, body, "another-secret").refusal == (403, "wrong_secret")
    change(api, "DELETE")
    assert put(api, body, "another-secret").refusal == (404, "not_claimed")
    assert stored(api.table) == {}


def test_a_reset_leaves_the_numbers_and_a_deletion_removes_all(api: Api) -> None:
    """Six years are more months than one transaction deletes."""
    put(api, DOCUMENTED)
    change(api, "PATCH", {"reset": True})
    assert stored(api.table)["2016-10"]["visitors"] == 3782
    for month in range(180):
        name = f"{2000 + month // 12}-{month % 12 + 1:02}"
        pk, sk = keys.traffic(BADGE, name)
        api.table.write(Put({"PK": pk, "SK": sk, "days": {}}))
    change(api, "DELETE")
    assert stored(api.table) == {}


def test_numbers_that_come_during_a_deletion_are_removed_or_refused(api: Api) -> None:
    told = traffic("views", 1, d13=(3, 2))
    api.table.before_write = once(lambda: store(api.table, told))
    change(api, "DELETE")
    assert stored(api.table) == {}
    with pytest.raises(NotClaimedError):
        store(api.table, told)


def test_two_responses_at_once_are_both_stored(api: Api) -> None:
    first = traffic("views", 9, d13=(3, 2), d12=(1, 1))
    api.table.before_write = once(lambda: store(api.table, first))
    store(api.table, traffic("views", 8, d13=(2, 2), d11=(1, 1)))
    month = stored(api.table)["2026-03"]
    assert sorted(month["days"]) == ["2026-03-11", "2026-03-12", "2026-03-13"]
    assert (month["days"]["2026-03-13"]["views"], month["visitors"]) == (3, 8)


def test_an_id_with_numbers_is_taken_after_a_week_without_views(api: Api) -> None:
    put(api, DOCUMENTED)
    api.clock.now += 8 * DAY
    assert api.ask("POST", "/api/v1/badges", {"id": BADGE}).refusal == (409, "taken")


@pytest.mark.parametrize(
    ("query", "label", "message"),
    [
        ("&show=visitors", "visitors", "3782"),
        ("&show=visitors&format=comma", "visitors", "3,782"),
        ("&show=clones&base=9", "clones", "173"),
        ("&show=visitors&label=people", "people", "3782"),
    ],
)
@pytest.mark.parametrize("age", [3, 4, 9])
def test_a_badge_says_how_old_its_numbers_are_from_the_fourth_day_on(
    api: Api, age: int, query: str, label: str, message: str
) -> None:
    put(api, DOCUMENTED)
    newest = datetime(2016, 10, 24, 23, 59, tzinfo=UTC)
    api.clock.now = (newest + timedelta(days=age)).timestamp()
    end = f", {age} days ago" if age > 3 else ""
    badge = show(api, f"{query}&peek=1").body
    assert (badge["label"], badge["message"]) == (label + end, message)
    assert show(api, "&show=visitors&label=&peek=1").body["label"] == ""


def test_numbers_that_nobody_told_are_unknown(api: Api) -> None:
    """No traffic in 14 days is 0 visitors, and tells nothing about the clones of a day."""
    unknown = {"id": BADGE, "count": None, "message": "no numbers yet"}
    assert show(api, "&show=visitors&peek=1").body["message"] == "no numbers yet"
    put(api, {kind: {"count": 0, "uniques": 0, kind: []} for kind in github.NAMES})
    for kind, known in {
        "clones": unknown,
        "visitors": {**unknown, "count": 0, "message": "0"},
    }.items():
        counts = show(api, f"&show={kind}", "/api/v1/views/counts").body["counts"]
        assert counts == [known]
    put(api, {"views": {"uniques": 2, "views": [GOOD]}})
    counts = show(api, "&show=clones", "/api/v1/views/counts").body["counts"]
    assert counts == [unknown]


def test_a_plain_badge_reads_the_same_page(api: Api) -> None:
    put(api, DOCUMENTED)
    reads: list[str] = []
    api.table.before_read = reads.append
    assert show(api, "&peek=1").body["message"] == "0"
    assert reads == ["query"]
    show(api, "&show=visitors&peek=1")
    assert reads == ["query"] * 3


def test_a_sparkline_of_views_stands_beside_no_number_of_githubs(api: Api) -> None:
    drawn = show(api, "&show=visitors&spark=7", "/api/v1/views.svg").text
    assert "spark: leave it out with show=visitors" in drawn


def test_the_history_has_the_days_of_its_span_by_every_name(api: Api) -> None:
    put(api, DOCUMENTED)
    put(api, {"views": {"uniques": 2, "views": [GOOD]}})
    change(api, "PATCH", {"rename": "mona"})
    for name in (BADGE, "mona"):
        history = f"/api/v1/views/history?id={name}"
        assert api.ask("GET", f"{history}&days=9").body["github"] == [
            {"day": "2026-03-13", "views": 3, "visitors": 2, "clones": None, "cloners": None}
        ]
        found = api.ask("GET", f"{history}&from=2016-10-11&to=2016-10-20").body["github"]
        days = [day["day"] for day in found]
        assert (days[0], days[-1], len(days)) == ("2016-10-11", "2016-10-20", 10)
        first = {"views": 1308, "visitors": 414, "clones": 17, "cloners": 16}
        assert found[0] == {"day": "2016-10-11", **first}


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("&with=visitors&days=7", "GitHub's unique visitors a day: at most 2. Known days: 1 of 7."),
        ("&with=visitors&by=week", "with=visitors: give days, not by=week"),
        ("&with=visitors&height=99", "height: with=visitors needs at least 100"),
        ("&with=clones", "with: give visitors, not 'clones'"),
    ],
)
def test_a_chart_draws_the_visitors_of_days_alone(api: Api, query: str, says: str) -> None:
    put(api, {"views": {"uniques": 2, "views": [GOOD]}})
    drawn = show(api, query, "/api/v1/views/history.svg").text
    assert says in drawn


def test_the_page_of_a_badge_offers_the_numbers_where_there_are_some(api: Api) -> None:
    assert "docs/github-traffic.md" in show(api, "", "/s").text
    put(api, {"views": {"uniques": 2, "views": [GOOD]}})
    page = show(api, "", "/s").text
    assert "docs/github-traffic.md" not in page
    assert f"![visitors](http://localhost/api/v1/views.svg?id={BADGE}&amp;show=visitors)" in page
    assert f"history.svg?id={BADGE}&amp;days=30&amp;with=visitors" in page
    api.clock.now += 40 * DAY
    assert "with=visitors" not in show(api, "", "/s").text
