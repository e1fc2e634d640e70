"""The operator's page in a real browser: its token, its numbers, and all that can go wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Route, expect

from tests.browser.operators import BURST, EVIL_IDS, NO_NUMBER, Operator, filled
from tests.browser.visit import Visit
from tests.processes.programs import Server, create_token, running

BADGES = 6_000
USER, OF_A_USER = "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11", "a user's token"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return data of 6,000 badges, evil ids, dead letters and failed events."""
    folder = tmp_path_factory.mktemp("filled")
    filled(folder, BADGES)
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    with running(folder) as started:
        yield started


@pytest.fixture(scope="module")
def token(folder: Path, server: Server) -> str:
    del server
    return create_token(folder, "operator")


@pytest.fixture
def operator(visit: Visit, token: str) -> Operator:
    return Operator(visit, token)


@pytest.fixture
def operator_with_clock(visit_apart: Visit, token: str) -> Operator:
    visit_apart.page.clock.install()
    return Operator(visit_apart, token)


def test_a_token_opens_the_page_for_this_tab_only_until_it_is_forgotten(operator: Operator) -> None:
    page = operator.page
    operator.open()
    expect(page.locator("#sum-badges")).to_have_text("6,000")
    assert page.evaluate("document.cookie") == ""
    assert page.evaluate("Object.values(localStorage)") == []
    assert operator.token not in page.content()
    page.reload()
    expect(page.locator("#sum-badges")).to_have_text("6,000")
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.get_by_label("Token")).to_be_visible()
    other.close()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Token")).to_be_focused()
    assert page.evaluate("sessionStorage.length") == 0
    page.reload()
    expect(page.get_by_label("Token")).to_be_visible()
    expect(page.locator("#badges-card")).to_be_hidden()


@pytest.mark.parametrize(
    ("token", "says"),
    [
        ("", "Give a token."),
        ("short", "This is no token: a token has 43 letters, digits, - and _."),
        ("x" * 43, "The server refuses this token: this token opens nothing here"),
        (OF_A_USER, "The server refuses this token: the token is a user's: it is good for"),
    ],
)
def test_a_wrong_token_is_refused_in_words(
    operator: Operator, folder: Path, token: str, says: str
) -> None:
    token = create_token(folder, "eva", USER) if token == OF_A_USER else token
    page = operator.type_token(token)
    expect(page.locator("#token-said")).to_contain_text(says)
    expect(page.get_by_label("Token")).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_label("Token")).to_be_focused()
    expect(page.locator("#badges-card")).to_be_hidden()
    operator.expect_complaints("403" if len(token) == 43 else "")


def test_a_token_that_is_revoked_closes_the_page(operator: Operator) -> None:
    page = operator.open().page
    refused = {"error": {"code": "forbidden", "message": "revoked"}}
    page.route("**/admin/data", lambda route: route.fulfill(status=403, json=refused))
    page.evaluate("() => load()")
    expect(page.locator("#token-said")).to_have_text("The server refuses this token: revoked")
    operator.expect_complaints("403")


def test_the_page_has_the_sums_the_chart_the_queues_and_the_failed_events(
    operator: Operator,
) -> None:
    page = operator.open().page
    operator.visit.is_drawn("#chart")
    said = re.compile(r"^[\d,]+ views in 30 days\. Views a day from ")
    expect(page.locator("#chart")).to_have_attribute("alt", said)
    expect(page.locator("#sum-total")).to_have_text(re.compile(r"^[\d,]{9,}$"))
    expect(page.locator("#file-bytes")).to_have_text(re.compile(r"MiB$"))
    expect(page.locator("#file-said")).to_have_text(re.compile(r"^\+\S+ KiB a day over \d+ days$"))
    expect(page.locator("#queues tr")).to_have_count(2)
    expect(page.locator("#queues")).to_contain_text("vu-mi-views03")
    expect(page.locator("#queues-said")).to_contain_text("vumi redrive")
    expect(page.locator("#events-count")).to_have_text("the latest 20 of 25")
    expect(page.locator("#events li").first).to_contain_text("event-24 to https://example.com/")
    expect(page.locator("#events li").first).to_contain_text("500 <b>no</b>")
    expect(page.locator("#events-said")).to_contain_text("vumi redrive-events")
    expect(page.locator("#server")).to_have_text(re.compile(r"^Version \S+, up \d+ min$"))


def test_evil_ids_are_text_and_stay_in_their_cell(operator: Operator) -> None:
    page = operator.open().page
    for badge_id in EVIL_IDS:
        operator.search(badge_id)
        expect(page.locator("#rows tr")).to_have_count(1)
        [shown] = page.locator("#rows bdi").all_text_contents()
        assert shown == badge_id
        address = page.locator("#rows a").evaluate("link => link.href")
        assert address.startswith(f"{operator.visit.root}/s?id=")
        read = "link => new URL(link).searchParams.get('id')"
        assert page.evaluate(read, address) == badge_id, "as the page of the badge reads it"
    assert page.locator("#rows script, #rows img, #rows b").count() == 0


def test_badges_are_sorted_searched_and_paged(operator: Operator) -> None:
    page = operator.open().page
    expect(page.locator("#range")).to_contain_text("1 to 50 of 6,000, as of ")
    assert descending(operator.numbers("total"))
    page.get_by_role("button", name="Today").click()
    expect(page.locator("th[aria-sort]")).to_have_text("Today")
    assert page.url.endswith("/admin#sort=today")
    operator.settle()
    assert descending(operator.numbers("today"))

    operator.search("GROUP-7/")
    expect(page.locator("#range")).to_contain_text("1 to 50 of 100, as of ")
    first = page.locator("#rows bdi").all_text_contents()
    assert all("group-7/" in name for name in first)
    page.get_by_role("button", name="Next").click()
    expect(page.locator("#range")).to_contain_text("51 to 100 of 100")
    expect(page.get_by_role("button", name="Next")).to_be_disabled()
    expect(page.get_by_role("button", name="Previous")).to_be_focused()
    assert not set(first) & set(page.locator("#rows bdi").all_text_contents())

    page.reload()
    expect(page.locator("#range")).to_contain_text("51 to 100 of 100")
    expect(page.get_by_label("Search in the names")).to_have_value("GROUP-7/")
    operator.search("no such badge")
    expect(page.locator("#none")).to_have_text("No name of a badge contains “no such badge”.")


