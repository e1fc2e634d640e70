"""An image that is opened as a page draws the same as without its policy, which blocks nothing."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Error, Page, Route

from chalicelib.badges.options import STYLES
from tests.browser.visit import Scheme, Visit
from tests.processes.programs import Server

SIZE = (640, 200)
"""A small screen, because its pixels are compared and drawing each takes time."""
POLICY = "content-security-policy"
BESIDE_LOGO: Any = {"x": 24, "y": 0, "width": 200, "height": 40}
BADGE = "views.svg?id=a&peek=1&logo=github&label=%E6%97%A5+views"
CHART = "views/history.svg?id=a"
IMAGES = [
    *((f"{BADGE}&style={style}", "light") for style in STYLES),
    ("views.svg?id=%E2%80%8B&peek=1", "light"),
    (f"{CHART}&color=green", "light"),
    (f"{CHART}&color=green", "dark"),
    (f"{CHART}&days=0", "dark"),
]


def open_directly(page: Page, root: str, image: str) -> bytes:
    """Open an image as a page and return its pixels."""
    page.goto(f"{root}/api/v1/{image}", wait_until="load")
    return pixels(page)


def pixels(page: Page, clip: Any = None) -> bytes:
    """Return the pixels of a page.

    On a slow machine Chromium may refuse a tab's first picture. It takes it when asked again.
    """
    try:
        return page.screenshot(clip=clip)
    except Error as refusal:
        if "Unable to capture" not in refusal.message:
            raise
        return page.screenshot(clip=clip)


def without_policy(route: Route) -> None:
    answer = route.fetch()
    headers = {name: value for name, value in answer.headers.items() if name != POLICY}
    assert len(headers) < len(answer.headers)
    route.fulfill(response=answer, headers=headers)


@pytest.fixture(scope="module")
def tab(browser: Browser, server: Server) -> Iterator[Visit]:
    """Open a tab for all images, because a tab takes longer than an image."""
    with Visit.of(browser, server) as opened:
        yield opened


@pytest.fixture
def visit(tab: Visit) -> Iterator[Visit]:
    tab.complaints.clear()
    tab.look(SIZE)
    yield tab
    assert tab.complaints == []


@pytest.mark.parametrize(("image", "scheme"), IMAGES)
def test_an_image_that_is_opened_as_a_page_draws_the_same_as_without_its_policy(
    visit: Visit, image: str, scheme: Scheme
) -> None:
    visit.look(SIZE, color_scheme=scheme)
    visit.page.goto("about:blank")
    empty = pixels(visit.page)
    drawn = open_directly(visit.page, visit.root, image)
    visit.page.route(f"**/api/v1/{image}", without_policy, times=1)
    assert open_directly(visit.page, visit.root, image) == drawn
    assert drawn != empty


@pytest.mark.parametrize("style", STYLES)
def test_a_logo_never_covers_the_texts(visit: Visit, style: str) -> None:
    """An own logo is drawn, and clipped, so that nobody draws another count."""
    shapes = {
        "small": '<path fill="red" d="M0 0h9v9H0z"/>',
        "huge": '<rect x="-999" y="-999" width="9999" height="9999" fill="red" stroke-width="99"/>',
    }
    badges = {
        name: f"views.svg?id=a&peek=1&style={style}&logo={own_logo(shape)}"
        for name, shape in shapes.items()
    }
    plain = open_directly(visit.page, visit.root, badges["small"])
    rest = pixels(visit.page, BESIDE_LOGO)
    assert open_directly(visit.page, visit.root, badges["huge"]) != plain
    assert pixels(visit.page, BESIDE_LOGO) == rest


def own_logo(shape: str) -> str:
    document = f'<svg viewBox="0 0 24 24">{shape}</svg>'
    return quote("data:image/svg+xml;base64," + b64encode(document.encode()).decode())


def test_a_script_in_an_image_does_not_run(browser: Browser, server: Server) -> None:
    """No image of vu-mi has one. The policy is the second wall."""
    with Visit.of(browser, server, size=SIZE) as visit:

        def with_script(route: Route) -> None:
            answer = route.fetch()
            body = answer.text().replace("</svg>", "<script>document.title='run'</script></svg>")
            route.fulfill(response=answer, body=body)

        visit.page.route("**/views.svg*", with_script)
        visit.page.goto(f"{visit.root}/api/v1/views.svg?id=a&peek=1", wait_until="load")
        assert visit.page.title() != "run"
        assert any("script" in complaint.lower() for complaint in visit.complaints)
