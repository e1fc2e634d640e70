"""The page of a badge: its numbers, its lines and its link preview. It counts nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import pytest

from chalicelib.counting import keys
from chalicelib.http.errors import BadRequestError
from chalicelib.http.messages import Request
from chalicelib.pages.badge_page import root_url
from chalicelib.settings import Settings
from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.writes import Put
from simulation.clocks import Clock
from simulation.storage import raising
from simulation.views import put_summary, put_views
from tests.unit.html_pages import Page
from tests.unit.http_requests import Answer, Api

NOW = 1_795_249_800.0
"""2026-11-21T08:30:00Z, a Saturday."""
NEW_YEAR = 1_767_225_600.0
"""2026-01-01T00:00:00Z, a Thursday."""
HOST = "views.example.com"
HOSTILE = "<script>alert(1)</script> \" onload='x' $count ${url} &amp; ](x) --> %3C"


@dataclass
class World(Api):
    """The routes on a Saturday morning."""

    clock: Clock = field(default_factory=lambda: Clock(NOW))

    def show(
        self, badge_id: str = "a/b", route: str = "/s", method: str = "GET", **more: str
    ) -> Answer:
        headers = {"host": more.pop("host", HOST)}
        return self.ask(method, f"{route}?{urlencode({'id': badge_id, **more})}", **headers)

    def page(self, badge_id: str = "a/b", **more: str) -> Page:
        answer = self.show(badge_id, **more)
        assert answer.status == 200
        return Page(answer.text)

    def fill(self, days: Mapping[str, int], today: str, live: int = 1, **summary: int) -> None:
        """Put finished days, the views of `today`, and live views at the present time."""
        for day, views in days.items():
            pk, sk = keys.day("a/b", day)
            self.table.write(Put({"PK": pk, "SK": sk, "views": views, "h07": views, "reset": 0}))
        count = sum(days.values()) + 2
        put_summary(
            self.table, "a/b", count=count, today={"day": today, "h09": 2}, version=9, **summary
        )
        put_views(self.table, *[int(self.clock() * 1000)] * live, badge_id="a/b")


@pytest.fixture
def world() -> World:
    return World()


def numbers(page: Page) -> list[str]:
    return [*page.texts["strong"], *page.texts["dd"]]


DAYS = {
    "2025-12-31": 17,
    "2026-01-01": 1300,
    "2026-10-31": 11,
    "2026-11-01": 7,
    "2026-11-15": 5,
    "2026-11-16": 3,
}


def test_it_shows_the_count_and_the_calendar_periods(world: World) -> None:
    """The base is only in the count. A week begins on Monday, here on 2026-11-16."""
    world.fill(DAYS, "2026-11-20", base=1_000)
    page = world.page()
    assert numbers(page) == ["2,346", "1", "6", "18", "1,329"]
    assert page.texts["dt"] == ["Today", "This week", "This month", "This year"]
    assert "since 2025-12-31" in " ".join(page.texts["p"])
    assert page.meta("description") == "1 today, 6 this week, 18 this month, 1,329 this year."


def test_a_week_may_begin_in_the_year_before(world: World) -> None:
    world.clock.now = NEW_YEAR
    world.fill({"2025-12-28": 50, "2025-12-29": 3}, "2025-12-31")
    assert numbers(world.page(days="1")) == ["56", "1", "6", "1", "1"]


def test_a_year_has_all_its_days_on_its_last_day(world: World) -> None:
    world.clock.now = NEW_YEAR + 365 * 86_400 - 1
    world.fill({"2026-01-01": 3, "2025-12-31": 50}, "2026-12-30")
    assert numbers(world.page(days="1"))[-1] == "6"


def test_a_view_of_a_clock_that_is_ahead_keeps_the_first_of_january(world: World) -> None:
    world.clock.now = NEW_YEAR + 365 * 86_400 - 86_401
    world.fill({"2026-01-01": 3}, "2026-12-31")
    assert numbers(world.page(days="1"))[-1] == "6"


def test_it_counts_nothing_and_changes_nothing(world: World) -> None:
    world.fill(DAYS, "2026-11-20")
    world.table.written.clear()
    world.table.put.clear()
    for method in ("GET", "HEAD"):
        for route in ("/s", "/s.png"):
            assert world.show("a/b", route, method).status == 200
            assert world.show("new", route, method).status == 200
    assert (world.views, world.table.written, world.table.put) == ([], [], [])
    (badge,) = [source for source in world.page().values("src") if "views.svg" in source]
    assert parse_qs(urlsplit(badge).query)["peek"] == ["1"]


def test_a_new_badge_has_a_page(world: World) -> None:
    page = world.page("new")
    assert numbers(page) == ["0"] * 5
    assert page.texts["title"] == ["new: 0 views"]
    assert "0 views in 30 days" in page.values("alt")
    assert "since" not in " ".join(page.texts["p"])


def test_one_view_is_singular(world: World) -> None:
    put_views(world.table, int(NOW * 1000), badge_id="a/b")
    assert world.page().texts["title"] == ["a/b: 1 view"]


@pytest.mark.parametrize("frozen", [0, 1])
def test_a_frozen_badge_says_so(world: World, frozen: int) -> None:
    put_summary(world.table, "a/b", count=1, frozen=frozen)
    assert ("frozen" in world.show().text) == bool(frozen)


def test_the_chart_has_the_requested_days(world: World) -> None:
    world.fill({"2026-11-16": 30}, "2026-11-20")
    page = world.page(days="2")
    assert "3 views in 2 days; most on 2026-11-20: 2" in page.values("alt")
    charts = [*page.values("srcset"), page.values("src")[0]]
    assert {parse_qs(urlsplit(one).query)["days"][0] for one in charts} == {"2"}
    assert {urlsplit(one).path for one in charts} == {"api/v1/views/history.svg"}
    current = [one["href"] for _, one in world.page().elements if "aria-current" in one]
    assert current == ["?id=a%2Fb&days=30"]
    assert "?id=a%2Fb&days=365" in world.page().values("href")


@pytest.mark.parametrize("days", ["0", "366", "x"])
def test_wrong_days_are_refused(world: World, days: str) -> None:
    refused = world.show(days=days)
    assert refused.refusal == (400, "bad_request")
    assert refused.says == f"days: give a whole number from 1 to 365, not '{days}'"


# ---- strangers' texts


def check_id(page: Page, badge_id: str, plain: Page) -> None:
    """Check that an id is nothing but text, in every place."""
    assert page.structure == plain.structure
    assert "".join(page.texts["bdi"]) == badge_id
    assert "".join(page.texts["title"]) == f"{badge_id}: 0 views"
    assert page.meta("og:title") == page.meta("twitter:title") == f"{badge_id}: 0 views"
    for url in (page.meta("og:url"), page.meta("og:image"), page.values("src")[0]):
        assert parse_qs(urlsplit(url).query, strict_parsing=True)["id"] == [badge_id]
    encoded = quote(badge_id, safe="")
    root = f"http://{HOST}/"
    image = f'<img src="{root}api/v1/views.svg?id={encoded}" alt="views">'
    chart = (
        f'<a href="{root}s?id={encoded}"><picture><source media="(prefers-color-scheme: dark)"'
        f' srcset="{root}api/v1/views/history.svg?id={encoded}&amp;theme=dark">'
        f'<img src="{root}api/v1/views/history.svg?id={encoded}&amp;theme=light"'
        f' alt="{escape(f"Views of {badge_id} by day")}"></picture></a>'
    )
    assert page.lines == [
        f"[![views]({root}api/v1/views.svg?id={encoded})]({root}s?id={encoded})",
        f'<a href="{root}s?id={encoded}">{image}</a>',
        chart,
    ]


def test_a_hostile_id_is_only_text(world: World) -> None:
    check_id(world.page(HOSTILE), HOSTILE, world.page("plain"))


def test_it_links_to_this_server_only(world: World) -> None:
    page = world.page("https://evil.example/")
    for url in (*page.values("href"), *page.values("src"), *page.values("srcset")):
        assert url.startswith(("./", "?id=", "api/v1/", f"http://{HOST}/", "data:image/svg+xml,"))


def test_the_scripts_and_styles_of_all_pages_are_those_that_the_policy_allows(world: World) -> None:
    for name in ("script", "style"):
        assert world.page(HOSTILE).texts[name] == world.page("other").texts[name]


# ---- the link preview


def test_a_link_preview_has_a_title_a_text_and_a_picture(world: World) -> None:
    world.fill(DAYS, "2026-11-20")
    page = world.page()
    for named in ("og", "twitter"):
        assert page.meta(f"{named}:title") == "a/b: 1,346 views"
        assert page.meta(f"{named}:description") == page.meta("description")
        assert page.meta(f"{named}:image") == f"http://{HOST}/s.png?id=a%2Fb"
        assert page.meta(f"{named}:image:alt") == "a/b: 1,346 views"
    assert page.meta("twitter:card") == "summary_large_image"
    assert page.meta("og:url") == f"http://{HOST}/s?id=a%2Fb"
    assert (page.meta("og:image:width"), page.meta("og:image:height")) == ("1200", "630")
    assert page.meta("robots") == "noindex, nofollow"


def test_the_picture_is_a_png_that_no_cache_stores(world: World) -> None:
    world.fill(DAYS, "2026-11-20")
    answer = world.show(route="/s.png")
    assert answer.response.is_binary
    assert answer.response.body.startswith(b"\x89PNG\r\n\x1a\n")
    assert answer.headers["Content-Type"] == "image/png"
    assert "no-store" in answer.headers["Cache-Control"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert world.show("new", route="/s.png").response.body != answer.response.body


@pytest.mark.parametrize(
    ("host", "public_url", "root"),
    [
        (HOST, "", f"http://{HOST}/"),
        ('"><script>', "https://other.example/base/", "https://other.example/base/"),
    ],
)
def test_the_lines_name_the_public_url(world: World, host: str, public_url: str, root: str) -> None:
    world.set(public_url=public_url)
    page = world.page(host=host)
    assert page.meta("og:url") == f"{root}s?id=a%2Fb"
    assert page.lines[0].startswith(f"[![views]({root}api/v1/views.svg?id=a%2Fb)](")


# ---- errors


@pytest.mark.parametrize("route", ["/s", "/s.png"])
def test_errors_have_the_usual_form(world: World, route: str) -> None:
    assert world.show("", route).says == "the id is empty: give one like owner/name"
    assert world.show("a\nb", route).refusal == (400, "bad_request")
    world.set(ids=("owner/*",))
    assert world.show("a/b", route).refusal == (403, "not_counted")
    assert world.show("owner/name", route).status == 200

    world.table.before_read = raising(UnavailableError("throttled"))
    assert world.show("owner/name", route).refusal == (503, "unavailable")


# ---- the URL of this server as visitors know it


def root_of(public_url: str = "", **headers: str) -> str:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return root_url(Request("GET", "/s", headers=named), Settings(public_url=public_url))


@pytest.mark.parametrize(
    "host", ["example.com", "a-b.example:8080", "127.0.0.1:80", "[::1]", "[2001:db8::1]:443"]
)
def test_the_url_of_this_server_is_that_of_the_request(host: str) -> None:
    assert root_of(host=host) == f"http://{host}/"
    assert root_of(host=host, x_forwarded_proto="https") == f"https://{host}/"
    assert root_of(host=host, x_forwarded_proto="https, http") == f"http://{host}/"


@pytest.mark.parametrize(
    "host", ["", "a b", "a/b", "u@a", "a:", "a:123456", "<a>", "[::1", "\u00fc"]
)
def test_another_host_is_refused(host: str) -> None:
    with pytest.raises(BadRequestError, match="the header Host must be"):
        root_of(host=host)


def test_a_request_without_a_host_is_for_this_machine() -> None:
    """HTTP/1.0 needs no such header."""
    assert root_of() == "http://localhost/"


def test_the_operators_url_comes_first() -> None:
    assert root_of("https://a.example/", host="b.example") == "https://a.example/"
