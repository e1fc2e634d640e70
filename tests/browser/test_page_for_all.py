"""The page with the keyboard, with a screen reader, in the dark, and on a narrow screen."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.visit import DESKTOP, NARROW, SCREENS, Visit
from tests.end_to_end.server import Server

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
    for scheme, size in SCREENS:
        visit.look(size, color_scheme=scheme)
        settle(visit.page)
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= size[0]
        assert visit.find_barriers() == []


def test_the_page_follows_the_colour_scheme(visit: Visit) -> None:
    visit.open()
    for scheme, size in SCREENS:
        visit.look(size, color_scheme=scheme)
        colour = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
        red, green, blue = (int(part) for part in colour.strip("rgb()").split(","))
        assert (red + green + blue < 3 * 64) is (scheme == "dark")


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


def test_folded_fields_open_with_the_keyboard(visit: Visit) -> None:
    visit.open("#id=keys")
    tab(visit.page, "copy")
    visit.page.keyboard.press("Tab")
    visit.page.keyboard.press("Enter")
    tab(visit.page, "label")
    visit.page.keyboard.type("seen")
    visit.shows_badge("seen: 0")


def test_enter_in_a_field_leaves_the_page_as_it_is(visit: Visit) -> None:
    visit.open()
    visit.page.locator("#id").fill("entered")
    visit.page.locator("#id").press("Enter")
    visit.shows_badge("views: 0")
    assert visit.page.url == f"{visit.root}/#id=entered"


def test_the_focused_control_is_outlined(visit: Visit) -> None:
    visit.open("#id=a")
    style = "getComputedStyle(document.activeElement{})"
    outline = style + ".outlineStyle + " + style + ".outlineWidth"
    tab(visit.page, "copy")
    assert visit.page.evaluate(outline.replace("{}", "")) == "solid3px"
    visit.page.keyboard.press("Shift+Tab")
    visit.page.keyboard.press("Shift+Tab")
    assert focused(visit.page, "name") == "as"
    assert visit.page.evaluate(outline.replace("{}", ".parentElement")) == "solid3px"


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


def test_a_chart_is_as_wide_as_a_narrow_screen(browser: Browser, server: Server) -> None:
    """It is drawn at its real size, so that its text is as large as on a wide screen."""
    with Visit.of(browser, server, size=NARROW) as visit:
        settle(visit.open(STATES["chart"]).page)
        natural, shown = visit.page.locator("#chart").evaluate(
            "chart => [chart.naturalWidth, chart.clientWidth]"
        )
        assert natural == shown < 360


def test_the_page_is_short_on_a_phone(browser: Browser, server: Server) -> None:
    with Visit.of(browser, server, size=NARROW) as visit:
        for state, limit in (("empty", 1_400), ("badge", 1_850)):
            settle(visit.open(STATES[state]).page)
            assert visit.page.evaluate("document.documentElement.scrollHeight") < limit


def test_nothing_moves_for_people_who_prefer_less_motion(visit: Visit) -> None:
    longest = "Math.max(...[...document.querySelectorAll('*')].map(one =>"
    longest += " parseFloat(getComputedStyle(one).transitionDuration)))"
    visit.open()
    for motion, seconds in (("reduce", 0), ("no-preference", 0.12)):
        visit.look(DESKTOP, reduced_motion=motion)
        assert visit.page.evaluate(longest) == seconds


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
