"""The page of a badge in a real browser: legible, without barriers, also without a script."""

from __future__ import annotations

from urllib.parse import quote

from playwright.sync_api import Browser, Page, expect

from tests.browser.visit import DRAWN, Visit
from tests.processes.programs import Server

HOSTILE = "<script>document.title='run'</script>\"'&${count}" + "long" * 30
PIXEL = """
image => {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  return [image.naturalWidth, image.naturalHeight, ...context.getImageData(0, 0, 1, 1).data];
}
"""


def open_page(visit: Visit, badge_id: str) -> Page:
    """Open the page of a badge and wait until its pictures are drawn."""
    visit.page.goto(f"{visit.root}/s?id={quote(badge_id, safe='')}")
    for picture in visit.page.locator("img").all():
        visit.page.wait_for_function(DRAWN, arg=picture.element_handle())
    return visit.page


def test_a_hostile_id_has_a_page_that_everybody_can_read(visit: Visit) -> None:
    page = open_page(visit, HOSTILE)
    assert page.title() == f"{HOSTILE}: 0 views"
    expect(page.get_by_role("heading", level=1)).to_have_text(HOSTILE)
    visit.check_on_all_screens()


def test_without_javascript_it_shows_the_count_and_counts_nothing(
    browser: Browser, server: Server
) -> None:
    for _ in range(3):
        server.badge("a/seen")
    server.wait_for("a/seen", 3)
    with Visit.apart(browser, server, java_script_enabled=False) as visit:
        visit.page.goto(f"{visit.root}/s?id=a%2Fseen", wait_until="networkidle")
        expect(visit.page.locator(".count")).to_contain_text("3 views since 20")
        expect(visit.page.locator("dd")).to_have_text(["3", "3", "3", "3"])
        visit.page.get_by_role("link", name="90 days").click()
        expect(visit.page).to_have_url(f"{visit.root}/s?id=a%2Fseen&days=90")
        visit.page.wait_for_load_state("networkidle")
        assert visit.complaints == []
    assert server.peek("a/seen") == 3


def test_a_line_is_copied_or_selected_and_the_link_opens_the_builder(visit: Visit) -> None:
    page = open_page(visit, "a/click")
    line = page.locator("pre").first
    for name in ("Copy Markdown", "Copy HTML", "Copy the chart"):
        copy = page.get_by_role("button", name=name)
        code = copy.locator("xpath=..").locator("code").text_content()
        copy.click()
        expect(page.get_by_role("status")).to_have_text(name.replace("Copy", "Copied"))
        assert visit.clipboard() == code
    line.click()
    url = f"{visit.root}/s?id=a%2Fclick"
    markdown = f"[![views]({visit.root}/api/v1/views.svg?id=a%2Fclick)]({url})"
    assert page.evaluate("getSelection().toString().trim()") == markdown
    page.get_by_role("link", name="Choose a style").click()
    expect(page.locator("#id")).to_have_value("a/click")


def test_a_browser_draws_the_picture_of_the_link_preview(visit: Visit) -> None:
    page = open_page(visit, "a/picture")
    address = page.locator('meta[property="og:image"]').get_attribute("content")
    assert address == f"{visit.root}/s.png?id=a%2Fpicture"
    page.goto(address, wait_until="load")
    assert page.locator("img").evaluate(PIXEL) == [1200, 630, 0x0D, 0x11, 0x17, 255]
