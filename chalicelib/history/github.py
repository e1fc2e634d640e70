"""GitHub's numbers of a repository by day, as its owner tells them.

The days of a month are one item. A number of a day never falls, and what nobody has told is
missing, so responses may come again. The newest item also has the unique visitors of 14 days, as
they were told last, and the last of these days. Nothing here sums unique visitors: one who came on
two days is one visitor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, TypeAlias

from chalicelib.counting import keys
from chalicelib.storage.items import Item, Value, number, text
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Put
from chalicelib.units import Seconds, to_milliseconds

Days: TypeAlias = dict[str, dict[str, int]]
"""The known numbers of days by their names; a day is written yyyy-mm-dd."""

VIEWS, CLONES = "views", "clones"
NAMES = {VIEWS: (VIEWS, "visitors"), CLONES: (CLONES, "cloners")}
"""The names of GitHub's `count` and `uniques` of a day, by the response that has them."""
NUMBERS = tuple(name for names in NAMES.values() for name in names)
END = keys.TRAFFIC + "~"
UNLIMITED = 100_000
MONTH = len("yyyy-mm")


@dataclass(frozen=True, slots=True)
class Traffic:
    """GitHub's response about views or clones: the `uniques` of all days, and the days.

    A day has its count and its unique visitors or cloners.
    """

    kind: str
    uniques: int
    days: Mapping[str, tuple[int, int]]

    def until(self, today: str) -> str:
        """Return the last day; GitHub leaves out days without traffic, and so all of them."""
        return max(self.days, default=today)


def prepare(table: Table, badge_id: str, told: Sequence[Traffic], now: Seconds) -> Iterator[Put]:
    """Return the writes of the months that responses change, and of the newest month.

    They must be one transaction with the summary, which was read before. Raises `StorageError`.
    """
    today = f"{datetime.fromtimestamp(now, UTC):%Y-%m-%d}"
    newest = _read_newest(table, badge_id)
    until, visitors = text(newest, "until"), number(newest, "visitors")
    for one in told:
        if one.kind == VIEWS and one.until(today) >= until:
            until, visitors = one.until(today), one.uniques
    days = {day for one in told for day in one.days}
    last = text(newest, "SK").removeprefix(keys.TRAFFIC)
    months = sorted({day[:MONTH] for day in (*days, until, last) if day})
    for month in months:
        key = keys.traffic(badge_id, month)
        merged = _merge(decode(table.get(key) or {}), told, month)
        item = key.item(days=merged, at=to_milliseconds(now))
        total: Item = {"visitors": visitors, "until": until}
        yield Put(item | total if until and month == months[-1] else item)


def _merge(days: Days, told: Sequence[Traffic], month: str) -> dict[str, Value]:
    """Return the days of a month, each number as high as it was ever told."""
    for one in told:
        for day, numbers in one.days.items():
            if day.startswith(month):
                known = days.setdefault(day, {})
                for name, given in zip(NAMES[one.kind], numbers, strict=True):
                    known[name] = max(known.get(name, 0), given)
    return {day: {**known} for day, known in days.items()}


def decode(month: Item) -> Days:
    """Return the days of an item. Raises `TypeError`."""
    days = month.get("days", {})
    if not isinstance(days, dict):
        raise TypeError(f"days is {days!r}, expected a map")
    decoded: Days = {}
    for day, numbers in days.items():
        if not isinstance(numbers, dict) or not {*numbers} <= {*NUMBERS}:
            raise TypeError(f"{day} is {numbers!r}, expected a map of {', '.join(NUMBERS)}")
        decoded[day] = {name: number(numbers, name) for name in numbers}
    return decoded


def read_days(table: Table, badge_id: str, first: date, last: date) -> Days:
    """Return the days that GitHub's numbers have, of a stored badge. Raises `StorageError`."""
    months = table.query(
        keys.partition(badge_id),
        first=keys.TRAFFIC + f"{first}"[:MONTH],
        last=keys.TRAFFIC + f"{last}"[:MONTH],
        limit=UNLIMITED,
    )
    days = sorted(pair for month in months for pair in decode(month).items())
    return {day: numbers for day, numbers in days if f"{first}" <= day <= f"{last}"}


def read_visitors(table: Table, badge_id: str) -> tuple[int, date | None]:
    """Return the unique visitors of the last 14 days that GitHub told, and the last of these days.

    The day is None if nobody told them. Raises `StorageError`.
    """
    newest = _read_newest(table, badge_id)
    until = text(newest, "until")
    return number(newest, "visitors"), date.fromisoformat(until) if until else None


def read_clones(table: Table, badge_id: str) -> tuple[int, date | None]:
    """Return all clones that are stored, and the newest day that has some, or None.

    Raises `StorageError`.
    """
    days = read_days(table, badge_id, date.min, date.max)
    clones = {day: numbers[CLONES] for day, numbers in days.items() if CLONES in numbers}
    return sum(clones.values()), date.fromisoformat(max(clones)) if clones else None


def to_json(days: Days) -> list[dict[str, Any]]:
    """Return the days as JSON: {"day", "views", "visitors", "clones", "cloners"}, or null."""
    return [{"day": day, **{name: days[day].get(name) for name in NUMBERS}} for day in days]


def _read_newest(table: Table, badge_id: str) -> Item:
    found = table.query(
        keys.partition(badge_id), first=keys.TRAFFIC, last=END, limit=1, descending=True
    )
    return found[0] if found else {}
