"""The URLs of other counters: their badges here, their options, and what is answered without them.

The URLs are in the form of each service's documents and source code.
"""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.api import TABLE, table_of
from chalicelib.counting import badge_count
from chalicelib.counting.view import View, ViewMessages
from chalicelib.http import query
from chalicelib.http.dispatch import dispatch
from chalicelib.http.messages import Request
from chalicelib.migration import drop_in
from chalicelib.settings import COUNTERS, Settings
from simulation.clocks import NOON
from simulation.memory_table import MemoryTable
from simulation.queues import FakeQueue
from simulation.resources import GivenResources
from simulation.views import put_summary
from tests.unit.http_requests import Answer


def resources(*counters: str) -> GivenResources:
    return GivenResources(
        table=MemoryTable(),
        views_queue=ViewMessages(FakeQueue()),
        clock=lambda: NOON,
        settings=Settings(drop_in=counters or COUNTERS),
    )


def ask(given: GivenResources, target: str, method: str = "GET") -> Answer:
    path, _, raw = target.partition("?")
    table = table_of(given.settings.drop_in)
    return Answer(dispatch(table, Request(method, path, query=query.parse(raw)), given))


def viewed(given: GivenResources) -> list[str]:
    assert isinstance(given.views_queue, ViewMessages)
    assert isinstance(given.views_queue.queue, FakeQueue)
    return [View.from_message(body).badge_id for body in given.views_queue.queue.bodies]


def translated(target: str, *counters: str) -> dict[str, str]:
    path, _, raw = target.partition("?")
    ours = drop_in.translate(path, query.parse(raw), counters or COUNTERS)
    return {name: one for name, [one] in ours.items()}


@pytest.mark.parametrize(
    ("counter", "url", "badge_id"),
    [
        ("komarev", "/ghpvc/?username=octocat", "octocat/octocat"),
        ("komarev", "/ghpvc/?username=+octocat", "octocat/octocat"),
        ("hits.sh", "/github.com/silentsoft/hits.svg", "github.com/silentsoft/hits"),
        ("hits.sh", "/zahlman.github.io+oxidation.svg", "zahlman.github.io+oxidation"),
        ("hits.sh", "/example.com/a.b/c%20d.svg", "example.com/a.b/c d"),
        ("dwyl", "/dwyl/phoenix.js.svg", "dwyl/phoenix.js"),
        ("visitor-badge", "/badge?page_id=jwenjian.visitor-badge", "jwenjian.visitor-badge"),
        ("moe-counter", "/get/@Moe-counter.github", "@Moe-counter.github"),
        ("moe-counter", "/@demo?theme=asoul", "@demo"),
        ("moe-counter", "/get/%40demo", "@demo"),
        ("hit-counter", "/count/tag.svg?url=https%3A%2F%2Fexample.com%2Fa", "example.com/a"),
        ("hit-counter", "/count/tag.svg?url=http%3A%2F%2Fa.example%2F%23top", "a.example"),
        (
            "seeyoufarm",
            "/api/count/incr/badge.svg?url=https%3A%2F%2Fgithub.com%2Fgjbae1212%2Fhit-counter",
            "github.com/gjbae1212/hit-counter",
        ),
        (
            "seeyoufarm",
            "/api/count/incr/badge.svg?url=https%3A%2F%2Fpypi.org%2Fproject%2Fnaverscrap%2F%3Fa",
            "pypi.org/project/naverscrap",
        ),
        (
            "hitscounter",
            "/api/hit?url=https%3A%2F%2Fgithub.com%2Fdonaldzou%2Fhits-counter&icon=github",
            "github.com/donaldzou/hits-counter",
        ),
        ("hitscounter", "/api/hit?url=www.example.com%2F%3Fp%3D1", "www.example.com/?p=1"),
    ],
)
def test_a_url_of_another_counter_counts_a_view_of_its_page(
    counter: str, url: str, badge_id: str
) -> None:
    for given in (resources(counter), resources(*COUNTERS), resources(*reversed(COUNTERS))):
        answer = ask(given, url)
        assert answer.status == 200
        assert answer.headers["Content-Type"] == "image/svg+xml;charset=utf-8"
        assert "no-store" in answer.headers["Cache-Control"]
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert viewed(given) == [badge_id]


