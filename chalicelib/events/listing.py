"""The pages of the events of a status, in the order of the index `due`."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from heapq import merge
from itertools import islice

from chalicelib.events.event import ID, PARTITION, SHARDS, Event, Status, batches, key
from chalicelib.http.errors import BadRequestError
from chalicelib.storage.items import Due
from chalicelib.storage.ports import MAX_DUE, Table
from chalicelib.units import Milliseconds

PAGE = 50
SHARD_NAMES = frozenset(map(str, range(SHARDS)))


@dataclass(frozen=True, slots=True)
class Page:
    """Some events and the cursor of the next page, empty at the end."""

    events: list[Event]
    cursor: str


def read(table: Table, status: Status, cursor: str = "") -> Page:
    """Read a page of the events of a status. Raises `BadRequestError` and `StorageError`.

    Each shard is in order, and so is their merge. The cursor has the position in each shard.
    """
    names = batches(status)
    places = _places(cursor, status)
    ordered = merge(
        *(_from(table, name, places.get(shard), shard) for shard, name in enumerate(names))
    )
    found = list(islice(ordered, PAGE))
    for due, shard in found:
        places[shard] = due
    events = map(Event.of, table.get_all([due.key for due, _ in found]))
    kept = [event for event in events if event.status is status]
    return Page(kept, _cursor(places, status) if len(found) == PAGE else "")


def _from(table: Table, batch: str, after: Due | None, shard: int) -> Iterator[tuple[Due, int]]:
    """Return the first events of a shard after a position: no page needs more than `PAGE`."""
    return ((due, shard) for due in table.query_due(batch, after=after, limit=PAGE))


def _cursor(places: Mapping[int, Due], status: Status) -> str:
    positions = {
        str(shard): [place.due, place.key.pk.removeprefix(PARTITION)]
        for shard, place in places.items()
    }
    return base64.urlsafe_b64encode(json.dumps([status, positions]).encode()).decode().rstrip("=")


def _places(cursor: str, status: Status) -> dict[int, Due]:
    if not cursor:
        return {}
    try:
        of, positions = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        places = {_shard(shard): _place(*place) for shard, place in positions.items()}
    except (AttributeError, TypeError, ValueError, RecursionError):
        of, places = "", {}
    if of != status:
        raise BadRequestError(f"cursor: give the one of the page of {status} before")
    return places


def _shard(given: str) -> int:
    if given not in SHARD_NAMES:
        raise ValueError(given)
    return int(given)


def _place(due: Milliseconds, event_id: str) -> Due:
    if type(due) is not int or not 0 <= due <= MAX_DUE or ID.fullmatch(event_id) is None:
        raise ValueError(f"{due!r}, {event_id!r}")
    return Due(due, key(event_id))
