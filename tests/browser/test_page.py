"""The page in a real browser: typed in, drawn and remembered. It counts no view."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from playwright.sync_api import Browser, Route, expect

from chalicelib.badges.logos import paths
from chalicelib.history.periods import Show
from chalicelib.http.tokens import digest
from tests.browser.visit import Visit
from tests.processes.programs import Server

ODD_ID = "o'wner/na me\N{EYES}\"(1)"
ODD_ID_ENCODED = "o%27wner%2Fna%20me%F0%9F%91%80%22%281%29"
BADGE = "#id=octocat%2Fhello"
NAME = "Your repository, or any name"
MORE = "More"
COPY = "Copy Markdown"
LOOKING = "Looking here counts no view."
SAMPLE_ID = "owner/name"
PERIODS = [str(show) for show in Show if show is not Show.TOTAL]


def queries(visit: Visit) -> list[dict[str, list[str]]]:
    """Return a list that gets the query of each request for a badge."""
    asked: list[dict[str, list[str]]] = []

    def keep(url: str) -> None:
        if urlsplit(url).path in {"/api/v1/views", "/api/v1/views.svg"}:
            asked.append(parse_qs(urlsplit(url).query, keep_blank_values=True))

    visit.page.on("request", lambda request: keep(request.url))
    return asked


def tell_github(server: Server, badge_id: str, secret: str, days_ago: int = 0) -> None:
    """Claim a badge, and tell GitHub's 1,234 visitors and 56 clones of a day."""
    claim = {"id": badge_id, "digest": digest(secret)}
    assert server.ask("POST", "/api/v1/badges", claim)[0] == 201
    day = f"{datetime.now(UTC) - timedelta(days_ago):%Y-%m-%dT00:00:00Z}"
    views = {"timestamp": day, "count": 2000, "uniques": 1234}
    clones = {"timestamp": day, "count": 56, "uniques": 7}
    told = {"views": {"uniques": 1234, "views": [views]}}
    told |= {"clones": {"uniques": 7, "clones": [clones]}}
    path = f"/api/v1/badges/traffic?id={quote(badge_id)}"
    assert server.ask("PUT", path, told, token=secret)[0] == 200


def test_the_preview_shows_the_count_and_counts_no_view(visit: Visit, server: Server) -> None:
    """There are 3 views before and 3 after."""
    for _ in range(3):
        server.badge(ODD_ID)
    server.wait_for(ODD_ID, 3)
    asked = queries(visit)
    visit.open()
    visit.field(NAME).fill(ODD_ID)
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
    expect(visit.page.get_by_role("button", name=COPY)).to_be_disabled()
    visit.page.wait_for_load_state("networkidle")
    assert all((one["id"], one["peek"]) == ([SAMPLE_ID], ["1"]) for one in asked)
    assert visit.page.url == f"{visit.root}/"


def test_a_finished_badge_fills_the_form_until_an_id_is_typed(visit: Visit) -> None:
    visit.open()
    examples = visit.page.get_by_role("group", name="Begin with a finished badge")
    expect(examples.get_by_role("button")).to_have_count(6)
    for button in examples.get_by_role("button").all():
        button.click()
        expect(button).to_have_attribute("aria-pressed", "true")
        expect(visit.page.locator("#badge")).to_have_attribute(
            "src", button.locator("img").get_attribute("src") or ""
        )
        fills = button.get_attribute("data-fills")
        assert visit.page.url == f"{visit.root}/#{fills}"
    expect(visit.field("for-the-badge")).to_be_checked()
    expect(visit.field(NAME)).to_be_focused()
    visit.page.keyboard.type("a/finished")
    visit.shows_badge("views: 0")
    expect(examples).to_be_hidden()
    visit.expect_line(
        f"![views]({visit.root}/api/v1/views.svg?id=a%2Ffinished&style=for-the-badge)"
    )


def test_the_footer_has_help_and_the_reference_of_every_call_in_words(visit: Visit) -> None:
    visit.open()
    for name in ("Help", "Privacy", "Reference of the API"):
        visit.choose(name)
    calls = visit.page.get_by_role("term")
    expect(calls.filter(has_text="GET /api/v1/views.svg")).to_be_visible()
    expect(visit.page.get_by_role("definition").filter(has_text="spark: ")).to_be_visible()
    visit.check_on_all_screens()


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


def test_numbers_of_github_are_shown_or_the_page_says_how_to_begin(
    visit: Visit, server: Server
) -> None:
    """They have no sparkline, and the chart has a line of visitors."""
    said = visit.page.locator("#said")
    tell_github(server, "told/github", "builders" * 4)
    visit.open("#show=visitors")
    visit.shows_badge("visitors: 1234")
    visit.open("#id=told%2Fgithub&show=clones&spark=30&format=comma")
    visit.shows_badge("clones: 56")
    visit.field("Number").select_option("visitors")
    visit.shows_badge("visitors: 1,234")
    expect(said).to_have_text(f"Now at 1,234. {LOOKING}")
    expect(visit.field("Sparkline")).to_be_disabled()
    address = f"{visit.root}/api/v1/views.svg?id=told%2Fgithub&show=visitors&format=comma"
    visit.expect_line(f"![visitors]({address})")
    visit.choose("Chart")
    visit.field("Line").select_option("visitors")
    visit.is_drawn("#chart")
    expect(visit.page.locator("#line")).to_contain_text("?id=told%2Fgithub&amp;with=visitors&amp;")
    expect(said).to_be_empty()
    visit.field(NAME).fill("told/nothing")
    expect(said).to_contain_text("docs/github-traffic.md")
    visit.check_on_all_screens()
    visit.choose("Counter")
    visit.shows_badge("visitors: no numbers yet")
    expect(said).to_contain_text("docs/github-traffic.md")