def test_the_count_is_that_of_the_badge() -> None:
    given = resources()
    put_summary(given.table, "octocat/octocat", base=1_000, count=234, version=1)
    assert ">1,234<" in ask(given, "/ghpvc/?username=octocat").text
    assert ">1.2k<" in ask(given, "/ghpvc/?username=octocat&abbreviated=true").text
    assert ">1,734<" in ask(given, "/ghpvc/?username=octocat&base=500").text
    assert badge_count.read(given.table, "octocat/octocat").shown == 1_234


@pytest.mark.parametrize(
    ("url", "badge_id"),
    [
        ("/nocount/tag.svg?url=example.com", "example.com"),
        ("/api/count/keep/badge.svg?url=example.com", "example.com"),
        ("/badge?page_id=a&query_only=true", "a"),
    ],
)
def test_a_url_that_only_looks_counts_nothing(url: str, badge_id: str) -> None:
    given = resources()
    put_summary(given.table, badge_id, base=77, version=1)
    assert "77" in ask(given, url).text
    assert viewed(given) == []


def test_a_badge_that_has_two_numbers_there_has_them_here() -> None:
    given = resources()
    put_summary(given.table, "a.example", base=1_000, version=1)
    for url in ("/api/count/incr/badge.svg?url=a.example", "/api/hit?url=a.example"):
        assert ">0 today · 1000<" in ask(given, url).text
    assert ">0 today · 1,000<" in ask(given, "/a.example.svg?view=today-total").text


def test_the_pixel_of_komarev_is_one_here() -> None:
    given = resources()
    pixel = '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>'
    assert ask(given, "/ghpvc/?username=octocat&style=pixel").text == pixel
    assert viewed(given) == ["octocat/octocat"]
    assert ask(given, "/dwyl/hits.json?style=pixel").body["message"] == "0"


def test_head_counts_nothing() -> None:
    given = resources()
    assert ask(given, "/ghpvc/?username=octocat", "HEAD").status == 200
    assert viewed(given) == []


def test_the_json_badge_of_dwyl_is_one_for_shields() -> None:
    given = resources("dwyl")
    assert ask(given, "/dwyl/hits.json?style=flat-square").body == {
        "schemaVersion": 1,
        "label": "hits",
        "message": "0",
        "color": "#44bb00",
        "style": "flat-square",
    }
    assert viewed(given) == ["dwyl/hits"]


SEEYOUFARM = (
    "/api/count/incr/badge.svg?url=a.example&count_bg=%2395C10D&title_bg=%23555555"
    "&icon=github.svg&icon_color=%238DC409&title=views&edge_flat=true"
)
LOOKS: list[tuple[str, dict[str, str]]] = [
    (
        "/ghpvc/?username=a&label=PROFILE+VIEWS&color=dc143c&style=for-the-badge&base=440",
        {
            "label": "PROFILE VIEWS",
            "color": "dc143c",
            "style": "for-the-badge",
            "base": "440",
            "format": "comma",
        },
    ),
    (
        "/a.example/b.svg?view=today-total&extraCount=1000&labelColor=555&logo=github",
        {
            "show": "today-total",
            "base": "1000",
            "labelColor": "555",
            "logo": "github",
            "label": "hits",
            "color": "brightgreen",
            "format": "comma",
        },
    ),
    (
        "/badge?page_id=a&left_text=Hello%20Visitors&left_color=red&right_color=%2300ff00&format=true",
        {
            "label": "Hello Visitors",
            "labelColor": "red",
            "color": "#00ff00",
            "format": "short",
        },
    ),
    (
        SEEYOUFARM,
        {
            "label": "views",
            "color": "#95C10D",
            "labelColor": "#555555",
            "logo": "github",
            "logoColor": "#8DC409",
            "style": "flat-square",
            "show": "today-total",
        },
    ),
    (
        "/api/hit?url=a.example&label=Visitors&icon=github&color=%23198754&message=&style=flat",
        {
            "label": "Visitors",
            "logo": "github",
            "color": "#198754",
            "style": "flat",
            "show": "today-total",
        },
    ),
    ("/get/@a?theme=rule34&padding=9&num=0", {"label": ""}),
    (
        "/api/hit?url=a.example&tz=-5",
        {"label": "", "color": "brightgreen", "show": "today-total", "tz": "-5"},
    ),
]


