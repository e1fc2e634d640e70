"""The pictures of the README, the docs and the example README, drawn by the current code.

`python -m tests.pictures` writes them.
"""

from __future__ import annotations

import html
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType

from chalicelib.badges import own_logo
from chalicelib.badges.options import Badge, CountFormat
from chalicelib.badges.svg import draw
from chalicelib.counting import keys
from chalicelib.counting.view import ViewMessages
from chalicelib.history import chart
from chalicelib.history.history import Bucket, History, Interval
from chalicelib.http import tokens
from chalicelib.settings import Settings
from chalicelib.storage.items import Value
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Put
from chalicelib.wallets.wallet import wallet
from simulation.resources import GivenResources
from simulation.storage import FakeQueue, MemoryTable
from simulation.views import put_summary
from tests.unit.http_requests import ask

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
LAST = datetime(2026, 11, 21, tzinfo=UTC)
DAYS = 30
NAMESPACE = 'xmlns="http://www.w3.org/2000/svg"'
GAP, ROW = 8, 36
OWN_LOGO = (
    '<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2">'
    '<path d="M1 12s4-8 11-8 11 8 11 8-4 8-11 8-11-8-11-8z"/><circle cx="12" cy="12" r="3"/></svg>'
)


def pictures() -> dict[str, str]:
    """Return the documents by the names of their files."""
    count = CountFormat({"format": ["comma"]}).write(1_234_567)
    short = CountFormat({"format": ["short"]}).write(1_234_567)
    month = tuple(bucket.views for bucket in _history().buckets)
    green = Badge("seen", short, "brightgreen", style="for-the-badge")
    return {
        "flat.svg": draw(Badge("views", count, logo="github")),
        "for-the-badge.svg": draw(green),
        "spark.svg": draw(Badge("views", "17 today · 3,456", spark=month)),
        "logos.svg": _arrange(_logos()),
        "sparklines.svg": _arrange(_sparklines()),
        "history-light.svg": chart.draw(_history(), chart.Look(theme="light")),
        "history-dark.svg": chart.draw(_history(), chart.Look(theme="dark")),
        "visitors-light.svg": chart.draw(_visited(), chart.Look(theme="light", has_visitors=True)),
        "visitors-dark.svg": chart.draw(_visited(), chart.Look(theme="dark", has_visitors=True)),
    }