def test_a_badge_far_above_its_month_is_marked_and_leads_to_its_page(operator: Operator) -> None:
    page = operator.open().page
    burst = page.locator("#bursts li")
    expect(burst).to_have_count(1)
    expect(burst).to_contain_text("5,000 views in the last full hour")
    page.on("dialog", lambda dialog: dialog.accept())
    burst.get_by_role("button", name="Remove").click()
    expect(burst.get_by_role("status")).to_have_text(
        re.compile("^5,000 views removed|not all counted yet")
    )
    operator.expect_complaints("409")
    operator.search(BURST)
    expect(page.locator("#rows .tag")).to_have_text("5,000 last hour")
    burst.get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(BURST)


def descending(numbers: list[int]) -> bool:
    return len(numbers) == 50 and numbers == sorted(numbers, reverse=True)


def test_a_refresh_keeps_the_focus_and_stops_in_a_hidden_tab(operator_with_clock: Operator) -> None:
    operator = operator_with_clock.open()
    page = operator.page
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.locator("#rows a").nth(3).focus()
    focused = page.evaluate("document.activeElement.textContent")
    with page.expect_response("**/admin/data/badges?**"):
        page.clock.run_for(10_000)
    operator.settle()
    assert page.evaluate("document.activeElement.textContent") == focused

    page.evaluate(
        "Object.defineProperty(document, 'hidden', {value: true});"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )
    asked.clear()
    page.clock.run_for(60_000)
    assert asked == []


def test_a_server_that_does_not_answer_leaves_the_last_numbers(
    operator_with_clock: Operator,
) -> None:
    operator = operator_with_clock.open()
    page = operator.page
    page.route("**/admin/data**", lambda route: route.abort())
    page.clock.run_for(10_000)
    expect(page.locator("#notice")).to_have_text(
        "The server does not answer. This page tries again every 10 seconds."
    )
    expect(page.locator("#rows tr")).to_have_count(50)
    page.unroute("**/admin/data**")
    page.clock.run_for(10_000)
    expect(page.locator("#notice")).to_be_hidden()
    operator.visit.complaints.clear()


@pytest.mark.parametrize(
    ("failure", "says"),
    [("", "The badges are being added up."), ("disk is full", "could not be added up: disk is")],
)
def test_numbers_that_are_not_there_yet_are_waited_for(
    operator_with_clock: Operator, failure: str, says: str
) -> None:
    failed = {"failure": failure} if failure else {}

    def not_ready(route: Route) -> None:
        route.fulfill(json={"overview": {"ready": False, **failed}})

    operator = operator_with_clock
    page = operator.page
    page.route("**/admin/data/badges**", not_ready)
    operator.type_token(operator.token)
    expect(page.locator("#none")).to_contain_text(says)
    expect(page.locator("#sum-total")).to_have_text(NO_NUMBER)
    page.unroute("**/admin/data/badges**")
    page.clock.run_for(10_000 if failure else 1_000)
    expect(page.locator("#rows tr")).to_have_count(50)


def test_axe_finds_nothing_serious_and_nothing_is_wider_than_the_screen(operator: Operator) -> None:
    """Look at the door, at the badges, and at old numbers of one with the widest name."""
    page = operator.type_token("short")
    operator.visit.check_on_all_screens()
    page.get_by_label("Token", exact=True).fill(operator.token)
    page.get_by_role("button", name="Open").click()
    operator.wait_for_numbers()
    operator.visit.check_on_all_screens()
    operator.search(EVIL_IDS[-1][:20])
    page.evaluate("() => { complain('The server does not answer.'); }")
    page.evaluate("() => document.getElementById('inside').classList.add('stale')")
    operator.visit.check_on_all_screens()


def test_the_page_is_used_with_the_keyboard_alone(operator: Operator) -> None:
    page = operator.page
    operator.visit.open("admin")
    page.keyboard.press("Tab")
    page.keyboard.type(operator.token)
    page.keyboard.press("Enter")
    expect(page.locator("#rows tr")).to_have_count(50)
    expect(page.get_by_label("Search in the names")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("th[aria-sort]")).to_have_text("Now")


def test_a_ban_is_set_shown_as_text_and_lifted(operator: Operator) -> None:
    """Also that of an evil pattern, by the keyboard."""
    page = operator.open().page
    bans = page.locator("#bans li")
    expect(bans).to_have_count(0)
    for pattern in (EVIL_IDS[0], "spammer/*"):
        page.get_by_label("Id, or a pattern with *").fill(pattern)
        page.get_by_label("Reason, for operators").fill("<b>spam</b>")
        page.keyboard.press("Enter")
        expect(bans.filter(has_text=pattern)).to_have_count(1)
    expect(bans).to_have_count(2)
    expect(bans.first.locator(".soft")).to_contain_text("<b>spam</b>")
    page.get_by_label("Id, or a pattern with *").fill("\u200b")
    page.keyboard.press("Enter")
    expect(page.locator("#ban-said")).to_contain_text("U+200B")
    for left in (1, 0):
        page.get_by_role("button", name="Lift the ban").first.click()
        expect(bans).to_have_count(left)
    operator.expect_complaints("400")
