"""The pictures of the pages in the README and the docs, taken from a real server by a browser.

`python -m tests.screenshots` writes them to `docs/pictures`, light and dark. A new page is a line
of `SCREENS`.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal
from urllib.parse import quote

from playwright.sync_api import Browser, expect

from chalicelib.counting.summary import HOURS
from chalicelib.http.tokens import digest, new_token
from chalicelib.owners import claiming
from tests.browser.conftest import launching
from tests.browser.operators import Operator
from tests.browser.visit import Visit
from tests.pictures import BADGE, FOLDER, put_history
from tests.processes.programs import TOKEN, WITH_TOKEN, Server, running
from vumi.storage.database import FILE, Database
from vumi.storage.table import SqliteTable

BUSY = {
    BADGE: 0.14,
    "octocat/spoon-knife": 0.4,
    "octocat/linguist": 0.1,
    "octocat/git-consortium": 0.05,
    "octocat.example/blog/": 0.25,
    "hubot/hubot-scripts": 0.06,
    "hubot/chatops": 0.2,
}
"""The badges, and how busy each is."""
OWNED = [badge_id for badge_id in BUSY if badge_id.startswith("octocat")]
SECRET = new_token()
BURST = "octocat/git-consortium"
BURST_VIEWS = 1_412
HOST = "views.example.com"
"""The host of the server for the browser, because the builder shows it in the line to copy."""
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
QUALITY = 82
"""Of WebP: below it, the edges of letters are blurred."""


@dataclass(frozen=True)
class Screen:
    """A page, the size of its picture, and the steps that open it."""

    name: str
    size: tuple[int, int]
    open: Callable[[Visit], object]


class HostedVisit(Visit):
    """A visit to the server under the name of a public host."""

    @property
    def root(self) -> str:
        return f"http://{HOST}"


def _open_builder(visit: Visit) -> None:
    visit.open(f"#id={quote(BADGE, safe='')}")
    visit.is_drawn("#badge")


def _open_badge_page(visit: Visit) -> None:
    visit.open(f"s?id={quote(BADGE, safe='')}")
    visit.is_drawn("figure img")


def _open_own(visit: Visit) -> None:
    visit.open("own")
    visit.page.get_by_label("Secret, or an operator").fill(SECRET)
    visit.page.keyboard.press("Enter")
    visit.page.locator("summary").first.click()
    visit.page.evaluate("document.activeElement.blur()")


def _open_admin(visit: Visit) -> None:
    Operator(visit, TOKEN).open()
    expect(visit.page.locator("#bursts li")).to_be_visible()
    visit.is_drawn("#chart")
    visit.page.evaluate("document.activeElement.blur()")


SCREENS = (
    Screen("builder", (1080, 760), _open_builder),
    Screen("badge-page", (780, 600), _open_badge_page),
    Screen("own", (780, 900), _open_own),
    Screen("admin", (1000, 900), _open_admin),
)


def _fill(folder: Path) -> None:
    """Make a file of badges with 400 days each, and one far above its own month."""
    with closing(Database(folder / FILE)) as database:
        table, now = SqliteTable(database), datetime.now(UTC)
        last_hour = HOURS[max(0, now.hour - 1)]
        for place, (badge_id, busy) in enumerate(BUSY.items()):
            more = {last_hour: BURST_VIEWS} if badge_id == BURST else {}
            put_history(table, badge_id, now, busy=busy, shift=-2 * place, more=more)
            if badge_id in OWNED:
                claiming.grant(table, badge_id, now.timestamp(), digest(SECRET))


def _take(browser: Browser, server: Server, screen: Screen) -> None:
    for scheme in SCHEMES:
        with HostedVisit.apart(browser, server) as visit:
            visit.look(screen.size, color_scheme=scheme)
            screen.open(visit)
            visit.page.wait_for_load_state("networkidle")
            session = visit.page.context.new_cdp_session(visit.page)
            taken = session.send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
            assert visit.complaints == []
        path = FOLDER / f"{screen.name}-{scheme}.webp"
        path.write_bytes(base64.b64decode(taken["data"]))


def main() -> None:
    """Take all pictures."""
    with TemporaryDirectory() as name, launching() as launch:
        _fill(Path(name))
        with running(Path(name), **WITH_TOKEN) as server:
            hosted = (
                f"--host-resolver-rules=MAP {HOST} {server.host}:{server.port}",
                f"--unsafely-treat-insecure-origin-as-secure=http://{HOST}",
            )
            with closing(launch(*hosted)) as browser:
                for screen in SCREENS:
                    _take(browser, server, screen)


if __name__ == "__main__":
    main()
