"""The lines for a badge, a chart and a countdown, as a browser copies them, and their names."""

from __future__ import annotations

import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.test_page import MORE, NAME, ODD_ID, ODD_ID_ENCODED
from tests.browser.visit import Visit
from tests.processes.programs import Server, create_token

COUNTDOWN = "Countdown to a scheduled event"
LABEL = "views [a] <b> \\ &"
FROM_HERE = "/api/v1/views.svg?id=octocat%2Fhello_world"
FOR_SHIELDS = "%2Fapi%2Fv1%2Fviews%3Fid%3Doctocat%252Fhello_world"
DAY_SECONDS = 86_400


def written(address: str, page: str = "") -> dict[str, str]:
    """Return the line of each language for the picture at an address, labelled `LABEL`."""
    asciidoc_page = page.replace("_", "%5F")
    markdown = f"![views \\[a\\] \\<b\\> \\\\ \\&](http{address})"
    html = f'<img src="http{address}" alt="views [a] <b> \\ &">'.replace("&", "&amp;")
    html = html.replace("[a] <b>", "[a] &lt;b&gt;")
    return {
        "Markdown": f"[{markdown}]({page})" if page else markdown,
        "HTML": f'<a href="{page}">{html}</a>' if page else html,
        "RST": f".. image:: http{address}\n   :alt: views [a] <b> \\ &"
        + (f"\n   :target: {page}" if page else ""),
        "AsciiDoc": f"image:http{address.replace('_', '%5F')}"
        "[views &#91;a&#93; &#60;b&#62; &#92; &#38;" + (f",link={asciidoc_page}]" if page else "]"),
    }


def test_each_line_for_our_own_picture_is_copied_exactly(visit: Visit) -> None:
    visit.open()
    visit.field(NAME).fill("octocat/hello_world")
    visit.choose(MORE)
    visit.field("Label").fill(LABEL)
    visit.field("Colour").fill("#0a7")
    address = (
        f"{visit.root.removeprefix('http')}{FROM_HERE}"
        "&label=views%20%5Ba%5D%20%3Cb%3E%20%5C%20%26&color=0a7"
    )
    for language, line in written(address).items():
        assert visit.copy(language) == line
    visit.field("Link to the badge's page").check()
    page = f"{visit.root}/s?id=octocat%2Fhello_world"
    for language, line in written(address, page).items():
        visit.write_in(language)
        visit.expect_line(line)


def test_each_line_for_shields_holds_the_address_encoded_whole(visit: Visit) -> None:
    visit.open()
    visit.field(NAME).fill("octocat/hello_world")
    visit.choose(MORE)
    visit.field("Label").fill(LABEL)
    visit.field("Let shields.io draw it").check()
    address = (
        "s://img.shields.io/endpoint?url="
        f"http%3A%2F%2F{visit.server.host}%3A{visit.server.port}{FOR_SHIELDS}"
        "%26label%3Dviews%2520%255Ba%255D%2520%253Cb%253E%2520%255C%2520%2526"
    )
    for language, line in written(address).items():
        visit.write_in(language)
        visit.expect_line(line)


@pytest.mark.parametrize("fragment", ["", "#from=shields"])
def test_a_copied_line_has_the_typed_id(visit: Visit, fragment: str) -> None:
    """A browser decodes it, and then shields.io does."""
    visit.open(fragment)
    visit.field(NAME).fill(ODD_ID)
    address = visit.copy("Markdown").removeprefix("![views](").removesuffix(")")
    if fragment:
        (address,) = parse_qs(urlsplit(address).query)["url"]
    assert parse_qs(urlsplit(address).query) == {"id": [ODD_ID]}
    assert ODD_ID_ENCODED in address


def test_a_cleared_label_makes_a_badge_without_a_label(visit: Visit) -> None:
    visit.open("#id=a%2Fnameless&label=")
    visit.shows_badge("0")
    address = f"{visit.root}/api/v1/views.svg?id=a%2Fnameless&label="
    assert visit.copy("Markdown") == f"![views]({address})"


def test_the_line_of_a_chart_has_a_picture_for_each_theme(visit: Visit) -> None:
    visit.open("#id=a%2F%22b%22&kind=chart&days=90&scale=log&color=green&link=1")
    chart = f"{visit.root}/api/v1/views/history.svg?id=a%2F%22b%22&days=90&scale=log&color=green"
    escaped = chart.replace("&", "&amp;")
    page = f"{visit.root}/s?id=a%2F%22b%22"
    line = (
        f'<a href="{page}"><picture>'
        f'<source media="(prefers-color-scheme: dark)" srcset="{escaped}&amp;theme=dark">'
        f'<img src="{escaped}&amp;theme=light" alt="Views of a/&quot;b&quot; by day">'
        "</picture></a>"
    )
    assert visit.copy("Markdown") == visit.copy("HTML") == line
    assert visit.copy("RST") == (
        f'.. image:: {chart}\n   :alt: Views of a/"b" by day\n   :target: {page}'
    )
    assert visit.copy("AsciiDoc") == (
        f"image:{chart}[Views of a&#47;&#34;b&#34; by day,link={page}]"
    )
    drawn = visit.page.locator("#chart").get_attribute("src") or ""
    assert parse_qs(urlsplit(drawn).query)["days"] == ["90"]


