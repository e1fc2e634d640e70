"""Views of a badge, its items in a table, and its fold."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch
from zlib import crc32

from chalicelib.counting import badge_count, keys, storing
from chalicelib.counting.folding import BadgeFold
from chalicelib.counting.storing import Failures
from chalicelib.counting.view import Counting, View, Windows
from chalicelib.storage.items import Item, Value
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Put
from chalicelib.ulids import earliest
from chalicelib.units import Milliseconds, Seconds, WholeSeconds, to_milliseconds
from simulation.clocks import NOON

BADGE = "octocat"
WINDOWS = Windows()
"""Windows of 300 s, a grace of 600 s; young until 300 s, old from 900 s on."""
AT_NOON: Milliseconds = to_milliseconds(NOON)
HOUR: WholeSeconds = 3_600
DAY: WholeSeconds = 24 * HOUR


def ulid(at: Milliseconds = AT_NOON, place: int = 0, badge_id: str = BADGE) -> str:
    """Return the ULID of a view; two views of a badge at one time differ by `place`."""
    badge = crc32(badge_id.encode()) % 10**8
    return f"{earliest(at)[:10]}{badge:08}{place:08}"


def view(
    at: Milliseconds = AT_NOON,
    place: int = 0,
    badge_id: str = BADGE,
    *,
    first: bool = True,
    hot: bool = False,
) -> View:
    """Return a view at a time."""
    return View(badge_id, ulid(at, place, badge_id), first=first, hot=hot)


def put_views(table: Table, *times: Milliseconds, badge_id: str = BADGE) -> list[View]:
    """Put a view item for each time, as for young views."""
    views = [view(at, place, badge_id) for place, at in enumerate(times)]
    table.put_all([keys.view(badge_id, one.ulid).item(ttl=1) for one in views])
    return views


def put_summary(table: Table, badge_id: str = BADGE, **attributes: Value) -> None:
    """Put the summary of an id."""
    table.write(Put(keys.summary(badge_id).item(**attributes)))


def summary(table: Table, badge_id: str = BADGE) -> Item:
    """Return the summary of an id without its key."""
    item = table.get(keys.summary(badge_id)) or {}
    return {name: value for name, value in item.items() if name not in {"PK", "SK"}}


def days(table: Table, badge_id: str = BADGE) -> dict[str, Item]:
    """Return the finished days of a badge without their keys, by day."""
    items = table.query(keys.partition(badge_id), first=keys.DAY, last=keys.OWNER, limit=1_000)
    return {
        str(item["SK"]).removeprefix(keys.DAY): {
            name: value for name, value in item.items() if name not in {"PK", "SK"}
        }
        for item in items
        if item["SK"] != keys.OWNER
    }


def shown(table: Table, badge_id: str = BADGE) -> int:
    """Return the count that a badge shows."""
    return badge_count.read(table, badge_id).shown


def counting(table: Table, now: Seconds) -> Counting:
    """Return what counts views at a time, without webhooks."""
    return Counting(table, WINDOWS, lambda: now)


def store(table: Table, *views: View, now: Seconds = NOON) -> Failures:
    """Store views as `put_views` does."""
    return storing.store(counting(table, now), views)


def fold(table: Table, now: Seconds, badge_id: str = BADGE) -> int:
    """Fold all views of a badge that are older than the grace."""
    return BadgeFold(counting(table, now), badge_id).fold_all()


@contextmanager
def in_time_zone(name: str) -> Iterator[None]:
    """Set the time zone of the process."""
    with ExitStack() as stack:
        stack.callback(time.tzset)
        stack.enter_context(patch.dict(os.environ, TZ=name))
        time.tzset()
        yield
