"""The script of web pages, in pages of another site than the counter, in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.sites import ON_THIS_MACHINE, Site, published
from tests.processes.programs import Server

names = count()


@dataclass(kw_only=True)
class VisitedSite(Site):
    """A site, and the browser that visits it."""

    context: BrowserContext

    def open(self, path: str = "/") -> Page:
        page = self.context.new_page()
        page.goto(self.url(path), wait_until="networkidle")
        return page


@pytest.fixture(scope="module")
def visitors(chromium: Callable[..., Browser]) -> Iterator[Browser]:
    with closing(chromium(*ON_THIS_MACHINE)) as launched:
        yield launched


@pytest.fixture
def site(visitors: Browser, server: Server) -> Iterator[VisitedSite]:
    with closing(visitors.new_context()) as context:
        made = VisitedSite(server, f"me{next(names)}.example", context=context)
        made.put("/")
        with published(made):
            yield made


def shows(page: Page, *numbers: str) -> None:
    expect(page.locator("p")).to_have_text(" ".join(numbers))


def requests_to(page: Page, counter: str) -> list[str]:
    """Note the requests to the counter from now on."""
    asked: list[str] = []

    def note(request: Any) -> None:
        if request.url.startswith(f"{counter}/api"):
            asked.append(f"{request.method} {urlsplit(request.url).path}")

    page.on("request", note)
    return asked


def test_three_loads_are_three_views_of_the_page_and_of_the_site(site: VisitedSite) -> None:
    site.put("/post/")
    page = site.open()
    complaints: list[str] = []
    page.on("console", lambda said: complaints.append(said.text))
    for number in ("1", "2", "3"):
        page.goto(site.url("/post/index.html" if number == "2" else "/post/"))
        site.pages["/post/index.html"] = site.pages["/post/"]
        shows(page, number, str(int(number) + 1))
    assert (site.count("/post/"), site.count("/"), site.count()) == (3, 1, 4)
    assert complaints == []
    assert site.context.cookies() == []
    assert page.evaluate("localStorage.length + sessionStorage.length") == 0


def test_a_path_is_counted_as_a_reader_writes_it(site: VisitedSite) -> None:
    site.put("/%E6%96%87%E7%AB%A0/a%20b/", "<p><b data-views='/文章/a b/'>?</b></p>")
    shows(site.open("/文章/a b/?utm_source=x#top"), "1")
    assert site.count("/文章/a b/") == 1


def test_attributes_name_the_site_the_page_and_the_format(site: VisitedSite) -> None:
    site.server.visit(f"{site.name}.of/mine", 1)
    site.put("/x", attributes=f'data-site="{site.name}.of" data-path="mine" data-format="plain"')
    shows(site.open("/x"), "2", "1")


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("plain", ["7", "999", "1000", "1234567"]),
        ("comma", ["7", "999", "1,000", "1,234,567"]),
        ("short", ["7", "999", "1k", "1.2M"]),
    ],
)
def test_a_number_is_written_as_on_a_badge(site: VisitedSite, name: str, texts: list[str]) -> None:
    given = dict(zip(("/a", "/b", "/c", "/d"), (7, 999, 1_000, 1_234_567), strict=True))
    site.put("/", "".join(f"<b data-views='{path}'></b>" for path in given), f"data-format={name}")
    page = site.context.new_page()

    def answer(route: Any) -> None:
        counts = [{"id": site.name + path, "count": number} for path, number in given.items()]
        route.fulfill(json={"counts": counts}, headers={"Access-Control-Allow-Origin": "*"})

    page.route("**/counts?*", answer)
    page.goto(site.url("/"))
    expect(page.locator("b")).to_have_text(texts)


@pytest.mark.parametrize("once", ["session", "day"])
def test_a_browser_may_remember_that_it_has_counted(site: VisitedSite, once: str) -> None:
    for path in ("/", "/next/"):
        site.put(path, attributes=f"data-once={once}")
    page = site.open()
    for _ in range(2):
        page.reload(wait_until="networkidle")
        shows(page, "1", "1")
    page.goto(site.url("/next/"), wait_until="networkidle")
    shows(page, "1", "1")
    second = site.open()
    shows(second, *("22" if once == "session" else "11"))


def test_a_browser_is_switched_off_and_on_by_the_address(site: VisitedSite) -> None:
    page = site.open()
    page.goto(site.url("/#vu-mi-off"))
    for _ in range(2):
        page.reload(wait_until="networkidle")
        shows(page, "1", "1")
    page.goto(site.url("/#vu-mi-on"))
    page.reload()
    shows(page, "2", "2")


def test_a_page_with_a_router_is_counted_when_its_path_changes(site: VisitedSite) -> None:
    site.put("/", attributes="data-spa")
    page = site.open()
    page.evaluate("history.pushState({}, '', '/a')")
    shows(page, "1", "2")
    page.evaluate("history.pushState({}, '', '/a?tab=2'); location.hash = 'x'")
    page.evaluate("history.pushState({}, '', '/b')")
    shows(page, "1", "3")
    page.evaluate("history.go(-3)")
    shows(page, "2", "4")
    assert (site.count("/a"), site.count("/b"), site.count()) == (2, 1, 4)


def test_without_the_attribute_a_router_counts_nothing(site: VisitedSite) -> None:
    page = site.open()
    page.evaluate("history.pushState({}, '', '/a')")
    page.wait_for_load_state("networkidle")
    assert (site.count("/a"), site.count()) == (0, 1)


def test_a_script_that_a_router_loads_again_counts_the_new_page(site: VisitedSite) -> None:
    """So do themes of Hexo with PJAX. A second script of the same page counts nothing."""
    page = site.open()
    again = """url => {
        document.querySelector('p').innerHTML = '<b data-views>?</b> <i data-views=site>?</i>';
        document.head.append(Object.assign(document.createElement('script'), {src: url}));
    }"""
    page.evaluate(again, f"{site.counter}/count.js")
    shows(page, "1", "1")
    page.evaluate("history.pushState({}, '', '/a')")
    page.evaluate(again, f"{site.counter}/count.js")
    shows(page, "1", "2")


@pytest.mark.parametrize("blocked", ["**/count.js", "**/api/**"])
def test_a_page_is_whole_without_its_counter(site: VisitedSite, blocked: str) -> None:
    page = site.context.new_page()
    broken: list[str] = []
    page.on("pageerror", lambda error: broken.append(str(error)))
    page.route(blocked, lambda route: route.abort())
    page.goto(site.url("/"), wait_until="networkidle")
    shows(page, "?", "?")
    assert broken == []
    assert site.count() == 0


def test_an_id_that_the_counter_refuses_leaves_the_page_whole(site: VisitedSite) -> None:
    site.put("/", attributes=f"data-path={'x' * 300}")
    shows(site.open(), "?", "?")
    assert site.count() == 0


@pytest.mark.parametrize(
    ("path", "posts", "requests"),
    [("/{}/", 50, 1), ("/" + "文" * 90 + "{}/", 30, 4)],
    ids=["one request", "long paths in several requests"],
)
def test_a_list_of_posts_is_read_in_few_requests(
    site: VisitedSite, path: str, posts: int, requests: int
) -> None:
    paths = [path.format(place) for place in range(posts)]
    site.server.visit(f"{site.name}{paths[1]}", 2)
    site.put("/", "".join(f"<b data-views='{path}'>?</b>" for path in paths))
    page = site.context.new_page()
    asked = requests_to(page, site.counter)
    page.goto(site.url("/"))
    expect(page.locator("b")).to_have_text(["0", "2", *["0"] * (posts - 2)])
    assert asked == ["POST /api/v1/views", *["GET /api/v1/views/counts"] * requests]


BUSUANZI = """
<script async src="{}"></script>
<p><span id="busuanzi_container_site_pv" style="display:none">本站总访问量<span
id="busuanzi_value_site_pv"></span>次</span> <span id="busuanzi_container_page_pv"
style="display:none">本文总阅读量<span id="busuanzi_value_page_pv"></span>次</span><span
id="busuanzi_container_site_uv" style="display:none">本站访客数<span
id="busuanzi_value_site_uv"></span>人次</span></p>
"""
"""The lines that its page shows. Source: ibruce.info, 2015-04-04, "busuanzi"."""
VERCOUNT = """
<script defer src="{}"></script>
<p>本文总阅读量 <span id="vercount_value_page_pv">Loading</span> 次
本站总访问量 <span id="vercount_value_site_pv">Loading</span> 次
本站总访客数 <span id="vercount_value_site_uv">Loading</span> 人</p>
"""
"""The lines of its README. Source: EvanNotFound/vercount at d0431d7."""


@pytest.mark.parametrize(
    ("example", "text"),
    [
        (BUSUANZI, "本站总访问量1次 本文总阅读量1次"),
        (VERCOUNT, "本文总阅读量 1 次 本站总访问量 1 次 本站总访客数 人"),
        (
            VERCOUNT.replace("vercount", "busuanzi"),
            "本文总阅读量 1 次 本站总访问量 1 次 本站总访客数 人",
        ),
    ],
    ids=["busuanzi", "vercount", "vercount with the names of busuanzi"],
)
def test_the_lines_of_another_counter_work_with_another_src(
    site: VisitedSite, example: str, text: str
) -> None:
    lines = example.format(f"{site.counter}/count.js")
    site.pages["/"], site.policy = f"<!doctype html>{lines}", "script-src {0}"
    expect(site.open().locator("p")).to_have_text(text, use_inner_text=True)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_page_of_this_machine_shows_and_counts_nothing(site: VisitedSite, host: str) -> None:
    site.put("/", attributes=f"data-site={site.name}")
    page = site.context.new_page()
    asked = requests_to(page, site.counter)
    page.goto(site.url("/", host), wait_until="networkidle")
    shows(page, "?", "?")
    assert asked == []


def test_a_browser_that_a_program_drives_shows_and_counts_nothing(site: VisitedSite) -> None:
    site.context.add_init_script("Object.defineProperty(navigator, 'webdriver', {value: true})")
    page = site.open()
    page.evaluate("vumi.count('/by-hand')")
    shows(page, "?", "?")
    assert site.count() == 0


def test_a_page_counts_by_hand(site: VisitedSite) -> None:
    page = site.open()
    page.evaluate("vumi.count('/file.zip')")
    shows(page, "1", "2")
    assert site.count("/file.zip") == 1
