"""One machine: hits on badges with a period or a sparkline, compared with plain SVG badges.

Each badge has views on each of the last 400 days. All sides hit the same badges, turn by turn.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from bench.measuring import interleaved, medians
from bench.speed.hits import SHORT_LIVED
from bench.speed.load import Load, Request, compared
from bench.speed.server import CONNECTIONS, Server, running
from chalicelib.counting import keys
from chalicelib.counting.summary import HOURS
from chalicelib.storage.items import Item
from simulation.report import Report, judged
from vumi.storage.database import FILE, Database
from vumi.storage.table import SqliteTable

ROUNDS = 2
HITS_A_ROUND = 1_000
IDS = 100
DAYS = 400
PLAIN, MONTH, YEAR = "plain SVG", "show=month", "show=year"
LINE, MOST = "spark=30", "show=today-total&spark=90"
AIM = 1.5
"""The most that a badge with a sparkline may take, as a multiple of a plain one's time."""


def measure() -> Report:
    """Fill a file with days, run the server, and load it."""
    with tempfile.TemporaryDirectory() as folder:
        _fill(Path(folder))
        with running(Path(folder), **SHORT_LIVED) as server:
            sides = {side: partial(_hit, server, side) for side in (PLAIN, MONTH, YEAR, LINE, MOST)}
            interleaved(1, sides)
            loads = interleaved(ROUNDS, sides)
    failed = sum(load.failed for runs in loads.values() for load in runs)
    return Report(
        title=f"periods: hits on one machine, {CONNECTIONS} keep-alive connections",
        head=("requests", "per second", "of plain", "p99 ms", "aim"),
        rows=[(*row, _aim(row[0], loads)) for row in compared(loads, PLAIN)],
        notes=(f"{ROUNDS} x {HITS_A_ROUND:,} hits each, on {IDS} badges with {DAYS} days",),
        failure=f"{failed} failed" if failed else "",
    )


def _fill(folder: Path) -> None:
    with closing(Database(folder / FILE)) as file:
        table, today = SqliteTable(file), datetime.now(UTC)
        for place in range(IDS):
            table.put_all([_day(place, today - timedelta(days=1 + ago)) for ago in range(DAYS)])


def _day(place: int, day: datetime) -> Item:
    key = keys.day(f"bench/{place}", f"{day:%Y-%m-%d}")
    hours = {name: 1 + hour * day.day % 7 for hour, name in HOURS.items()}
    return {"PK": key.pk, "SK": key.sk, "views": sum(hours.values()), **hours, "version": 1}


def _hit(server: Server, side: str) -> Load:
    """Hit badges, and wait for their folds, which would slow the next side."""
    options = "" if side == PLAIN else f"&{side}"
    load = server.load(
        [
            Request(f"/api/v1/views.svg?id=bench%2F{place * 7 % IDS}{options}")
            for place in range(HITS_A_ROUND)
        ]
    )
    server.settle()
    return load


def _aim(side: str, loads: Mapping[str, Sequence[Load]]) -> str:
    if side != LINE:
        return ""
    rates = medians({name: [load.per_second for load in runs] for name, runs in loads.items()})
    times = rates[PLAIN] / rates[LINE]
    return judged(f"within {AIM} times, it is {times:.2f} times", met=times <= AIM)
