"""The URLs of other counters: their badges here, their options, and what is answered without them.

The URLs are in the form of each service's documents and source code.
"""

from __future__ import annotations

from urllib.parse import parse_qsl

import pytest

from chalicelib.api import TABLE, table_of
from chalicelib.http import query
from chalicelib.migration import drop_in
from chalicelib.settings import COUNTERS
from simulation.views import put_summary
from tests.unit.http_requests import Answer, Api


@pytest.fixture
def api(api: Api) -> Api:
    api.set(drop_in=COUNTERS)
    return api


def get(api: Api, url: str) -> Answer:
    return api.ask("GET", url)


def translated(target: str) -> dict[str, str]:
    path, _, raw = target.partition("?")
    ours = drop_in.translate(path, query.parse(raw), COUNTERS)
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
    api: Api, counter: str, url: str, badge_id: str
) -> None:
    for counters in ((counter,), COUNTERS, tuple(reversed(COUNTERS))):
        api.set(drop_in=counters)
        answer = get(api, url)
        assert answer.status == 200
        assert answer.headers["Content-Type"] == "image/svg+xml;charset=utf-8"
        assert "no-store" in answer.headers["Cache-Control"]
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert api.viewed == [badge_id] * 3


def test_the_count_is_that_of_the_badge(api: Api) -> None:
    put_summary(api.table, "octocat/octocat", base=1_000, count=234, version=1)
    for options, shown in (("", "1,234"), ("&abbreviated=true", "1.2k"), ("&base=500", "1,734")):
        assert f">{shown}<" in get(api, f"/ghpvc/?username=octocat{options}").text


@pytest.mark.parametrize(
    ("method", "url", "badge_id"),
    [
        ("GET", "/nocount/tag.svg?url=example.com", "example.com"),
        ("GET", "/api/count/keep/badge.svg?url=example.com", "example.com"),
        ("GET", "/badge?page_id=a&query_only=true", "a"),
        ("HEAD", "/badge?page_id=a", "a"),
    ],
)
def test_a_url_that_only_looks_counts_nothing(
    api: Api, method: str, url: str, badge_id: str
) -> None:
    put_summary(api.table, badge_id, base=77, version=1)
    assert "77" in api.ask(method, url).text
    assert api.viewed == []


def test_a_badge_that_has_two_numbers_there_has_them_here(api: Api) -> None:
    put_summary(api.table, "a.example", base=1_000, version=1)
    for url in ("/api/count/incr/badge.svg?url=a.example", "/api/hit?url=a.example"):
        assert ">0 today · 1000<" in get(api, url).text
    assert ">0 today · 1,000<" in get(api, "/a.example.svg?view=today-total").text


def test_the_pixel_of_komarev_is_one_here(api: Api) -> None:
    pixel = '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>'
    assert get(api, "/ghpvc/?username=octocat&style=pixel").text == pixel
    assert api.viewed == ["octocat/octocat"]
    assert get(api, "/dwyl/hits.json?style=pixel").body["message"] == "0"


def test_the_json_badge_of_dwyl_is_one_for_shields(api: Api) -> None:
    assert get(api, "/dwyl/hits.json?style=flat-square").body == {
        "schemaVersion": 1,
        "label": "hits",
        "message": "0",
        "color": "#44bb00",
        "style": "flat-square",
    }
    assert api.viewed == ["dwyl/hits"]
    error = get(api, f"/dwyl/{'h' * 200}.json")
    assert (error.status, error.body["isError"]) == (200, True)


