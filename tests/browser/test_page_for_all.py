"""The page with the keyboard, with a screen reader, in the dark, and on a narrow screen."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.visit import DESKTOP, NARROW, Visit
from tests.processes.programs import Server

STATES = {
    "empty": "",
    "badge": "#id=octocat%2Fhello-world&logo=github",
    "long": f"#id={'long' * 50}&label={'wide%20' * 14}&style=for-the-badge&from=shields",
    "error": "#id=a&color=nope",
    "chart": "#id=octocat%2Fhello-world&kind=chart&link=1",
    "countdown": "#event=none&as=rst",
}
IS_ON_TOP = """
() => {
  const place = document.activeElement.getBoundingClientRect();
  return document.elementFromPoint(place.x + 5, place.y + 5) === document.activeElement;
}
"""
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


@pytest.mark.parametrize(
    ("keys", "most", "options"),
    [
        ([], 4, ""),
        (["Tab", "Tab", "Tab", *"go"], 12, "&logo=go"),
        (["Tab", "Tab", "ArrowDown", "Tab", *"pyth", "Enter"], 12, "&spark=30&logo=python"),
    ],
)
def test_a_line_is_copied_with_few_keys(
    visit: Visit, keys: list[str], most: int, options: str
) -> None:
    visit.open()
    visit.page.evaluate("navigator.clipboard.writeText('')")
    presses = ["Tab", "Tab", "typing", *keys, "Enter"]
    assert len(presses) - 1 <= most
    for key in presses:
        if key == "typing":
            visit.page.keyboard.type("keys/only")
        else:
            visit.page.keyboard.press(key)
        if len(key) == 1:
            expect(visit.field("Logo")).to_have_attribute("aria-expanded", "true")
    expect(visit.page.get_by_role("status")).to_have_text("Copied Markdown.")
    line = f"![views]({visit.root}/api/v1/views.svg?id=keys%2Fonly{options})"
    assert visit.clipboard() == line


def test_a_refused_line_is_mended_and_copied_at_once(visit: Visit) -> None:
    visit.open("#id=keys/only&logo=g")
    expect(visit.page.locator("#copy")).to_be_disabled()
    visit.field("Logo").press("End")
    visit.page.keyboard.type("o\n")
    expect(visit.page.get_by_role("status")).to_have_text("Copied Markdown.")


def test_every_control_is_reached_by_the_tab_key(visit: Visit) -> None:
    visit.open("#id=keys/only")
    visit.shows_badge("views: 0")
    for name in ("id", "style", "logo", "link", "as", "copy"):
        tab(visit.page, name)
    visit.page.keyboard.press("Space")
    expect(visit.page.get_by_role("status")).to_have_text("Copied Markdown.")
    assert focused(visit.page) == "copy"


@pytest.mark.parametrize("size", [NARROW, (768, 900), DESKTOP])
def test_the_preview_stays_in_view(browser: Browser, server: Server, size: tuple[int, int]) -> None:
    with Visit.of(browser, server, size=size) as visit:
        visit.open(STATES["badge"])
        for name in ("Label colour", "Logo", "Colour"):
            visit.page.locator("#more").evaluate("more => more.open = true")
            visit.field(name).focus()
            for seen in ("#badge", "#copy", "*:focus"):
                expect(visit.page.locator(seen)).to_be_in_viewport(ratio=1)
            assert visit.page.evaluate(IS_ON_TOP)


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
        if name in {focused(page), focused(page, "name")}:
            return
    pytest.fail(f"the Tab key does not reach {name}")
