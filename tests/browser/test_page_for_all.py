"""The page with the keyboard, with a screen reader, in the dark, and on a narrow screen."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.visit import Visit
from tests.end_to_end.server import Server

NARROW = (360, 740)
STATES = {
    "empty": "",
    "badge": "#id=octocat%2Fhello-world&logo=github",
    "long": f"#id={'long' * 50}&label={'wide%20' * 14}&style=for-the-badge&from=shields",
    "error": "#id=a&color=nope",
}
SETTLED = """
() => [...document.images].every(image => image.hidden || (image.complete && image.alt))
"""


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(
    browser: Browser, server: Server, scheme: Any, state: str
) -> None:
    with Visit.of(browser, server, color_scheme=scheme) as visit:
        settle(visit.open(STATES[state]).page)
        assert visit.find_barriers() == []
        assert visit.complaints == []


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("size", [NARROW, (1200, 800)])
def test_nothing_is_wider_than_the_screen(
    browser: Browser, server: Server, size: tuple[int, int], state: str
) -> None:
    with Visit.of(browser, server, size=size) as visit:
        settle(visit.open(STATES[state]).page)
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= size[0]


@pytest.mark.parametrize(("scheme", "dark"), [("light", False), ("dark", True)])
def test_the_page_follows_the_colour_scheme(
    browser: Browser, server: Server, scheme: Any, *, dark: bool
) -> None:
    with Visit.of(browser, server, color_scheme=scheme) as visit:
        visit.open()
        colour = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
        red, green, blue = (int(part) for part in colour.strip("rgb()").split(","))
        assert (red + green + blue < 3 * 64) is dark


def test_a_line_can_be_copied_with_the_keyboard_alone(visit: Visit) -> None:
    visit.open()
    tab(visit.page, "id")
    visit.page.keyboard.type("keys/only")
    visit.shows_badge("views: 0")
    tab(visit.page, "style")
    visit.page.keyboard.type("plas")
    tab(visit.page, "from-here")
    visit.page.keyboard.press("ArrowRight")
    tab(visit.page, "copy-markdown")
    visit.page.keyboard.press("Enter")
    expect(visit.page.get_by_role("status")).to_have_text("Copied the Markdown line.")
    assert visit.clipboard() == (
        "![views](https://img.shields.io/endpoint?url="
        f"http%3A%2F%2F{visit.server.host}%3A{visit.server.port}"
        "%2Fapi%2Fv1%2Fviews%3Fid%3Dkeys%252Fonly%26style%3Dplastic)"
    )
    assert focused(visit.page) == "copy-markdown"


def test_enter_in_a_field_leaves_the_page_as_it_is(visit: Visit) -> None:
    visit.open()
    visit.field("Id").fill("entered")
    visit.field("Id").press("Enter")
    visit.shows_badge("views: 0")
    assert visit.page.url == f"{visit.root}/#id=entered"


def test_the_focused_control_is_outlined(visit: Visit) -> None:
    visit.open("#id=a")
    tab(visit.page, "copy-html")
    width = visit.page.evaluate("getComputedStyle(document.activeElement).outlineWidth")
    assert width == "3px"


@pytest.mark.parametrize("size", [NARROW, (1200, 800)])
def test_nothing_moves_when_the_pictures_load(
    browser: Browser, server: Server, size: tuple[int, int]
) -> None:
    places = "[...document.querySelectorAll('section')].map(one => one.getBoundingClientRect().top)"
    with Visit.of(browser, server, size=size) as visit:
        visit.page.route("**/api/**", lambda _: None)
        visit.open(STATES["badge"])
        before = visit.page.evaluate(places)
        visit.page.unroute_all()
        visit.page.reload()
        settle(visit.page)
        assert visit.page.evaluate(places) == before


def test_a_chart_is_as_wide_as_a_narrow_screen(browser: Browser, server: Server) -> None:
    """It is drawn at its real size, so that its text is as large as on a wide screen."""
    with Visit.of(browser, server, size=NARROW) as visit:
        settle(visit.open(STATES["badge"]).page)
        natural, shown = visit.page.locator("#chart").evaluate(
            "chart => [chart.naturalWidth, chart.clientWidth]"
        )
        assert natural == shown < 360


def settle(page: Page) -> None:
    page.wait_for_load_state("networkidle")
    page.wait_for_function(SETTLED)


def focused(page: Page) -> str:
    name: str = page.evaluate("document.activeElement.id")
    return name


def tab(page: Page, name: str) -> None:
    """Press Tab until a control has the focus."""
    for _ in range(40):
        page.keyboard.press("Tab")
        if focused(page) == name:
            return
    pytest.fail(f"the Tab key does not reach {name}")
