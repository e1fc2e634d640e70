"""The page of a badge, its link preview and its picture; the builder, its logos and the script."""

from __future__ import annotations

import gzip
import re
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import pytest

from chalicelib.badges.logos import paths
from chalicelib.http.errors import BadRequestError
from chalicelib.http.messages import Request
from chalicelib.pages import preview, service
from chalicelib.pages.badge_page import root_url
from chalicelib.settings import Settings
from simulation.clocks import Clock
from simulation.resources import GivenResources
from simulation.views import put_summary, put_views
from tests.unit.history.stored_days import put_days
from tests.unit.html_pages import Page
from tests.unit.http_requests import Answer, Api, ask

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
        hours = {day: {"h07": views} for day, views in days.items()}
        put_days(self.table, {**hours, today: {"h09": 2}}, "a/b", version=9, **summary)
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


YEAR = 365 * 86_400


@pytest.mark.parametrize(
    ("now", "days", "today", "expected"),
    [
        (NEW_YEAR, {"2025-12-28": 50, "2025-12-29": 3}, "2025-12-31", ["56", "1", "6", "1", "1"]),
        (NEW_YEAR + YEAR - 1, {"2026-01-01": 3, "2025-12-31": 50}, "2026-12-30", ["6"]),
        (NEW_YEAR + YEAR - 86_401, {"2026-01-01": 3}, "2026-12-31", ["6"]),
    ],
    ids=["a week of two years", "the last day", "a clock that is ahead"],
)
def test_a_year_has_all_its_days(
    world: World, now: float, days: Mapping[str, int], today: str, expected: list[str]
) -> None:
    """A week may begin in the year before, and a view of another clock in the next one."""
    world.clock.now = now
    world.fill(days, today)
    assert numbers(world.page(days="1"))[-len(expected) :] == expected


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


def test_a_hostile_id_is_only_text(world: World) -> None:
    page = world.page(HOSTILE)
    assert page.structure == world.page("plain").structure
    assert "".join(page.texts["bdi"]) == HOSTILE
    assert "".join(page.texts["title"]) == f"{HOSTILE}: 0 views"
    assert page.meta("og:title") == page.meta("twitter:title") == f"{HOSTILE}: 0 views"
    for url in (page.meta("og:url"), page.meta("og:image"), page.values("src")[0]):
        assert parse_qs(urlsplit(url).query, strict_parsing=True)["id"] == [HOSTILE]
    encoded, root = quote(HOSTILE, safe=""), f"http://{HOST}/"
    image = f'<img src="{root}api/v1/views.svg?id={encoded}" alt="views">'
    chart = (
        f'<a href="{root}s?id={encoded}"><picture><source media="(prefers-color-scheme: dark)"'
        f' srcset="{root}api/v1/views/history.svg?id={encoded}&amp;theme=dark">'
        f'<img src="{root}api/v1/views/history.svg?id={encoded}&amp;theme=light"'
        f' alt="{escape(f"Views of {HOSTILE} by day")}"></picture></a>'
    )
    assert page.lines == [
        f"[![views]({root}api/v1/views.svg?id={encoded})]({root}s?id={encoded})",
        f'<a href="{root}s?id={encoded}">{image}</a>',
        chart,
    ]


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


# ---- the URL of this server as visitors know it


def root_of(**headers: str) -> str:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return root_url(Request("GET", "/s", headers=named), Settings())


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


# ---- the picture of the page

NO_DAYS = [0] * preview.DAYS
PEAK = [0] * 14 + [80] + [0] * 15
FULL = {preview.LEVELS - 1, preview.OVER_AREA + preview.LEVELS - 1}


def draw(days: Sequence[int]) -> list[bytes]:
    """Return the rows of a picture: its pixels, each an index of a palette, without a filter.

    Source: W3C, "Portable Network Graphics (PNG) Specification (Third Edition)".
    """
    document = preview.draw(days)
    assert document[:8] == b"\x89PNG\r\n\x1a\n"
    chunks = dict(chunks_of(document[8:]))
    assert list(chunks) == [b"IHDR", b"PLTE", b"IDAT", b"IEND"]
    assert struct.unpack(">IIBBBBB", chunks[b"IHDR"]) == (1200, 630, 8, 3, 0, 0, 0)
    assert len(chunks[b"PLTE"]) == 2 * preview.LEVELS * len("rgb")
    lines = zlib.decompress(chunks[b"IDAT"])
    assert (len(lines), set(lines[::1201])) == (630 * 1201, {0})
    return [lines[at + 1 : at + 1201] for at in range(0, len(lines), 1201)]