def test_an_unknown_logo_is_an_error_at_its_field_but_not_for_shields(visit: Visit) -> None:
    visit.open(f"{BADGE}&logo=nosuchlogo")
    field, copy = visit.field("Logo"), visit.page.get_by_role("button", name=COPY)
    expect(field).to_have_accessible_description(re.compile("^Without the logo nosuchlogo: "))
    expect(copy).to_be_disabled()
    visit.choose(MORE)
    visit.field("Let shields.io draw it").check()
    expect(copy).to_be_enabled()
    visit.field("Let shields.io draw it").uncheck()
    field.fill("github")
    expect(visit.page.locator("#said")).to_have_text(f"Now at 0. {LOOKING}")
    expect(copy).to_be_enabled()
    field.fill("githu")  # known by the list, before the server is asked
    assert copy.is_disabled()


def test_a_logo_is_found_by_its_picture(visit: Visit) -> None:
    visit.open(BADGE)
    visit.field("Logo").click()
    logos = visit.page.get_by_role("listbox", name="Logos").get_by_role("option")
    expect(logos).to_have_count(len(paths()))
    visit.field("Logo").fill("git")
    expect(logos.first).to_have_text("git")
    expect(logos.first).to_have_attribute("aria-selected", "true")
    visit.page.keyboard.press("ArrowDown")
    active = visit.field("Logo").get_attribute("aria-activedescendant")
    assert active == logos.nth(1).get_attribute("id")
    logos.filter(has_text="gitlab").click()
    expect(visit.field("Logo")).to_have_value("gitlab")
    expect(visit.field("Logo")).to_have_attribute("aria-expanded", "false")
    expect(visit.page.locator("#badge")).to_have_attribute("src", re.compile("logo=gitlab"))
    visit.page.keyboard.press("ArrowUp")
    expect(logos).to_have_count(1)
    visit.page.keyboard.press("Escape")
    expect(logos).to_have_count(0)


def test_choices_are_stored_in_the_address_and_restored_from_it(visit: Visit) -> None:
    visit.open()
    visit.field(NAME).fill(f"kept/{ODD_ID}")
    visit.choose(MORE)
    visit.field("Label").fill("a & b + c")
    visit.field("Let shields.io draw it").check()
    visit.field("Link to the badge's page").check()
    visit.choose("plastic")
    visit.write_in("HTML")
    visit.shows_badge("a & b + c: 0")
    address = visit.page.url
    assert address == (
        f"{visit.root}/#id=kept%2F{ODD_ID_ENCODED}&label=a%20%26%20b%20%2B%20c&style=plastic"
        "&as=html&link=1&from=shields"
    )
    line = visit.page.locator("#line").text_content() or ""
    visit.page.goto("about:blank")
    visit.page.goto(address)
    expect(visit.field(NAME)).to_have_value(f"kept/{ODD_ID}")
    expect(visit.field("plastic")).to_be_checked()
    visit.shows_badge("a & b + c: 0")
    assert visit.page.url == address
    visit.expect_line(line)


def test_the_page_follows_a_changed_fragment(visit: Visit) -> None:
    visit.open("#id=first")
    visit.shows_badge("views: 0")
    visit.page.evaluate("location.hash = '#id=second&label=no&style=none-such&days=8'")
    visit.shows_badge("no: 0")
    expect(visit.field(NAME)).to_have_value("second")
    expect(visit.field("flat")).to_be_checked()


@pytest.mark.parametrize(
    ("fragment", "field", "right", "says"),
    [
        (
            "#id=" + "x" * 201,
            NAME,
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
    expect(visit.field(field)).to_have_attribute("aria-describedby", "wrong")
    expect(visit.page.get_by_role("button", name=COPY)).to_be_disabled()
    visit.is_drawn("#badge")
    visit.field(field).fill(right)
    visit.shows_badge("views: 0")
    expect(visit.field(field)).not_to_have_attribute("aria-invalid", "true")
    expect(visit.page.get_by_role("button", name=COPY)).to_be_enabled()


def test_a_pause_in_typing_sends_one_request(visit_apart: Visit) -> None:
    """Of 12 keys, 50 ms apart, the server receives only the last state."""
    visit = visit_apart
    visit.page.clock.install(time=0)
    visit.open()
    visit.shows_badge("views: 1234")
    asked = queries(visit)
    visit.page.clock.pause_at(60_000)  # however long the keys take here
    for key in "typed/fast12":
        visit.field(NAME).press_sequentially(key)
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
        visit.field(NAME).fill("a")
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
    for name, place in (("Your badges", "own"), ("OpenAPI", "openapi.json")):
        leads = visit.page.locator("a", has_text=name)
        assert leads.evaluate("link => link.href") == f"{visit.root}/prod/{place}"
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
