"""The page in a real browser: typed in, drawn and remembered. It counts no view."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from playwright.sync_api import Browser, Route, expect

from chalicelib.badges.options import STYLES
from chalicelib.history.periods import Show
from tests.browser.visit import Visit
from tests.processes.server import Server

ODD_ID = "o'wner/na me\N{EYES}\"(1)"
ODD_ID_ENCODED = "o%27wner%2Fna%20me%F0%9F%91%80%22%281%29"
BADGE = "#id=octocat%2Fhello"
MORE = "Change the number, colours or logo"
LOOKING = "Looking here counts no view."
SAMPLE_ID = "owner/name"
PERIODS = [str(show) for show in Show if show is not Show.TOTAL and not show.is_githubs]


def queries(visit: Visit) -> list[dict[str, list[str]]]:
    """Return a list that gets the query of each request for a badge."""
    asked: list[dict[str, list[str]]] = []

    def keep(url: str) -> None:
        if urlsplit(url).path in {"/api/v1/views", "/api/v1/views.svg"}:
            asked.append(parse_qs(urlsplit(url).query, keep_blank_values=True))

    visit.page.on("request", lambda request: keep(request.url))
    return asked


def test_the_preview_shows_the_count_and_counts_no_view(visit: Visit, server: Server) -> None:
    """There are 3 views before and 3 after."""
    for _ in range(3):
        server.badge(ODD_ID)
    server.wait_for(ODD_ID, 3)
    asked = queries(visit)
    visit.open()
    visit.field("Your repository, or any name").fill(ODD_ID)
    visit.shows_badge("views: 3")
    expect(visit.page.locator("#said")).to_have_text(f"Now at 3. {LOOKING}")
    visit.choose("Chart")
    visit.is_drawn("#chart")
    said = re.compile(r"^3 views in the last 30 days; most on \d{4}-\d\d-\d\d: 3\.$")
    expect(visit.page.locator("#chart")).to_have_attribute("alt", said)
    visit.choose("Counter")
    visit.page.reload()
    visit.shows_badge("views: 3")
    visit.page.wait_for_load_state("networkidle")
    assert {one["id"][0] for one in asked} == {ODD_ID, SAMPLE_ID}
    assert all(one["peek"] == ["1"] for one in asked)
    assert server.peek(ODD_ID) == 3


def test_without_an_id_the_page_shows_an_example_that_nobody_can_copy(visit: Visit) -> None:
    asked = queries(visit)
    visit.open()
    visit.shows_badge("views: 1234")
    expect(visit.page.locator("#said")).to_have_text("An example. Type a name to see yours.")
    expect(visit.page.get_by_role("button", name="Copy Markdown")).to_be_disabled()
    visit.page.wait_for_load_state("networkidle")
    assert all((one["id"], one["peek"]) == ([SAMPLE_ID], ["1"]) for one in asked)
    assert visit.page.url == f"{visit.root}/"


def test_the_strip_shows_the_badge_in_each_style(visit: Visit) -> None:
    visit.open(f"{BADGE}&logo=github")
    pictures = visit.page.locator("#styles img:visible")
    expect(pictures).to_have_count(len(STYLES))
    for place, style in enumerate(STYLES):
        source = parse_qs(urlsplit(pictures.nth(place).get_attribute("src") or "").query)
        assert source.get("style", ["flat"]) == [style]
        assert (source["id"], source["logo"]) == (["octocat/hello"], ["github"])
        visit.choose(style)
        assert ("style=" in visit.page.url) is (style != "flat")
        expect(visit.page.locator("#badge")).to_have_attribute(
            "src", pictures.nth(place).get_attribute("src") or ""
        )
    visit.is_drawn("#badge")


def test_every_option_reaches_the_badge(visit: Visit) -> None:
    visit.open("#id=a%2Foptions")
    visit.choose("for-the-badge")
    visit.choose(MORE)
    offered = visit.field("Number").locator("option").all()
    assert [one.get_attribute("value") for one in offered] == ["", *PERIODS]
    visit.field("Number").select_option("all views")
    visit.field("Label").fill("seen")
    visit.field("Colour").fill("red")
    visit.field("Format").select_option("1.2k")
    visit.field("Label colour").fill("#123456")
    visit.field("Logo").fill("github")
    visit.field("Logo colour").fill("gold")
    visit.field("Add to the count").fill("1234")
    visit.shows_badge("seen: 1.2k")
    source = visit.page.locator("#badge").get_attribute("src") or ""
    assert parse_qs(urlsplit(source).query) == {
        "id": ["a/options"],
        "label": ["seen"],
        "color": ["red"],
        "labelColor": ["123456"],
        "style": ["for-the-badge"],
        "logo": ["github"],
        "logoColor": ["gold"],
        "format": ["short"],
        "base": ["1234"],
        "peek": ["1"],
    }
    visit.field("Number").select_option(PERIODS[0])
    expect(visit.page.locator("#line")).to_contain_text(f"&show={PERIODS[0]}&")
    expect(visit.page.locator("#badge")).to_have_attribute("src", re.compile(f"show={PERIODS[0]}"))


def test_an_unknown_logo_is_reported(visit: Visit) -> None:
    visit.open(f"{BADGE}&logo=nosuchlogo")
    said = visit.page.locator("#said")
    expect(said).to_contain_text(
        "Without the logo nosuchlogo: it is not one of the included logos."
    )
    visit.field("Logo").fill("github")
    expect(said).to_have_text(f"Now at 0. {LOOKING}")


def test_choices_are_stored_in_the_address_and_restored_from_it(visit: Visit) -> None:
    visit.open()
    visit.field("Your repository, or any name").fill(f"kept/{ODD_ID}")
    visit.choose(MORE)
    visit.field("Label").fill("a & b + c")
    visit.field("Let shields.io draw it").check()
    visit.field("Link to the badge's page").check()
    visit.choose("plastic")
    visit.choose("HTML")
    visit.shows_badge("a & b + c: 0")
    address = visit.page.url
    assert address == (
        f"{visit.root}/#id=kept%2F{ODD_ID_ENCODED}&label=a%20%26%20b%20%2B%20c&style=plastic"
        "&as=html&link=1&from=shields"
    )
    line = visit.page.locator("#line").text_content() or ""
    visit.page.goto("about:blank")
    visit.page.goto(address)
    expect(visit.field("Your repository, or any name")).to_have_value(f"kept/{ODD_ID}")
    expect(visit.field("plastic")).to_be_checked()
    visit.shows_badge("a & b + c: 0")
    assert visit.page.url == address
    visit.expect_line(line)


def test_the_page_follows_a_changed_fragment(visit: Visit) -> None:
    visit.open("#id=first")
    visit.shows_badge("views: 0")
    visit.page.evaluate("location.hash = '#id=second&label=no&style=none-such&days=8'")
    visit.shows_badge("no: 0")
    expect(visit.field("Your repository, or any name")).to_have_value("second")
    expect(visit.field("flat")).to_be_checked()


@pytest.mark.parametrize(
    ("fragment", "field", "right", "says"),
    [
        (
            "#id=" + "x" * 201,
            "Your repository, or any name",
            "a",
            "the id has 201 characters and 201 bytes: give at most 200 and 400",
        ),
        ("#id=a&color=nope", "Colour", "red", "color: "),
        ("#id=a&base=-1", "Add to the count", "0", "base: give a whole number"),
    ],
)
def test_an_error_is_shown_in_words_at_its_field_and_its_line_is_not_copied(
    visit: Visit, fragment: str, field: str, right: str, says: str
) -> None:
    visit.open(fragment)
    expect(visit.page.locator("#said")).to_contain_text(f"The badge says: {says}")
    expect(visit.field(field)).to_be_visible()
    expect(visit.field(field)).to_have_attribute("aria-invalid", "true")
    expect(visit.field(field)).to_have_attribute("aria-describedby", "said")
    expect(visit.page.get_by_role("button", name="Copy Markdown")).to_be_disabled()
    visit.is_drawn("#badge")
    visit.field(field).fill(right)
    visit.shows_badge("views: 0")
    expect(visit.field(field)).not_to_have_attribute("aria-invalid", "true")
    expect(visit.page.get_by_role("button", name="Copy Markdown")).to_be_enabled()


def test_a_pause_in_typing_sends_one_request(visit_apart: Visit) -> None:
    """Of 12 keys, 50 ms apart, the server receives only the last state."""
    visit = visit_apart
    visit.page.clock.install(time=0)
    visit.open()
    visit.shows_badge("views: 1234")
    asked = queries(visit)
    visit.page.clock.pause_at(60_000)  # however long the keys take here
    for key in "typed/fast12":
        visit.field("Your repository, or any name").press_sequentially(key)
        visit.page.clock.run_for(50)
    assert asked == []
    visit.page.clock.run_for(900)
    visit.shows_badge("views: 0")
    assert {one["id"][0] for one in asked} == {"typed/fast12"}


def test_a_server_that_does_not_answer_is_reported_in_words(
    browser: Browser, server: Server
) -> None:
    with Visit.of(browser, server) as visit:
        visit.open()
        visit.page.route("**/api/**", lambda route: route.abort())
        visit.field("Your repository, or any name").fill("a")
        expect(visit.page.locator("#said")).to_have_text(
            "The server does not answer. Try again in a moment."
        )


@pytest.mark.parametrize("path", ["/prod", "/prod/"])
def test_below_a_stage_every_address_has_the_stage(visit: Visit, path: str) -> None:
    """API Gateway serves the page at /prod and at /prod/ ."""
    page = visit.server.request("/")

    def under_stage(route: Route) -> None:
        asked = urlsplit(route.request.url)
        if asked.path == path:
            route.fulfill(status=200, headers=dict(page[1].items()), body=page[2])
        elif asked.path.startswith("/prod/api/"):
            route.fulfill(response=route.fetch(url=route.request.url.replace("/prod/", "/", 1)))
        else:
            visit.pass_own(route)

    visit.page.route("**/prod**", under_stage)
    visit.page.route("**/prod/**", under_stage)
    visit.page.goto(f"{visit.root}{path}#id=staged&link=1")
    visit.shows_badge("views: 0")
    link = f"{visit.root}/prod/s?id=staged"
    visit.expect_line(f"[![views]({visit.root}/prod/api/v1/views.svg?id=staged)]({link})")
    described = visit.page.get_by_role("link", name="API description")
    assert described.evaluate("link => link.href") == f"{visit.root}/prod/openapi.json"
    visit.choose("Chart")
    visit.is_drawn("#chart")


def test_an_address_of_two_slashes_leads_to_no_other_host(visit: Visit) -> None:
    page = visit.server.request("/")
    visit.page.route(
        "**//evil.example/**",
        lambda route: route.fulfill(status=200, headers=dict(page[1].items()), body=page[2]),
    )
    visit.page.goto(f"{visit.root}//evil.example/#id={quote('a/b', safe='')}")
    visit.expect_line(f"![views]({visit.root}//evil.example/api/v1/views.svg?id=a%2Fb)")
