"""The events of a status, a page at a time, in the order of their time."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from typing import Any

from chalicelib.ports import Due, Key, Table
from chalicelib.timers.event import PARTITION, SORT, Event, Status, batches

PAGE = 50


class BadCursorError(ValueError):
    """What was given is no cursor of this list."""


@dataclass(frozen=True, slots=True)
class Page:
    """Some events, and where the next ones are; an empty cursor is the end."""

    events: list[Event]
    cursor: str


def read(table: Table, status: Status, cursor: str = "") -> Page:
    """A page of the events of a status. Raises `BadCursorError` and `StorageError`.

    Each shard is in order, so the merged ones are; the cursor has the place in each.
    """
    names = batches(status)
    places = _places(cursor, len(names))
    ordered = merge(
        *(_from(table, name, places.get(shard), shard) for shard, name in enumerate(names))
    )
    found = list(islice(ordered, PAGE))
    for due, shard in found:
        places[shard] = due
    events = [Event.of(item) for due, _ in found if (item := table.get(due.key))]
    kept = [event for event in events if event.status is status]
    return Page(kept, _cursor(places) if len(found) == PAGE else "")


def _from(table: Table, batch: str, after: Due | None, shard: int) -> Iterator[tuple[Due, int]]:
    while page := table.query_due(batch, after=after, limit=PAGE):
        for due in page:
            yield due, shard
        after = page[-1]


def _cursor(places: Mapping[int, Due]) -> str:
    told = {
        str(shard): [place.due, place.key.pk.removeprefix(PARTITION)]
        for shard, place in places.items()
    }
    return base64.urlsafe_b64encode(json.dumps(told).encode()).decode().rstrip("=")


def _places(cursor: str, shards: int) -> dict[int, Due]:
    if not cursor:
        return {}
    try:
        told: Any = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        places = {int(shard): _place(*place) for shard, place in told.items()}
    except (AttributeError, TypeError, ValueError, RecursionError):
        raise BadCursorError("cursor: give the one that the page before answered") from None
    if not places.keys() <= set(range(shards)):
        raise BadCursorError("cursor: give the one that the page before answered")
    return places


def _place(due: int, event_id: str) -> Due:
    if type(due) is not int or type(event_id) is not str or not event_id:
        raise TypeError(f"{due!r}, {event_id!r}")
    return Due(due, Key(PARTITION + event_id, SORT))
