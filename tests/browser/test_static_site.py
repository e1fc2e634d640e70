"""The example of a static site, on another site than the counter, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from simulation.loopback import SilentHandler, serving
from tests.browser.visit import Visit
from tests.processes.programs import Server

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "static-site"
COUNTER, BADGE = "https://views.example.com", "me.example/"


class Files(SilentHandler, SimpleHTTPRequestHandler):
    """The files of a folder."""


@pytest.fixture
def site(server: Server, tmp_path: Path) -> Iterator[str]:
    """Serve the example with the test's counter. Browsers take these two hosts for two sites."""
    copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    page = tmp_path / "index.html"
    text = page.read_text()
    assert text.count(COUNTER) == 5
    own_id = f"{tmp_path.name}%2F"
    text = text.replace(COUNTER, server.url.rstrip("/"))
    page.write_text(text.replace("me.example%2F", own_id))
    with serving(partial(Files, directory=tmp_path)) as port:
        yield f"http://localhost:{port}/"


@pytest.fixture
def badge(tmp_path: Path) -> str:
    return f"{tmp_path.name}/"


@contextmanager
def visiting(browser: Browser, server: Server, site: str, **settings: Any) -> Iterator[Visit]:
    """Visit the site; fail at the end if the browser had an error."""
    opened = Visit.apart(browser, server, **settings) if settings else Visit.of(browser, server)
    with opened as visit:
        visit.page.route(f"{site}**", lambda route: route.continue_())
        yield visit
        assert visit.complaints == []


def test_a_browser_without_javascript_counts_by_the_pixel(
    browser: Browser, server: Server, site: str, badge: str
) -> None:
    with visiting(browser, server, site, java_script_enabled=False) as visit:
        visit.page.goto(site, wait_until="load")
        assert visit.page.locator("img").bounding_box() is not None
    assert server.peek(badge) == 1


@pytest.mark.parametrize(
    "script",
    [
        "url => navigator.sendBeacon(url)",
        "url => fetch(url, {method: 'POST', headers: {'X-Own': '1'}}).then(answer => answer.ok)",
        "url => fetch(url, {method: 'POST', mode: 'no-cors'}).then(() => true)",
        "url => fetch(url).then(answer => answer.ok)",
    ],
    ids=["a beacon", "after a preflight", "without the answer", "as JSON for shields.io"],
)
def test_a_script_may_count_by_any_request(
    browser: Browser, server: Server, site: str, badge: str, script: str
) -> None:
    with visiting(browser, server, site) as visit:
        visit.page.goto(site)
        visit.page.unroute_all()  # `wait_for` doesn't let Playwright pass on a beacon
        assert visit.page.evaluate(script, f"{visit.root}/api/v1/views?id={badge}")
        server.wait_for(badge, 1)


def test_the_most_read_posts_of_the_page_are_listed(
    browser: Browser, server: Server, site: str
) -> None:
    for path, times in (("second", 3), ("first", 2), ("not-a-post", 9)):
        server.visit(f"localhost/{path}/", times)
    with visiting(browser, server, site) as visit:
        visit.page.goto(site)
        expect(visit.page.locator("#most-read a")).to_have_text(["Second", "First"])


def test_a_script_changes_nothing(browser: Browser, server: Server, site: str, badge: str) -> None:
    """The browser sends the claim, because a form could, and the counter refuses it."""
    claim = "url => fetch(url, {method: 'POST', mode: 'no-cors', body: '{\"id\": \"%s\"}'})"
    with visiting(browser, server, site) as visit:
        visit.page.goto(site)
        with visit.page.expect_response("**/api/v1/badges") as refused:
            visit.page.evaluate(claim % f"{badge}own", f"{visit.root}/api/v1/badges")
        assert refused.value.status == 403
        visit.complaints.clear()
