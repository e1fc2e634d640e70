"""An operator who opens the page at `/admin`, and the data that they look at."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from sqlite3 import Connection

from playwright.sync_api import Page, expect

from chalicelib.counting import keys
from chalicelib.storage.items import Item, Value
from tests.browser.visit import Visit
from tests.unit.vumi.operate.admin.test_routes import failed_event
from vumi.storage.database import FILE, Database
from vumi.storage.table import SqliteTable

NO_NUMBER = "\N{EN DASH}"
PATIENCE_MS = 30_000
"""The limit for the first overview, which takes a second on an idle machine."""
EVIL_IDS = (
    "<img src=x onerror=alert(1)>",
    '"><script>alert(1)</script>',
    "javascript:alert(1)#&id=other",
    "\u05e9\u05dc\u05d5\u05dd/12345",
    "</td></tr></table><b>out</b>",
    "wide/" + "w" * 195,
)
BURST = "group-0/burst"
"""The badge whose last full hour is far above its own month."""


@dataclass
class Operator:
    """An operator with a token in one tab."""

    visit: Visit
    token: str

    @property
    def page(self) -> Page:
        return self.visit.page

    def type_token(self, token: str) -> Page:
        """Open the page and type a token."""
        self.visit.open("admin")
        self.page.get_by_label("Token", exact=True).fill(token)
        self.page.get_by_role("button", name="Open").click()
        return self.page

    def open(self) -> Operator:
        """Open the page with the right token, and wait for its numbers."""
        self.type_token(self.token)
        self.wait_for_numbers()
        return self

    def wait_for_numbers(self) -> None:
        expect(self.page.locator("#sum-total")).not_to_have_text(NO_NUMBER, timeout=PATIENCE_MS)

    def search(self, text: str) -> None:
        """Search, and wait for the answer to this text."""
        with self.page.expect_response("**/admin/data/badges?**") as answered:
            self.page.get_by_label("Search in the names").fill(text)
        assert answered.value.ok
        self.settle()

    def settle(self) -> None:
        """Wait until the table shows the answer to the last request."""
        self.page.wait_for_function(
            "() => document.getElementById('badges').getAttribute('aria-busy') === 'false'"
        )

    def numbers(self, sort: str) -> list[int]:
        """Return the numbers of a column."""
        cells = self.page.locator(f"#rows td[data-label={sort}]").all_text_contents()
        return [int(cell.replace(",", "")) for cell in cells]

    def expect_complaints(self, text: str) -> None:
        """Take the complaints of the browser about refused requests, which are expected."""
        assert all(text in one for one in self.visit.complaints)
        self.visit.complaints.clear()


def filled(folder: Path, badges: int) -> None:
    """Make a file with badges, sizes of the last days, dead letters and failed events."""
    database = Database(folder / FILE)
    table = SqliteTable(database)
    today = datetime.now(UTC).date()
    named = [*EVIL_IDS, BURST]
    named += [f"group-{place // 100}/name-{place}" for place in range(badges - len(named))]
    for start in range(0, len(named), 1_000):
        table.put_all([summary(one, today) for one in named[start : start + 1_000]])
    attempt: Value = {"started": 0, "ended": 5, "code": 500, "error": "500 <b>no</b>"}
    table.put_all([failed_event(place, attempts=[attempt]) for place in range(25)])
    rows = [(f"{today - timedelta(back)}", 1_000_000 - back * 10_000) for back in range(1, 30)]
    letters = [("vu-mi-views-dead-letters",)] * 3 + [("event-orders",)]

    def insert(connection: Connection) -> None:
        connection.executemany("INSERT INTO file_sizes VALUES (?, ?)", rows)
        names = "queue, body, sent_at, visible_at, timed_at"
        values = f"INSERT INTO messages ({names}) VALUES (?, '{{}}', 0, 0, 0)"  # noqa: S608
        connection.executemany(values, letters)

    database.write(insert)
    database.close()


def summary(badge_id: str, today: date) -> Item:
    place, now = keys.summary(badge_id), int(time.time())
    return {
        "PK": place.pk,
        "SK": place.sk,
        "count": len(badge_id) * 99,
        "watermark": now * 1000,
        "today": _today(badge_id, today),
        "version": 3,
        "created": now,
    }


def _today(badge_id: str, today: date) -> dict[str, Value]:
    """Return the views of today; at midnight the last full hour is of yesterday."""
    if badge_id != BURST:
        return {"day": f"{today}", "h00": 1 + len(badge_id) % 7}
    began = datetime.now(UTC) - timedelta(hours=1)
    return {"day": f"{began.date()}", f"h{began.hour:02}": 5_000}
