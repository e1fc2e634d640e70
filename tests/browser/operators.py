"""An operator who opens the page at `/admin`, and the data that they look at."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect

from chalicelib.counting import keys
from chalicelib.events.event import Status, batch
from chalicelib.storage.items import Item, Value
from tests.browser.visit import Visit
from tests.end_to_end.server import Server
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


@dataclass(frozen=True)
class Served:
    """A running server, its folder, and an operator's token."""

    server: Server
    folder: Path
    token: str


@dataclass
class Operator:
    """An operator with a token in one tab."""

    visit: Visit
    served: Served

    @property
    def token(self) -> str:
        return self.served.token

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


@contextmanager
def operator_of(browser: Browser, served: Served, **settings: Any) -> Iterator[Operator]:
    with Visit.of(browser, served.server, **settings) as visit:
        yield Operator(visit, served)


@contextmanager
def operator_apart(browser: Browser, served: Served) -> Iterator[Operator]:
    """Return an operator in a context whose clock a test may set."""
    with Visit.apart(browser, served.server) as visit:
        yield Operator(visit, served)


def filled(folder: Path, badges: int) -> None:
    """Make a file with badges, sizes of the last days, dead letters and failed events."""
    database = Database(folder / FILE)
    table = SqliteTable(database)
    today = datetime.now(UTC).date()
    named = [*EVIL_IDS, "sparkling"]
    named += [f"group-{place // 100}/name-{place}" for place in range(badges - len(named))]
    for start in range(0, len(named), 1_000):
        table.put_all([summary(one, len(one) * 99, today) for one in named[start : start + 1_000]])
    for back in (1, 2):
        place = keys.day("sparkling", f"{today - timedelta(back)}")
        table.put_all([{"PK": place.pk, "SK": place.sk, "views": 2, "h01": 2, "version": back}])
    table.put_all([summary("sparkling", 6, today, 2), *map(failed_event, range(25))])
    rows = [(f"{today - timedelta(back)}", 1_000_000 - back * 10_000) for back in range(1, 30)]
    database.write(
        lambda connection: connection.executemany("INSERT INTO file_sizes VALUES (?, ?)", rows)
    )
    letters = [("vu-mi-views-dead-letters", "{}")] * 3 + [("event-orders", "{}")]
    database.write(
        lambda connection: connection.executemany(
            "INSERT INTO messages (queue, body, sent_at, visible_at, timed_at)"
            " VALUES (?, ?, 0, 0, 0)",
            letters,
        )
    )
    database.close()


def summary(badge_id: str, count: int, today: date, of_today: int = 1) -> Item:
    place = keys.summary(badge_id)
    now = int(time.time())
    return {
        "PK": place.pk,
        "SK": place.sk,
        "count": count,
        "watermark": now * 1000,
        "today": {"day": f"{today}", "h00": of_today + len(badge_id) % 7 * (of_today == 1)},
        "version": 3,
        "created": now,
    }


def failed_event(place: int) -> Item:
    event_id, now = f"ev-{place}", int(time.time() * 1000)
    failed_at = now - place * 1_000_000
    attempt: dict[str, Value] = {"started": failed_at, "ended": failed_at, "code": 500}
    return {
        "PK": f"TIMER#{event_id}",
        "SK": "TIMER",
        "at": now,
        "created": now,
        "kind": "url",
        "payload": "",
        "request": "r",
        "tries": 9,
        "address": f"https://example.com/{place}",
        "status": str(Status.ERROR),
        "attempts": [attempt | {"error": "500 <b>no</b>"}],
        "batch": batch(Status.ERROR, event_id),
        "due": failed_at,
        "ttl": now // 1000 + 86_400,
    }