TRANSLATED = """
/ghpvc/?username=a&label=PROFILE+VIEWS&color=dc143c&style=for-the-badge&base=440
label=PROFILE+VIEWS&color=dc143c&style=for-the-badge&base=440&format=comma

/a.example/b.svg?view=today-total&extraCount=1000&labelColor=555&logo=github
label=hits&color=brightgreen&show=today-total&base=1000&labelColor=555&logo=github&format=comma

/badge?page_id=a&left_text=Hello%20Visitors&left_color=red&right_color=%230f0&format=true
label=Hello+Visitors&labelColor=red&color=%230f0&format=short

/api/count/incr/badge.svg?url=a&count_bg=%23090&icon=github.svg&title=views
label=views&color=%23090&logo=github&show=today-total

/api/count/incr/badge.svg?url=a&icon_color=%2309f&title_bg=%23555&edge_flat=true
label=hits&color=79c83d&labelColor=%23555&logoColor=%2309f&style=flat-square&show=today-total

/api/hit?url=a.example&label=Visitors&icon=github&color=%23198754&message=&style=flat
label=Visitors&logo=github&color=%23198754&style=flat&show=today-total

/api/hit?url=a.example&tz=-5
label=&color=brightgreen&show=today-total&tz=-5

/get/@a?theme=rule34&padding=9&num=0
label=
"""
IGNORED = """
/ghpvc/?username=a&color=no-color&style=pixels&base=-5&abbreviated=false&utm=1
label=Profile+views&format=comma

/ghpvc/?username=a&color=red&color=blue
color=red

/api/count/incr/badge.svg?url=a.example&count_bg=&title=&icon=&edge_flat=false
label=hits&color=79c83d

/a.example/b.svg?view=ever
label=hits

/api/hit?url=a.example&tz=Australia%2FSydney
show=today-total

/d/w.svg?style=flat&show=unique
style=flat&label=hits
"""
"""A URL of theirs, and the look of the badge here."""


def rows(table: str) -> list[tuple[str, str]]:
    words = table.split()
    return [*zip(words[::2], words[1::2], strict=True)]


@pytest.mark.parametrize(("url", "look"), rows(TRANSLATED))
def test_their_options_become_ours(url: str, look: str) -> None:
    ours = translated(url)
    del ours["id"]
    assert ours == dict(parse_qsl(look, keep_blank_values=True))


@pytest.mark.parametrize(("url", "look"), rows(IGNORED))
def test_what_is_wrong_or_unknown_here_is_ignored(api: Api, url: str, look: str) -> None:
    assert translated(url).items() >= dict(parse_qsl(look)).items()
    assert translated(url).keys().isdisjoint({"base", "tz"})
    assert get(api, url).status == 200
    assert len(api.viewed) == 1


@pytest.mark.parametrize("url", ["/ghpvc/", "/ghpvc/?username=", "/ghpvc/?username=+"])
def test_a_url_without_its_page_is_drawn_as_an_error(api: Api, url: str) -> None:
    answer = get(api, url)
    assert answer.status == 200
    assert "give the page: ?username=…" in answer.text
    assert api.viewed == []


@pytest.mark.parametrize(
    "path",
    ["/nothing", "/a/b", "/a/b/c.svg", "/favicon.svg", "/api/v1/nothing", "/ghpvc/x", "/get/demo"],
)
def test_another_path_is_not_found(api: Api, path: str) -> None:
    assert get(api, path).refusal == (404, "not_found")
    assert api.viewed == []


@pytest.mark.parametrize("url", ["/ghpvc/?username=octocat", "/dwyl/hits.svg", "/@demo"])
def test_without_the_setting_their_urls_are_not_found(api: Api, url: str) -> None:
    for counters in (("hit-counter",), ()):
        api.set(drop_in=counters)
        assert get(api, url).refusal == (404, "not_found")
    assert api.ask("POST", url).refusal == (404, "not_found")
    assert table_of(()) is TABLE


def test_every_own_path_stays_as_it_is() -> None:
    """A route of vu-mi is found before any URL of another counter, whose path is no label."""
    table = table_of(COUNTERS)
    for route in TABLE.routes:
        found = table.find(route.path.replace("{", "").replace("}", ""))
        assert found is not None
        assert found.routes[route.method].path == route.path
    other = table.find("/github.com/octocat/hello.svg")
    assert other is not None
    assert other.routes["GET"].path == "/{path+}"