def chunks_of(rest: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the kind and the content of each chunk, whose checksum is right."""
    while rest:
        end = 8 + struct.unpack(">I", rest[:4])[0]
        assert struct.unpack(">I", rest[end : end + 4]) == (zlib.crc32(rest[4:end]),)
        yield rest[4:8], rest[8:end]
        rest = rest[end + 4 :]


def line(rows: list[bytes], x: int) -> list[int]:
    return [y for y, row in enumerate(rows) if row[x] in FULL]


def column_of(day: int) -> int:
    return preview.LEFT + (preview.RIGHT - preview.LEFT) * day // (preview.DAYS - 1)


def test_the_line_goes_from_day_to_day_and_is_as_high_as_its_views() -> None:
    rows = draw([0, 40, 80, *[20] * 27])
    for day, share in ((0, 0), (1, 0.5), (2, 1), (20, 0.25)):
        y = preview.GROUND - (preview.GROUND - preview.TOP) * share
        assert any(abs(covered - y) <= 2 for covered in line(rows, column_of(day)))


def test_a_month_without_views_is_a_flat_line() -> None:
    rows = draw(NO_DAYS)
    columns = range(preview.LEFT, preview.RIGHT)
    assert {tuple(line(rows, x)) for x in columns} == {
        tuple(range(preview.GROUND - preview.RADIUS, preview.GROUND + preview.RADIUS))
    }


def test_nothing_is_in_the_margin_and_the_line_overshoots_no_day() -> None:
    rows = draw(PEAK)
    edge = preview.RADIUS + 1
    margin = [*rows[: preview.TOP - edge], *rows[preview.GROUND + edge :]]
    sides = [row[: preview.LEFT - edge] + row[preview.RIGHT + edge :] for row in rows]
    assert not any(map(any, margin + sides))
    assert any(rows[preview.TOP])


def test_steep_edges_are_smooth_over_the_background_and_the_area() -> None:
    shades = {shade for row in draw(PEAK) for shade in row}
    assert len(shades & set(range(preview.LEVELS))) > preview.LEVELS // 2
    assert len(shades & set(range(preview.OVER_AREA, 2 * preview.LEVELS))) > preview.LEVELS // 2


# ---- the builder, its logos, and the script of web pages


def test_the_script_of_the_builder_is_small() -> None:
    (inside,) = re.findall("<script>(.*?)</script>", service.text(has_events=True), re.DOTALL)
    assert len(gzip.compress(inside.encode())) <= 10 * 1_024


def test_every_picture_is_drawn_and_countdowns_are_there_only_with_events() -> None:
    for has_events in (True, False):
        text = service.text(has_events=has_events)
        assert "example:" not in text
        assert ('for="event"' in text) is has_events


def test_the_logos_are_those_that_a_badge_draws() -> None:
    answer = ask(GivenResources(), "GET", "/logos.json")
    assert answer.body == paths()
    assert all(re.fullmatch(r"[Mm][-\w., ]+", path) for path in answer.body.values())
    assert answer.headers["Cache-Control"] == "public, max-age=86400"


# ---- the script of web pages, which `tests/browser` runs


def get(**headers: str) -> Answer:
    return ask(GivenResources(), "GET", "/count.js?v=1", **headers)


def test_the_script_is_small_and_cached_for_an_hour() -> None:
    answer = get()
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/javascript;charset=utf-8"
    assert answer.headers["Cache-Control"] == "public, max-age=3600"
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert len(gzip.compress(answer.response.body)) <= 2_048
    assert "\n// " not in answer.text


def test_a_browser_that_has_the_script_gets_no_body() -> None:
    tag = get().headers["ETag"]
    again = get(if_none_match=f'"other", {tag}')
    assert (again.status, again.text, again.headers["ETag"]) == (304, "", tag)
    assert get(if_none_match='W/"other"').status == 200
