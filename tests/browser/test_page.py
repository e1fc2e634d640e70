"""The page in a real browser: typed in, drawn, copied and remembered. It counts no view."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.browser.visit import Visit
from tests.end_to_end.server import Server

ODD_ID = "o'wner/na me\N{EYES}\"(1)"
ODD_ID_ENCODED = "o%27wner%2Fna%20me%F0%9F%91%80%22%281%29"
LABEL = "views [a] <b> \\ &"
FROM_HERE = "/api/v1/views.svg?id=octocat%2Fhello_world"
FOR_SHIELDS = "%2Fapi%2Fv1%2Fviews%3Fid%3Doctocat%252Fhello_world"


def written(address: str) -> dict[str, str]:
    """Return the line of each language for the picture at an address, labelled `LABEL`."""
    return {
        "Markdown": f"![views \\[a\\] \\<b\\> \\\\ \\&](http{address})",
        "HTML": '<img src="http'
        + address.replace("&", "&amp;")
        + '" alt="views [a] &lt;b&gt; \\ &amp;">',
        "reStructuredText": f".. image:: http{address}\n   :alt: views [a] <b> \\ &",
        "AsciiDoc": f"image:http{address.replace('_', '%5F')}"
        "[views &#91;a&#93; &#60;b&#62; &#92; &#38;]",
    }


def test_each_line_for_our_own_picture_is_copied_exactly(visit: Visit) -> None:
    visit.open()
    visit.field("Id").fill("octocat/hello_world")
    visit.field("Label").fill(LABEL)
    visit.field("Colour").fill("#0a7")
    address = (
        f"{visit.root.removeprefix('http')}{FROM_HERE}"
        "&label=views%20%5Ba%5D%20%3Cb%3E%20%5C%20%26&color=0a7"
    )
    for language, line in written(address).items():
        assert visit.copy(language) == line


def test_each_line_for_shields_holds_the_address_encoded_whole(visit: Visit) -> None:
    visit.open()
    visit.field("Id").fill("octocat/hello_world")
    visit.field("Label").fill(LABEL)
    visit.field("Drawn by shields.io").check()
    address = (
        "s://img.shields.io/endpoint?url="
        f"http%3A%2F%2F{visit.server.host}%3A{visit.server.port}{FOR_SHIELDS}"
        "%26label%3Dviews%2520%255Ba%255D%2520%253Cb%253E%2520%255C%2520%2526"
    )
    for language, line in written(address).items():
        assert visit.copy(language) == line


@pytest.mark.parametrize("source", ["Drawn here", "Drawn by shields.io"])
def test_a_copied_line_has_the_typed_id(visit: Visit, source: str) -> None:
    """A browser decodes it, and then shields.io does."""
    visit.open()
    visit.field("Id").fill(ODD_ID)
    visit.field(source).check()
    address = visit.copy("Markdown").removeprefix("![views](").removesuffix(")")
    if source != "Drawn here":
        (address,) = parse_qs(urlsplit(address).query)["url"]
    assert parse_qs(urlsplit(address).query) == {"id": [ODD_ID]}
    assert ODD_ID_ENCODED in address


def test_the_preview_shows_the_count_and_counts_no_view(visit: Visit, server: Server) -> None:
    """There are 3 views before and 3 after."""
    for _ in range(3):
        server.badge(ODD_ID)
    server.wait_for(ODD_ID, 3)
    visit.open()
    visit.field("Id").press_sequentially(ODD_ID)
    visit.shows_badge("views: 3")
    expect(visit.page.locator("#said")).to_have_text("Now at 3. The preview counts no view.")
    visit.is_drawn("#chart")
    said = re.compile(r"^3 views in the last 30 days; most on \d{4}-\d\d-\d\d: 3\.$")
    expect(visit.page.locator("#chart")).to_have_attribute("alt", said)
    visit.page.reload()
    visit.shows_badge("views: 3")
    assert server.peek(ODD_ID) == 3


def test_every_option_reaches_the_badge(visit: Visit) -> None:
    visit.open()
    visit.field("Id").fill("a/options")
    visit.field("Label").fill("seen")
    visit.field("Colour").fill("red")
    visit.field("Style").select_option("for-the-badge")
    visit.field("Format").select_option("1.2k")
    visit.page.get_by_text("Label colour, logo").click()
    visit.field("Label colour").fill("#123456")
    visit.field("Logo").fill("github")
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
        "format": ["short"],
        "base": ["1234"],
        "peek": ["1"],
    }


def test_an_unknown_logo_is_reported(visit: Visit) -> None:
    visit.open()
    visit.field("Id").fill("a/logo")
    visit.page.get_by_text("Label colour, logo").click()
    visit.field("Logo").fill("nosuchlogo")
    said = visit.page.locator("#said")
    expect(said).to_contain_text(
        "Without the logo nosuchlogo: it is not one of the included logos."
    )
    visit.field("Logo").fill("github")
    expect(said).to_have_text("Now at 0. The preview counts no view.")


def test_a_cleared_label_makes_a_badge_without_a_label(visit: Visit) -> None:
    visit.open()
    visit.field("Id").fill("a/nameless")
    visit.field("Label").fill("")
    visit.shows_badge("0")
    address = f"{visit.root}/api/v1/views.svg?id=a%2Fnameless&label="
    assert visit.copy("Markdown") == f"![views]({address})"


def test_a_colour_that_is_picked_is_written(visit: Visit) -> None:
    visit.open("#id=a")
    visit.field("Pick the colour").fill("#00aa77")
    expect(visit.field("Colour")).to_have_value("00aa77")
    expect(visit.page.locator("#line-markdown")).to_contain_text("&color=00aa77")


def test_choices_are_stored_in_the_address_and_restored_from_it(visit: Visit) -> None:
    visit.open()
    visit.field("Id").fill(f"kept/{ODD_ID}")
    visit.field("Label").fill("a & b + c")
    visit.field("Style").select_option("plastic")
    visit.field("Drawn by shields.io").check()
    visit.field("Days").select_option("7")
    visit.shows_badge("a & b + c: 0")
    address = visit.page.url
    assert address == (
        f"{visit.root}/#id=kept%2F{ODD_ID_ENCODED}&label=a%20%26%20b%20%2B%20c&style=plastic"
        "&from=shields&days=7"
    )
    visit.page.goto("about:blank")
    visit.page.goto(address)
    expect(visit.field("Id")).to_have_value(f"kept/{ODD_ID}")
    expect(visit.field("Label")).to_have_value("a & b + c")
    expect(visit.field("Style")).to_have_value("plastic")
    expect(visit.field("Drawn by shields.io")).to_be_checked()
    expect(visit.field("Days")).to_have_value("7")
    visit.shows_badge("a & b + c: 0")


def test_the_page_follows_a_changed_fragment(visit: Visit) -> None:
    visit.open("#id=first")
    visit.shows_badge("views: 0")
    visit.page.evaluate("location.hash = '#id=second&label=no&style=none-such'")
    visit.shows_badge("no: 0")
    expect(visit.field("Id")).to_have_value("second")
    expect(visit.field("Style")).to_have_value("")


@pytest.mark.parametrize(
    ("fragment", "field", "right", "says"),
    [
        ("#id=" + "x" * 201, "Id", "a", "the id has 201 characters: give at most 200"),
        ("#id=a&color=nope", "Colour", "red", "color: "),
        ("#id=a&base=-1", "Add to the count", "0", "base: give a whole number"),
    ],
)
def test_an_error_is_shown_in_words_at_its_field(
    visit: Visit, fragment: str, field: str, right: str, says: str
) -> None:
    visit.open(fragment)
    expect(visit.page.locator("#said")).to_contain_text(f"The badge says: {says}")
    expect(visit.field(field)).to_have_attribute("aria-invalid", "true")
    expect(visit.field(field)).to_have_attribute("aria-describedby", "said")
    visit.is_drawn("#badge")
    visit.field(field).fill(right)
    visit.shows_badge("views: 0")
    expect(visit.field(field)).not_to_have_attribute("aria-invalid", "true")


def test_without_an_id_nothing_is_requested_and_nothing_can_be_copied(visit: Visit) -> None:
    asked: list[str] = []
    visit.page.on("request", lambda request: asked.append(urlsplit(request.url).path))
    visit.open()
    expect(visit.page.get_by_text("Type an id to see its badge.")).to_be_visible()
    expect(visit.page.get_by_role("button", name="Copy Markdown")).to_be_disabled()
    visit.page.wait_for_load_state("networkidle")
    assert [path for path in asked if path.startswith("/api")] == []


def test_a_pause_in_typing_sends_one_request(visit: Visit) -> None:
    """Of 12 keys, 50 ms apart, the server receives only the last state."""
    asked: list[str] = []
    visit.page.on("request", lambda request: asked.append(request.url))
    visit.page.clock.install(time=0)
    visit.open()
    visit.page.clock.pause_at(60_000)  # however long the keys take here
    for key in "typed/fast12":
        visit.field("Id").press_sequentially(key)
        visit.page.clock.run_for(50)
    assert not [url for url in asked if "/api/v1/views?" in url]
    visit.page.clock.run_for(900)
    visit.shows_badge("views: 0")
    badges = [url for url in asked if "/api/v1/views?" in url]
    assert [parse_qs(urlsplit(url).query)["id"] for url in badges] == [["typed/fast12"]]


def test_a_server_that_does_not_answer_is_reported_in_words(
    browser: Browser, server: Server
) -> None:
    with Visit.of(browser, server) as visit:
        visit.open()
        visit.page.route("**/api/**", lambda route: route.abort())
        visit.field("Id").fill("a")
        expect(visit.page.locator("#said")).to_have_text(
            "The server does not answer. Try again in a moment."
        )


def test_a_browser_without_the_clipboard_interface_still_copies(visit: Visit) -> None:
    """The page has none at an http address that is not loopback."""
    visit.page.add_init_script(
        "navigator.clipboard.writeText = text => text ? Promise.reject(text) : Promise.resolve()"
    )
    visit.open("#id=a")
    visit.page.get_by_role("button", name="Copy Markdown").click()
    expect(visit.page.get_by_role("status")).to_have_text("Copied the Markdown line.")
    assert visit.clipboard() == f"![views]({visit.root}/api/v1/views.svg?id=a)"


def test_a_loopback_address_is_reported(visit: Visit) -> None:
    visit.open()
    expect(visit.page.locator("#loopback")).to_be_visible()


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
    visit.page.goto(f"{visit.root}{path}#id=staged")
    visit.shows_badge("views: 0")
    visit.is_drawn("#chart")
    line = visit.page.locator("#line-markdown").text_content()
    assert line == f"![views]({visit.root}/prod/api/v1/views.svg?id=staged)"


def test_an_address_of_two_slashes_leads_to_no_other_host(visit: Visit) -> None:
    page = visit.server.request("/")
    visit.page.route(
        "**//evil.example/**",
        lambda route: route.fulfill(status=200, headers=dict(page[1].items()), body=page[2]),
    )
    visit.page.goto(f"{visit.root}//evil.example/#id={quote('a/b', safe='')}")
    line = visit.page.locator("#line-markdown").text_content()
    assert line == f"![views]({visit.root}//evil.example/api/v1/views.svg?id=a%2Fb)"


def test_a_head_request_gets_only_the_headers(server: Server) -> None:
    status, headers, body = server.request("/", "HEAD")
    assert (status, body) == (200, b"")
    assert headers["Content-Length"] == str(len(server.request("/")[2]))
