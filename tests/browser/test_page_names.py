"""The name of a badge on the page: trimmed, and shortened from the address of a project."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.visit import Visit

NAME = "Your repository, or any name"
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