def test_the_line_of_a_countdown_has_the_badge_of_an_event(
    visit: Visit, server: Server, folder: Path
) -> None:
    token = create_token(folder, "countdown")
    at = f"ts={time.time() + 3 * DAY_SECONDS + 60}"
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "text/plain"}
    status, _, body = server.request(f"/echoAtTime?{at}", "POST", "ho", headers)
    assert status in {200, 201}
    event = body.decode().split('"')[3]
    visit.open("#link=1")
    visit.choose(MORE)
    visit.field(COUNTDOWN).fill("none")
    expect(visit.page.locator("#said")).to_have_text("The badge says: no such event")
    expect(visit.page.get_by_role("button", name="Copy Markdown")).to_be_disabled()
    visit.field(COUNTDOWN).fill(f" {event} ")
    visit.shows_badge("event: in 3 days")
    visit.choose("social")
    address = f"{visit.root}/api/v1/events/{event}/badge.svg?style=social"
    assert visit.copy("Markdown") == f"![countdown]({address})"
    expect(visit.field(NAME)).to_be_disabled()


def test_a_browser_without_the_clipboard_interface_still_copies(visit: Visit) -> None:
    """The page has none at an http address that is not loopback."""
    visit.page.add_init_script(
        "navigator.clipboard.writeText = text => text ? Promise.reject(text) : Promise.resolve()"
    )
    visit.open("#id=a")
    assert visit.copy("Markdown") == f"![views]({visit.root}/api/v1/views.svg?id=a)"


# ---- the name: trimmed, and shortened from the address of a project

PROJECTS = {
    "https://github.com/octocat/hello": "octocat/hello",
    "https://github.com/octocat/hello.git": "octocat/hello",
    "https://www.github.com/octocat/hello/tree/main/docs?tab=readme#top": "octocat/hello",
    "github.com/octocat": "octocat",
    "git@github.com:octocat/hello.git": "octocat/hello",
    "ssh://git@github.com/octocat/hello.git": "octocat/hello",
    "git+https://github.com/octocat/hello.git": "octocat/hello",
    "https://gitlab.com/group/sub/name/-/tree/main": "gitlab.com/group/sub/name",
    "https://pypi.org/project/Foo_Bar/1.0/": "pypi.org/foo-bar",
    "https://www.npmjs.com/package/react/v/19.0.0": "npmjs.com/react",
    "https://www.npmjs.com/package/@scope/name": "npmjs.com/@scope/name",
    "https://github.com": "",
    "https://gitlab.com/group": "",
    "https://pypi.org/search/": "",
    "https://example.com/octocat/hello": "",
    "constructor/name": "",
    "octocat/hello": "",
    "": "",
}


def paste(visit: Visit, text: str) -> None:
    visit.page.evaluate("text => navigator.clipboard.writeText(text)", text)
    visit.field(NAME).focus()
    visit.page.keyboard.press("ControlOrMeta+a")
    visit.page.keyboard.press("ControlOrMeta+v")


def test_the_address_of_a_project_has_an_id(visit: Visit) -> None:
    visit.open()
    found = visit.page.evaluate("all => all.map(projectOf)", list(PROJECTS))
    assert dict(zip(PROJECTS, found, strict=True)) == PROJECTS


def test_a_pasted_address_is_shortened_and_can_be_kept(visit: Visit) -> None:
    visit.open()
    address = "https://github.com/octocat/hello"
    paste(visit, address)
    expect(visit.field(NAME)).to_have_value("octocat/hello")
    expect(visit.page.locator("#hint")).to_contain_text("Shortened to the name of the project.")
    visit.expect_line(f"![views]({visit.root}/api/v1/views.svg?id=octocat%2Fhello)")
    visit.page.get_by_role("button", name="Keep the address").click()
    expect(visit.field(NAME)).to_have_value(address)
    expect(visit.field(NAME)).to_be_focused()
    expect(visit.page.locator("#hint")).to_be_hidden()
    visit.field(NAME).press_sequentially("/wiki")
    visit.field(NAME).press("Tab")
    expect(visit.field(NAME)).to_have_value(f"{address}/wiki")
    paste(visit, address)
    expect(visit.page.locator("#hint")).to_be_visible()
    paste(visit, "other/name")
    expect(visit.field(NAME)).to_have_value("other/name")
    expect(visit.page.locator("#hint")).to_be_hidden()


@pytest.mark.parametrize(
    ("typed", "left"),
    [
        ("https://pypi.org/project/Foo_Bar", "pypi.org/foo-bar"),
        ("github.com/octocat/hello", "github.com/octocat/hello"),
        ("  octocat/hello\t", "octocat/hello"),
    ],
)
def test_a_typed_name_is_trimmed_and_shortened_when_it_is_left(
    visit: Visit, typed: str, left: str
) -> None:
    """Without `https://` it stays, because it is a name of its own that can be proven."""
    visit.open()
    visit.field(NAME).fill(typed)
    visit.field(NAME).press("Tab")
    expect(visit.field(NAME)).to_have_value(left)
