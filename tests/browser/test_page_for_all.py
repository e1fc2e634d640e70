"""The page with the keyboard, with a screen reader, in the dark, and on a narrow screen."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.visit import DESKTOP, NARROW, Visit
from tests.processes.server import Server

STATES = {
    "empty": "",
    "badge": "#id=octocat%2Fhello-world&logo=github",
    "long": f"#id={'long' * 50}&label={'wide%20' * 14}&style=for-the-badge&from=shields",
    "error": "#id=a&color=nope",
    "chart": "#id=octocat%2Fhello-world&kind=chart&link=1",
    "countdown": "#kind=countdown&as=rst",
}
SETTLED = """
() => [...document.images].every(image => image.hidden || image.complete)
  && ["badge", "chart"].every(name => {
    const image = document.getElementById(name);
    return image.hidden || image.alt;
  })
"""


@pytest.mark.parametrize("state", STATES)
def test_axe_finds_nothing_serious_and_nothing_is_wider_than_the_screen(
    visit: Visit, state: str
) -> None:
    visit.open(STATES[state])
    visit.check_on_all_screens(settle)


def test_a_line_can_be_copied_with_the_keyboard_alone(visit: Visit) -> None:
    visit.open()
    tab(visit.page, "id")
    visit.page.keyboard.type("keys/only")
    visit.shows_badge("views: 0")
    visit.page.keyboard.press("Tab")
    assert focused(visit.page, "name") == "style"
    visit.page.keyboard.press("ArrowRight")
    visit.page.keyboard.press("ArrowRight")
    expect(visit.field("plastic")).to_be_checked()
    tab(visit.page, "link")
    visit.page.keyboard.press("Space")
    tab(visit.page, "copy")
    visit.page.keyboard.press("Enter")
    expect(visit.page.get_by_role("status")).to_have_text("Copied Markdown.")
    assert visit.clipboard() == (
        f"[![views]({visit.root}/api/v1/views.svg?id=keys%2Fonly&style=plastic)]"
        f"({visit.root}/s?id=keys%2Fonly)"
    )
    assert focused(visit.page) == "copy"


@pytest.mark.parametrize("size", [NARROW, DESKTOP])
def test_nothing_moves_when_the_pictures_load(
    browser: Browser, server: Server, size: tuple[int, int]
) -> None:
    places = (
        "[...document.querySelectorAll('form > *')].map(one => one.getBoundingClientRect().top)"
    )
    with Visit.of(browser, server, size=size) as visit:
        visit.page.route("**/api/**", lambda _: None)
        visit.open(STATES["badge"])
        before = visit.page.evaluate(places)
        visit.page.unroute_all()
        visit.page.reload()
        settle(visit.page)
        assert visit.page.evaluate(places) == before


def settle(page: Page) -> None:
    page.wait_for_load_state("networkidle")
    page.wait_for_function(SETTLED)


def focused(page: Page, attribute: str = "id") -> str:
    name: str = page.evaluate(f"document.activeElement.{attribute}")
    return name


def tab(page: Page, name: str) -> None:
    """Press Tab until a control has the focus."""
    for _ in range(40):
        page.keyboard.press("Tab")
        if focused(page) == name:
            return
    pytest.fail(f"the Tab key does not reach {name}")