@pytest.mark.parametrize(("url", "look"), LOOKS)
def test_their_options_become_ours(url: str, look: dict[str, str]) -> None:
    ours = translated(url)
    del ours["id"]
    assert ours == look


@pytest.mark.parametrize(
    ("url", "look"),
    [
        (
            "/ghpvc/?username=a&color=no-color&style=pixels&base=-5&abbreviated=false&utm=1",
            {"label": "Profile views", "format": "comma"},
        ),
        ("/ghpvc/?username=a&color=red&color=blue", {"color": "red"}),
        (
            "/api/count/incr/badge.svg?url=a.example&count_bg=&title=&icon=&edge_flat=false",
            {"label": "hits", "color": "79c83d"},
        ),
        ("/a.example/b.svg?view=ever", {"label": "hits"}),
        ("/api/hit?url=a.example&tz=Australia%2FSydney", {"show": "today-total"}),
        ("/d/w.svg?style=flat&show=unique", {"style": "flat", "label": "hits"}),
    ],
)
def test_what_is_wrong_or_unknown_here_is_ignored(url: str, look: dict[str, str]) -> None:
    given = resources()
    assert translated(url).items() >= look.items()
    assert translated(url).keys().isdisjoint({"base", "tz"})
    assert ask(given, url).status == 200
    assert len(viewed(given)) == 1


@pytest.mark.parametrize("url", ["/ghpvc/", "/ghpvc/?username=", "/ghpvc/?username=+"])
def test_a_url_without_its_page_is_drawn_as_an_error(url: str) -> None:
    given = resources()
    answer = ask(given, url)
    assert answer.status == 200
    assert "give the page: ?username=…" in answer.text
    assert viewed(given) == []


def test_a_json_badge_shows_its_error_as_json() -> None:
    answer = ask(resources("dwyl"), f"/dwyl/{'h' * 200}.json")
    assert (answer.status, answer.body["isError"]) == (200, True)


def test_an_id_that_is_not_counted_here_is_refused() -> None:
    given = resources()
    given.settings = Settings(drop_in=COUNTERS, ids=("owner/*",))
    assert "this id is not counted here" in ask(given, "/get/@demo").text
    assert viewed(given) == []


@pytest.mark.parametrize(
    "path",
    ["/nothing", "/a/b", "/a/b/c.svg", "/favicon.svg", "/api/v1/nothing", "/ghpvc/x", "/get/demo"],
)
def test_another_path_is_not_found(path: str) -> None:
    given = resources()
    assert ask(given, path).refusal == (404, "not_found")
    assert viewed(given) == []


@pytest.mark.parametrize("url", ["/ghpvc/?username=octocat", "/dwyl/hits.svg", "/@demo"])
def test_without_the_setting_their_urls_are_not_found(url: str) -> None:
    given = resources("hit-counter")
    assert ask(given, url).refusal == (404, "not_found")
    given.settings = Settings()
    assert ask(given, url).refusal == (404, "not_found")
    assert ask(given, url, "POST").refusal == (404, "not_found")
    assert table_of(()) is TABLE


def test_every_own_path_stays_as_it_is() -> None:
    """A route of vu-mi is found before any URL of another counter."""
    table = table_of(COUNTERS)
    for route in TABLE.routes:
        found = table.find(route.path.replace("{", "").replace("}", ""))
        assert found is not None
        assert found.routes[route.method].path == route.path


def test_the_labels_of_metrics_have_no_id() -> None:
    match: Any = table_of(COUNTERS).find("/github.com/octocat/hello.svg")
    assert match.routes["GET"].path == "/{path+}"
