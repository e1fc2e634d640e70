"""The owner of a badge on the page: a claim and a proof, against a real host of files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.visit import Visit
from tests.processes.hosts import ID, Host, hosting
from tests.processes.server import Server, running

SUMMARY = "Own this badge"
PROVE, CLAIM, LOOK = "Prove a repository or a site", "Claim a new name", "Look for the line"


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with hosting() as started:
        yield started


@pytest.fixture(scope="module")
def server(host: Host, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("owned"), **host.proof_settings()) as started:
        yield started


def open_badge(visit: Visit, fragment: str) -> None:
    visit.open(fragment)
    visit.choose(SUMMARY)


def press(visit: Visit, name: str) -> None:
    visit.page.get_by_role("button", name=name).click()


def owned(server: Server, badge_id: str, secret: str) -> dict[str, Any]:
    status, found = server.ask("GET", f"/api/v1/badges?id={badge_id}", token=secret)
    assert status == 200
    return dict(found)


def secret(visit: Visit) -> str:
    expect(visit.page.get_by_role("heading", name="The secret, shown only now")).to_be_visible()
    press(visit, "Copy the secret")
    expect(visit.page.get_by_role("status")).to_have_text("Copied the secret.")
    return visit.clipboard()


def test_a_new_name_is_claimed(visit: Visit, server: Server) -> None:
    open_badge(visit, "#id=claimed")
    press(visit, CLAIM)
    assert owned(server, "claimed", secret(visit))["id"] == "claimed"
    visit.page.locator("#id").fill("another")
    expect(visit.page.locator("#owned")).to_be_hidden()
    assert visit.page.locator("#secret").text_content() == ""


def test_a_badge_with_views_is_proven(visit: Visit, server: Server, host: Host) -> None:
    server.badge(ID)
    open_badge(visit, f"#id={ID}")
    press(visit, PROVE)
    link = visit.page.get_by_role("link", name=f"http://127.0.0.1:{host.port}/{ID}/.vu-mi")
    assert link.get_attribute("href") == link.text_content()
    press(visit, "Copy the line of the proof")
    expect(visit.page.get_by_role("status")).to_have_text("Copied the line of the proof.")
    host.files[f"/{ID}/.vu-mi"] = visit.clipboard()
    assert visit.clipboard().startswith("vu-mi-")
    press(visit, LOOK)
    found = owned(server, ID, secret(visit))
    assert (found["count"], found["proven"]) == (1, ID)
    assert visit.find_barriers() == []


@pytest.mark.parametrize(
    ("badge_id", "button", "code"),
    [("viewed", CLAIM, "taken"), ("no repository", PROVE, "not_provable")],
)
def test_a_refusal_is_shown_in_words(
    browser: Browser, server: Server, badge_id: str, button: str, code: str
) -> None:
    server.badge("viewed")
    with Visit.of(browser, server) as visit:
        open_badge(visit, f"#id={badge_id}")
        with visit.page.expect_response("**/api/v1/badges") as answered:
            press(visit, button)
        error = answered.value.json()["error"]
        assert error["code"] == code
        expect(visit.page.locator("#own-said")).to_have_text(error["message"])
        expect(visit.page.locator("#owned")).to_be_hidden()


def test_without_an_id_nothing_can_be_owned(visit: Visit) -> None:
    open_badge(visit, "")
    for name in (PROVE, CLAIM):
        expect(visit.page.get_by_role("button", name=name)).to_be_disabled()
