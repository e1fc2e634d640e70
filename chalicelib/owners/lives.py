"""The lives of ids.

A reset, a delete, and a rename onto an id end one life and begin the next. The end of a life sets
the watermark and `reset` of the id to one time, later than every view that was taken before. So
a view belongs to the life of its id at the time in its ULID, whenever its message is delivered.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from chalicelib.counting import badge_count, keys
from chalicelib.counting.summary import Summary, hour_of, read
from chalicelib.owners.finding import taken_error
from chalicelib.storage.conditions import attr
from chalicelib.storage.items import Key, Value, key_of, number, text
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import MAX_TRANSACTION_WRITES, ConditionFailedError, Delete
from chalicelib.ulids import TIMES, latest, milliseconds
from chalicelib.units import Milliseconds, Seconds, to_milliseconds

APART_MILLISECONDS = 1_000
"""A life ends at least this long after the earlier watermark, so that two ends differ."""
MAX_MONTHS = 12 * 1_000


def begin_life(
    table: Table, summary: Summary, now: Seconds, aliases: Iterable[str] = ()
) -> dict[str, Value]:
    """Return the attributes that begin a life, later than all views of the life before it.

    Views are stored under the id and its aliases. Raises `StorageError`.
    """
    clock = to_milliseconds(now) + badge_count.AHEAD_MILLISECONDS
    newest = max(_read_newest(table, name) for name in (summary.badge_id, *aliases))
    at = max(clock, summary.watermark + APART_MILLISECONDS, newest + 1)
    return {"count": 0, "watermark": at, "reset": at}


def _read_newest(table: Table, badge_id: str) -> Milliseconds:
    """Return the time of the newest view under an id, or 0."""
    page = table.query(
        keys.partition(badge_id),
        first=keys.VIEW,
        last=keys.VIEW + latest(TIMES[-1]),
        limit=1,
        attributes=("SK",),
        descending=True,
    )
    return milliseconds(text(page[0], "SK").removeprefix(keys.VIEW)) if page else 0


def delete_days(table: Table, summary: Summary) -> None:
    """Delete the days of earlier lives of an id, but none that a fold has begun again meanwhile.

    Raises `StorageError`; calling it again deletes the others.
    """
    earlier = attr("reset").missing() | (attr("reset") < summary.reset)
    while True:
        days = table.query(
            keys.partition(summary.badge_id),
            first=keys.DAY,
            last=keys.DAY + hour_of(summary.reset).day,
            limit=MAX_TRANSACTION_WRITES,
            attributes=("PK", "SK", "reset"),
        )
        old = [Delete(key_of(day), earlier) for day in days if number(day, "reset") < summary.reset]
        if not old:
            return
        with suppress(ConditionFailedError):
            table.write(*old)


def keys_of_traffic(table: Table, badge_id: str) -> list[Key]:
    """Return the keys of GitHub's numbers, the oldest month first. Raises `StorageError`."""
    months = table.query(
        keys.partition(badge_id),
        first=keys.TRAFFIC,
        last=keys.VIEW,
        limit=MAX_MONTHS,
        attributes=("PK", "SK"),
    )
    return [key_of(month) for month in months]


def read_unviewed(table: Table, badge_id: str) -> Summary:
    """Return the summary of an id without views and GitHub's numbers, of no other badge.

    Raises `TakenError`.
    """
    summary = read(table, badge_id)
    is_set = summary.alias or summary.count or summary.base
    if is_set or badge_count.read(table, badge_id).live or keys_of_traffic(table, badge_id):
        raise taken_error(badge_id)
    return summary
