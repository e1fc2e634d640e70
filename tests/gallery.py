"""The example README with every badge: its lines, and their pictures, drawn by the current code.

`python -m tests.gallery` writes the pictures.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType

from chalicelib.counting import keys
from chalicelib.counting.view import ViewMessages
from chalicelib.http import tokens
from chalicelib.settings import Settings
from chalicelib.storage.items import Item, Value
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Put
from chalicelib.wallets.wallet import wallet
from simulation.memory_table import MemoryTable
from simulation.queues import FakeQueue
from simulation.resources import GivenResources
from simulation.views import put_summary
from tests.unit.http_requests import ask

FOLDER = Path(__file__).parents[1] / "examples" / "readme"
HOST = "https://views.example.com"
BADGE, EVENT, WALLET = "octocat/hello-world", "launch", "01KAJ9Q3V5N8Z2M4T6R7W9XYBC"
TOKEN = tokens.new_token()
LINES = re.compile(r"^```(?:markdown|html)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r'!\[[^]]*]\(([^)]+)\)|(?:src|srcset)="([^"]+)"')
NOW = datetime(2026, 11, 21, 15, 30, tzinfo=UTC)
DAYS = 400
"""The days of the history, so that a year ago there were views too."""
VIEWS_BY_HOUR = (1, 0, 0, 0, 1, 1, 2, 3, 4, 5, 5, 4, 3, 4, 5, 6, 5, 4, 4, 5, 4, 3, 2, 1)


def read_lines() -> Iterator[tuple[str, str]]:
    """Yield each picture of the README with the target of the line below it.

    A line that shields.io draws has no picture.
    """
    *parts, _ = LINES.split((FOLDER / "README.md").read_text(encoding="utf-8"))
    for text, code in zip(parts[::2], parts[1::2], strict=True):
        files, urls = [*_pictures(text)], [*_pictures(code)]
        for file, url in zip(files, urls if files else [], strict=True):
            yield file, url.removeprefix(HOST)


def _pictures(text: str) -> Iterator[str]:
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
    _put_wallet(table)
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
    for ago in reversed(range(DAYS)):
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
            created = int((now - timedelta(days=DAYS)).timestamp())
            put_summary(table, badge_id, count=count, today=today, created=created)


def _weight(ago: int, weekday: int) -> int:
    """Return how busy a day is: more each month, less at weekends, and once linked to by others."""
    linked = {12: 10, 11: 4, 10: 2}.get(ago, 1)
    busy = 2 if weekday in {6, 7} else 4 + ago * 7 % 3
    return busy * linked * (1 + (DAYS - ago) // 100)


def _put_wallet(table: Table) -> None:
    key = wallet(WALLET)
    item: Item = {"PK": key.pk, "SK": key.sk, "user": "", "balance": 128_500_000, "public": 1}
    table.write(Put(item))


if __name__ == "__main__":
    (FOLDER / "pictures").mkdir(exist_ok=True)
    counter = _counter()
    for file, target in read_lines():
        (FOLDER / file).write_bytes(ask(counter, "GET", target).response.body)