def _visited() -> History:
    """Return the history with GitHub's unique visitors, but for three days."""
    history = _history()
    days = {
        f"{bucket.start:%Y-%m-%d}": {"visitors": bucket.views * (3 + place % 4) // 8}
        for place, bucket in enumerate(history.buckets)
        if place not in range(11, 14)
    }
    return replace(history, github=days)


def _logos() -> list[list[Badge]]:
    """Return rows of badges with logos: in each style, and with another colour or an own logo."""
    named = ("python", "linux", "postgresql", "docker", "javascript")
    own = own_logo.parse(own_logo.PREFIX + b64encode(OWN_LOGO.encode()).decode())
    return [
        [Badge("views", "1,234", logo=name) for name in named],
        [Badge("views", "1,234", style="social", logo=name) for name in named],
        [Badge("", "1,234", color, logo="github") for color in ("blue", "green", "yellow", "red")],
        [
            Badge("views", "1,234", style="for-the-badge", logo="git", logo_color="gold"),
            Badge("views", "1,234", style="for-the-badge", logo=own),
        ],
    ]


def _sparklines() -> list[list[Badge]]:
    """Return rows of badges with sparklines: in each style, and in other colours and lengths."""
    month = tuple(bucket.views for bucket in _history().buckets)
    quarter = tuple(
        views + 40 * (place // DAYS) for place, views in enumerate(month[:15] * (3 * DAYS // 15))
    )
    low, high = ("flat", "flat-square", "plastic", "social"), "for-the-badge"
    return [
        [Badge("views", "1,234", style=style, spark=month) for style in low],
        [Badge("views", "1,234", style=high, spark=month)],
        [
            Badge("views", "12 today · 3,456", color, spark=month)
            for color in ("brightgreen", "yellow", "white", "black")
        ],
        [
            Badge("views", "1,234", spark=month[-7:]),
            Badge("views", "1,234", spark=quarter),
            Badge("views", "0", spark=(0,) * DAYS),
        ],
    ]


def _arrange(rows: list[list[Badge]]) -> str:
    """Draw badges in rows."""
    content, width, y = "", 0.0, 0
    for row in rows:
        x = 0.0
        for document in map(draw, row):
            content += document.replace(NAMESPACE, f'x="{x:g}" y="{y}"', 1)
            x += float(re.findall(r' width="([\d.]+)"', document)[0]) + GAP
        width, y = max(width, x - GAP), y + ROW
    size = f'width="{width:g}" height="{y}"'
    return f"<svg {NAMESPACE} {size}>{content}</svg>"


def _history() -> History:
    """Return a month of views with weekends, and one day on which somebody linked to the badge."""
    starts = [LAST - timedelta(days=ago) for ago in reversed(range(DAYS))]
    buckets = tuple(Bucket(start, _views(place, start)) for place, start in enumerate(starts))
    return History(Interval.DAY, DAYS, starts[0].date(), buckets)


def _views(place: int, start: datetime) -> int:
    linked = {17: 5, 18: 3, 19: 2}.get(place, 1)
    return (17 if start.isoweekday() in {6, 7} else 38 + place * 11 % 17) * linked


# ---- the example README with every badge

README = Path(__file__).parents[1] / "examples" / "readme"
HOST = "https://views.example.com"
BADGE, EVENT, WALLET = "octocat/hello-world", "launch", "01KAJ9Q3V5N8Z2M4T6R7W9XYBC"
TOKEN = tokens.new_token()
LINES = re.compile(r"^```(?:markdown|html)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r'!\[[^]]*]\(([^)]+)\)|(?:src|srcset)="([^"]+)"')
NOW = datetime(2026, 11, 21, 15, 30, tzinfo=UTC)
HISTORY_DAYS = 400
"""The days of the history, so that a year ago there were views too."""
VIEWS_BY_HOUR = (1, 0, 0, 0, 1, 1, 2, 3, 4, 5, 5, 4, 3, 4, 5, 6, 5, 4, 4, 5, 4, 3, 2, 1)


def read_lines() -> Iterator[tuple[str, str]]:
    """Yield each picture of the README with the target of the line below it.

    A line that shields.io draws has no picture.
    """
    *parts, _ = LINES.split((README / "README.md").read_text(encoding="utf-8"))
    for text, code in zip(parts[::2], parts[1::2], strict=True):
        files, urls = [*_addresses(text)], [*_addresses(code)]
        for file, url in zip(files, urls if files else [], strict=True):
            yield file, url.removeprefix(HOST)


def _addresses(text: str) -> Iterator[str]:
    for markdown, attribute in PICTURE.findall(text):
        yield markdown or html.unescape(attribute)


def _counter() -> GivenResources:
    """Return a counter with views in every week of 400 days, an event and a wallet."""
    table = MemoryTable()
    resources = GivenResources(
        table,
        ViewMessages(FakeQueue()),
        delivery_queue=FakeQueue(),
        settings=Settings(api_token_digests=frozenset({tokens.digest(TOKEN)})),
        clock=NOW.timestamp,
    )
    put_history(table, BADGE, NOW)
    table.write(Put(wallet(WALLET).item(user="", balance=128_500_000, public=1)))
    launch = {"at": "2026-11-24T18:00:00Z", "target": {"log": True}, "id": EVENT}
    bearer = f"Bearer {TOKEN}"
    assert ask(resources, "POST", "/api/v1/events", launch, authorization=bearer).status == 201
    return resources


def put_history(  # noqa: PLR0913  all that tells one badge from another
    table: Table,
    badge_id: str,
    now: datetime,
    *,
    busy: float = 1.0,
    shift: int = 0,
    more: Mapping[str, int] = MappingProxyType({}),
) -> None:
    """Put 400 days of views: `busy` times the usual, some days earlier, and `more` in hours."""
    count = 0
    for ago in reversed(range(HISTORY_DAYS)):
        day = (now - timedelta(days=ago)).date()
        weight = busy * _weight(ago + shift, day.isoweekday())
        hours = {
            f"h{hour:02}": round(views * weight)
            for hour, views in enumerate(VIEWS_BY_HOUR)
            if views and (ago or hour <= now.hour)
        }
        hours |= {} if ago else more
        count += sum(hours.values())
        if ago:
            key = keys.day(badge_id, day.isoformat())
            table.write(Put({"PK": key.pk, "SK": key.sk, "views": sum(hours.values()), **hours}))
        else:
            today: Value = {"day": day.isoformat(), **hours}
            created = int((now - timedelta(days=HISTORY_DAYS)).timestamp())
            put_summary(table, badge_id, count=count, today=today, created=created)


def _weight(ago: int, weekday: int) -> int:
    """Return how busy a day is: more each month, less at weekends, and once linked to by others."""
    linked = {12: 10, 11: 4, 10: 2}.get(ago, 1)
    busy = 2 if weekday in {6, 7} else 4 + ago * 7 % 3
    return busy * linked * (1 + (HISTORY_DAYS - ago) // 100)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, drawn in pictures().items():
        (FOLDER / name).write_text(drawn + "\n", encoding="utf-8")
    (README / "pictures").mkdir(exist_ok=True)
    counter = _counter()
    for file, target in read_lines():
        (README / file).write_bytes(ask(counter, "GET", target).response.body)
