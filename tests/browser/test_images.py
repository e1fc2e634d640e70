"""An image that is opened as a page draws the same as without its policy, which blocks nothing."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route

from chalicelib.badges.options import STYLES
from tests.browser.visit import Visit
from tests.end_to_end.server import Server

POLICY = "content-security-policy"
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
    return page.screenshot()


def without_policy(route: Route) -> None:
    answer = route.fetch()
    headers = {name: value for name, value in answer.headers.items() if name != POLICY}
    assert len(headers) < len(answer.headers)
    route.fulfill(response=answer, headers=headers)


@pytest.mark.parametrize(("image", "scheme"), IMAGES)
def test_an_image_that_is_opened_as_a_page_draws_the_same_as_without_its_policy(
    browser: Browser, server: Server, image: str, scheme: Any
) -> None:
    with Visit.of(browser, server, color_scheme=scheme) as visit:
        empty = visit.page.screenshot()
        drawn = open_directly(visit.page, visit.root, image)
        visit.page.route(f"**/api/v1/{image}", without_policy)
        assert open_directly(visit.page, visit.root, image) == drawn
        assert drawn != empty
        assert visit.complaints == []


def test_a_script_in_an_image_does_not_run(browser: Browser, server: Server) -> None:
    """No image of vu-mi has one. The policy is the second wall."""
    with Visit.of(browser, server) as visit:

        def with_script(route: Route) -> None:
            answer = route.fetch()
            body = answer.text().replace("</svg>", "<script>document.title='run'</script></svg>")
            route.fulfill(response=answer, body=body)

        visit.page.route("**/views.svg*", with_script)
        open_directly(visit.page, visit.root, "views.svg?id=a&peek=1")
        assert visit.page.title() != "run"
        assert any("script" in complaint.lower() for complaint in visit.complaints)
