"""The owner's page, against a real server and a real host of files: five ways to use it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from chalicelib.http.tokens import digest
from chalicelib.owners import proving
from chalicelib.storage.items import Key
from chalicelib.storage.writes import Delete
from tests.browser.test_page import tell_github
from tests.browser.visit import Visit
from tests.pictures import put_history
from tests.processes.hosts import Host, hosting
from tests.processes.programs import TOKEN, WITH_TOKEN, Server, running
from vumi.storage.database import FILE, Database
from vumi.storage.table import SqliteTable

CLAIM, PROVE = "Claim a new name", "Prove a repository or a site"
PROVEN = f"octocat/{'n' * 90}"
STRANGERS = "strangers/badge"
"""A badge that has a history."""
NO_STORAGE = """
Object.defineProperty(window, "localStorage", { get() { throw new DOMException("no"); } });
"""
MILESTONE = "https://1.1.1.1/reached"
"""It has no name to look up, and is never reached."""
SECOND_DAY = datetime.now(UTC).replace(hour=0, minute=0) - timedelta(days=2)


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with hosting() as started:
        yield started


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("own")


@pytest.fixture(scope="module")
def server(host: Host, folder: Path) -> Iterator[Server]:
    with closing(Database(folder / FILE)) as database:
        put_history(SqliteTable(database), STRANGERS, datetime.now(UTC), busy=0.1)
    with running(folder, **host.proof_settings(), **WITH_TOKEN) as started:
        yield started


def claim(server: Server, secret: str, *badge_ids: str) -> None:
    for badge_id in badge_ids:
        body = {"id": badge_id, "digest": digest(secret)}
        assert server.ask("POST", "/api/v1/badges", body)[0] == 201


def listed(server: Server, secret: str) -> list[str]:
    status, found = server.ask("GET", "/api/v1/badges", token=secret)
    return [one["id"] for one in found["badges"]] if status == 200 else []


def owned(server: Server, badge_id: str, secret: str) -> dict[str, Any]:
    status, found = server.ask("GET", f"/api/v1/badges?id={quote(badge_id)}", token=secret)
    assert status == 200
    return dict(found)


def press(place: Page | Locator, name: str) -> None:
    place.get_by_role("button", name=name, exact=True).click()


def says(visit: Visit, text: str) -> None:
    expect(visit.page.get_by_role("status")).to_contain_text(text)


def secret_field(visit: Visit) -> Locator:
    return visit.field("Secret, or an operator\N{RIGHT SINGLE QUOTATION MARK}s token")


def open_with(visit: Visit, secret: str, one: str = "") -> None:
    visit.open("own")
    secret_field(visit).fill(secret)
    visit.field("One badge (a token needs it)").fill(one)
    press(visit.page, "Open")


def unfold(visit: Visit, badge_id: str) -> Locator:
    """Open the changes of a badge, and wait until they have its values."""
    group = visit.page.get_by_role("group", name=badge_id, exact=True)
    group.locator("summary").click()
    expect(group.get_by_text("Owned since")).to_be_visible()
    return group


def confirm(visit: Visit, badge_id: str, button: str) -> None:
    """Type the name of the badge into the question, and press its button."""
    question = visit.page.get_by_role("dialog", name=f"{button}: {badge_id}")
    name = question.get_by_label("Type the name of the badge")
    name.fill(badge_id[:-1])
    expect(question.get_by_role("button", name=button)).to_be_disabled()
    name.fill(badge_id)
    press(question, button)
    expect(question).to_be_hidden()


def get_badge(visit: Visit, badge_id: str, button: str) -> None:
    visit.field("Your repository, site, or a new name").fill(badge_id)
    press(visit.page, button)


def take_complaints(visit: Visit, *statuses: int) -> None:
    """Take the complaints of the browser about refused requests, which are expected."""
    assert [int(one.split(" status of ")[1][:3]) for one in visit.complaints] == [*statuses]
    visit.complaints.clear()


def test_an_author_claims_a_new_badge_and_saves_its_secret(visit: Visit, server: Server) -> None:
    visit.open("own#id=author%2Fnew")
    press(visit.page, CLAIM)
    says(visit, "author/new is yours. Save the secret above")
    with visit.page.expect_event("dialog") as asking:
        visit.page.evaluate("setTimeout(() => location.reload())")
    assert asking.value.type == "beforeunload"
    asking.value.dismiss()
    with visit.page.expect_download() as downloading:
        press(visit.page, "Save my secret")
    saved = Path(downloading.value.path()).read_text().strip()
    assert saved == secret_field(visit).input_value()
    assert listed(server, saved) == ["author/new"]
    expect(visit.page.get_by_role("group", name="author/new")).to_have_attribute("open", "")
    press(visit.page, "Copy my secret")
    says(visit, "Copied the secret.")
    assert visit.clipboard() == saved
    visit.check_on_all_screens()


def test_a_secret_owns_another_badge_and_the_browser_keeps_it_if_its_owner_asks(
    visit: Visit, server: Server
) -> None:
    secret = "existing" * 4
    claim(server, secret, "mine/first")
    server.badge("mine/first")
    open_with(visit, secret)
    expect(visit.page.get_by_role("group", name="mine/first")).to_contain_text("today")
    get_badge(visit, "mine/second", CLAIM)
    says(visit, "mine/second is yours.")
    assert listed(server, secret) == ["mine/first", "mine/second"]
    assert visit.page.evaluate("localStorage.length") == 0
    visit.field("Keep it in this browser").check()
    says(visit, "This browser keeps the secret.")
    visit.page.reload()
    expect(visit.page.locator("#badges > li")).to_have_count(2)
    visit.field("Keep it in this browser").uncheck()
    assert visit.page.evaluate("localStorage.length") == 0


def test_a_proof_leads_to_githubs_form_and_is_found_by_itself(
    visit_apart: Visit, server: Server, host: Host, folder: Path
) -> None:
    visit, secret = visit_apart, "proving!" * 4
    claim(server, secret, "mine/other")
    server.badge(PROVEN)
    raw, own = f"https://raw.githubusercontent.com/{PROVEN}/HEAD/.vu-mi", f"/{PROVEN}/.vu-mi"

    def name_github(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json={**answer.json(), "url": raw})

    visit.page.clock.install()
    open_with(visit, secret)
    # Until the badges are listed, a request for them could take the one answer of `name_github`.
    expect(visit.page.get_by_role("group", name="mine/other", exact=True)).to_be_visible()
    visit.page.route("**/api/v1/badges", name_github, times=1)
    get_badge(visit, PROVEN, PROVE)
    line = visit.page.locator("#challenge").filter(has_text="vu-mi-").inner_text()
    form = visit.page.get_by_role("link", name="Open GitHub")
    form_url = f"https://github.com/{PROVEN}/new/HEAD?filename=.vu-mi&value={line}%0A"
    assert form.get_attribute("href") == form_url
    visit.page.clock.fast_forward(11_000)
    seen = f"Looked at {host.url(own)} at "
    expect(visit.page.locator("#looked")).to_contain_text(seen)
    expect(visit.page.locator("#looked")).to_contain_text(": there is no file (answered 404). It")
    take_complaints(visit, 409)
    visit.check_on_all_screens()
    host.files[own] = line
    with closing(Database(folder / FILE)) as database:  # or else it is looked for in 10 s again
        SqliteTable(database).write(Delete(Key(proving.PARTITION + PROVEN, proving.SORT)))
    visit.page.clock.fast_forward(11_000)
    says(visit, f"{PROVEN} is yours.")
    assert owned(server, PROVEN, secret)["proven"] == PROVEN
    assert listed(server, secret) == ["mine/other", PROVEN]
    expect(visit.page.locator("#steps")).to_be_hidden()


def test_an_owner_changes_badges_without_the_storage_of_the_browser(
    visit: Visit, server: Server
) -> None:
    secret = "owner!!!" * 4
    badges = ["owned/deleted", "owned/given", "owned/renamed"]
    claim(server, secret, *badges)
    visit.page.add_init_script(NO_STORAGE)
    open_with(visit, secret)
    visit.field("Keep it in this browser").click()
    says(visit, "This browser keeps nothing for this page: save the secret as a file.")
    changes = unfold(visit, "owned/renamed")
    changes.get_by_label("Number to start from").fill("1200")
    press(changes, "Set the number")
    says(visit, "The number is set.")
    expect(changes.locator("summary")).to_contain_text("0 today · 1,200")
    press(changes, "Freeze")
    says(visit, "It is frozen")
    expect(changes.get_by_role("button", name="Count again")).to_be_visible()
    changes.get_by_label("Milestones").fill(f"many {MILESTONE}")
    press(changes, "Set milestones")
    says(visit, "give a whole number from 1 to")
    take_complaints(visit, 400)
    changes.get_by_label("Milestones").fill(f"\n5000  {MILESTONE}\n")
    press(changes, "Set milestones")
    says(visit, "The milestones are set.")
    changes.get_by_label("New name").fill("owned/now")
    press(changes, "Rename")
    says(visit, "Renamed.")
    changes = visit.page.get_by_role("group", name="owned/now")
    expect(changes.get_by_text("Its other names: owned/renamed.")).to_be_visible()
    found = owned(server, "owned/now", secret)
    assert (found["base"], found["frozen"]) == (1200, True)
    assert [(one["count"], one["url"]) for one in found["milestones"]] == [(5000, MILESTONE)]
    press(changes, "Reset")
    visit.page.keyboard.press("Escape")
    assert owned(server, "owned/now", secret)["count"] == 1200
    press(changes, "Reset")
    confirm(visit, "owned/now", "Reset")
    says(visit, "It counts from 0.")
    assert owned(server, "owned/now", secret)["count"] == 0
    given = unfold(visit, "owned/given")
    given.get_by_label("Digest of the new owner").fill(f" {digest('new')}\n")
    press(given, "Hand over")
    confirm(visit, "owned/given", "Hand over")
    says(visit, "Handed over.")
    assert listed(server, "new") == ["owned/given"]
    press(unfold(visit, "owned/deleted"), "Delete")
    confirm(visit, "owned/deleted", "Delete")
    says(visit, "Deleted.")
    assert listed(server, secret) == ["owned/now"]
    expect(visit.page.locator("#badges > li")).to_have_count(1)


def test_an_operator_removes_the_views_of_hours_from_a_badge_that_nobody_owns(
    visit: Visit, server: Server
) -> None:
    before = server.peek(STRANGERS)
    open_with(visit, TOKEN, STRANGERS)
    group = visit.page.get_by_role("group", name=STRANGERS)
    expect(group).to_contain_text(f"{before:,}")
    expect(group).to_contain_text("Nobody owns it.")
    assert group.get_by_role("button").all_inner_texts() == ["Remove views", "Ban"]
    take_complaints(visit, 403, 404)
    hours = (SECOND_DAY, SECOND_DAY + timedelta(days=1))
    for name, hour in zip(("From the hour (UTC)", "To the hour, excluded"), hours, strict=True):
        group.get_by_label(name).fill(f"{hour:%Y-%m-%dT%H:%M}")
    press(group, "Remove views")
    confirm(visit, STRANGERS, "Remove views")
    expect(group).not_to_contain_text(f"{before:,}")
    after = server.peek(STRANGERS)
    assert after < before
    says(visit, f"Removed {before - after:,} views.")
    expect(group).to_contain_text(f"{after:,}")
    take_complaints(visit, 404)


def test_an_operator_bans_a_badge_by_all_its_names_and_lifts_the_ban(
    visit: Visit, server: Server
) -> None:
    secret, old, new = "banned!!" * 4, "banned/old", "banned/n*w"
    claim(server, secret, old)
    path = f"/api/v1/badges?id={quote(old)}"
    assert server.ask("PATCH", path, {"base": 1200, "rename": new}, token=secret)[0] == 200
    open_with(visit, TOKEN, new)
    group = visit.page.get_by_role("group", name=new)
    group.get_by_label("Reason, for operators").fill("<b>spam</b>")
    press(group, "Ban")
    expect(visit.page.get_by_role("dialog")).to_contain_text("Each * stands for any characters")
    confirm(visit, new, "Ban")
    says(visit, "It is banned.")
    expect(group.locator("summary")).to_contain_text("not counted here")
    expect(group).to_contain_text(": <b>spam</b>.")
    assert [server.badge(name)["message"] for name in (old, new)] == ["not counted here"] * 2
    visit.check_on_all_screens()
    take_complaints(visit, 403, 403)

    open_with(visit, secret)
    expect(group.locator("summary")).to_contain_text("not counted here")
    group.locator("summary").click()
    expect(group).to_contain_text("The operator of this server has banned it")
    assert group.get_by_role("button").all_inner_texts() == ["Delete"]
    visit.check_on_all_screens()
    take_complaints(visit, 403, 403)

    wider = "/api/v1/bans?pattern=banned/*"
    assert server.ask("PUT", wider, {}, token=TOKEN)[0] == 200
    open_with(visit, TOKEN, new)
    press(group, "Lift the ban")
    confirm(visit, new, "Lift the ban")
    says(visit, "The ban is lifted.")
    expect(group).to_contain_text("A ban of a pattern covers it")
    assert server.ask("DELETE", wider, token=TOKEN)[0] == 204
    for _ in ("close", "open"):
        group.locator("summary").click()
    expect(group.locator("summary")).to_contain_text("1,200")
    expect(group.get_by_role("button", name="Ban", exact=True)).to_be_visible()
    assert [server.peek(name) for name in (old, new)] == [1200] * 2
    take_complaints(visit, 403, 403, 403)


def test_an_owner_sees_the_numbers_of_github_or_how_to_begin(visit: Visit, server: Server) -> None:
    secret = "github!!" * 4
    tell_github(server, "github/told", secret, days_ago=9)
    claim(server, secret, "github/untold")
    open_with(visit, secret)
    told = unfold(visit, "github/told")
    expect(told).to_contain_text("unique visitors of the last 14 days, 9 days ago: 1,234;")
    expect(told).to_contain_text("clones, 9 days ago: 56.")
    expect(unfold(visit, "github/untold")).to_contain_text("docs/github-traffic.md")


def test_a_secret_of_no_badge_is_refused_in_words(browser: Browser, server: Server) -> None:
    with Visit.of(browser, server) as visit:
        open_with(visit, "nobodys!" * 4)
        says(visit, "no badge has this secret. A token opens one badge alone: give its id.")
        secret_field(visit).fill("white space")
        press(visit.page, "Open")
        says(visit, "A secret has letters, digits and signs of ASCII")


def test_badges_come_a_page_at_a_time_and_wide_names_fit(visit: Visit, server: Server) -> None:
    secret = "many!!!!" * 4
    wide = ["W" * 200, "\N{GRINNING FACE}" * 100, "<b>&amp;'\"</b>"]
    claim(server, secret, *wide, *(f"many/{place:02}" for place in range(25)))
    open_with(visit, secret)
    badges = visit.page.locator("#badges > li")
    expect(badges).to_have_count(25)
    press(visit.page, "Show more")
    expect(badges).to_have_count(28)
    expect(visit.page.get_by_role("button", name="Show more")).to_be_hidden()
    changes = [unfold(visit, name) for name in wide]
    visit.check_on_all_screens()
    for name, group in zip(wide, changes, strict=True):
        press(group, "Delete")
        question = visit.page.get_by_role("dialog", name=f"Delete: {name}")
        expect(question).to_be_visible()
        visit.page.keyboard.press("Escape")
        expect(question).to_be_hidden()
    expect(badges).to_have_count(28)
