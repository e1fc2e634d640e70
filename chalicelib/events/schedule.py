"""The functions that accept, read, list and cancel events.

An event is stored first, then enqueued if it is due soon. It is accepted once it is stored: the
sweep finds an event that is missing in the queue.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Mapping, Sequence
from heapq import merge
from itertools import islice

from chalicelib import telemetry
from chalicelib.events.event import (
    ID,
    IS_ACTIVE,
    PARTITION,
    SHARDS,
    Claims,
    Event,
    Status,
    batches,
    key,
    message,
)
from chalicelib.http.errors import BadRequestError, ClientError, NotFoundError
from chalicelib.storage.conditions import attr, unchanged
from chalicelib.storage.errors import StorageError
from chalicelib.storage.items import Due
from chalicelib.storage.ports import MAX_DUE, Message, Queue, Table
from chalicelib.storage.writes import ConditionFailedError, Put, Update
from chalicelib.units import Milliseconds, to_milliseconds

DIRECT_SECONDS = 420
"""An event that is due within this time is enqueued immediately, and others by the sweep.

It is two minutes more than the sweep looks ahead, because the index is not consistent: it may lack
an event for two minutes before the event is late.
"""
PAGE = 50
SHARD_NAMES = [*map(str, range(SHARDS))]


class EventError(ClientError):
    """A request about an event can't be done; the message says why."""


class UnknownEventError(NotFoundError, EventError):
    """There is no such event, or it was done so long ago that it is deleted."""


class IdTakenError(EventError):
    """Another request has made an event of this id."""

    status = 409
    code = "id_taken"


class TooLateError(EventError):
    """The event can't be cancelled any more."""

    status = 409
    code = "too_late"


def accept(event: Event, table: Table, queue: Queue, now: Milliseconds) -> tuple[Event, bool]:
    """Store an event, and enqueue it if it is due soon; the same request again changes nothing.

    Returns the stored event, and whether this request created it. Raises `IdTakenError` and
    `StorageError`.
    """
    stored, is_new = _store(event, table)
    if stored.status is Status.ACTIVE:
        enqueue_soon([stored], queue, now)
    return stored, is_new


def _store(event: Event, table: Table) -> tuple[Event, bool]:
    new = Event.of(event.new_item())
    try:
        table.write(Put(event.new_item(), condition=attr("SK").missing()))
    except ConditionFailedError as failed:
        [item] = failed.items.values()
        if item is None:
            raise
        there = Event.of(item)
        if there.request != event.request:
            raise IdTakenError(
                f"there is an event {event.event_id} already, and it is another"
            ) from None
        # If the answer to an earlier try was lost, that try stored this event.
        return there, there == new
    return new, True


def enqueue_soon(events: Sequence[Event], queue: Queue, now: Milliseconds) -> None:
    """Enqueue the events that are due soon; if the queue fails, the sweep enqueues them."""
    soon = [event for event in events if event.next_at <= now + to_milliseconds(DIRECT_SECONDS)]
    messages = [Message(message(one.event_id), max(0, one.next_at - now) / 1000) for one in soon]
    try:
        if messages:
            queue.send_all(messages)
    except StorageError as error:
        telemetry.event(logging.WARNING, "events_left_to_sweep", reason=str(error))


def read(table: Table, event_id: str) -> Event:
    """Read an event. Raises `UnknownEventError` and `StorageError`."""
    item = table.get(key(event_id)) if ID.fullmatch(event_id) else None
    if item is None:
        raise UnknownEventError(f"there is no event {event_id[:64]}, or it was done long ago")
    return Event.of(item)


def read_page(table: Table, status: Status, cursor: str = "") -> tuple[list[Event], str]:
    """Read a page of the events of a status, in the order of the index `due`.

    Returns the events and the cursor of the next page, which is empty at the end. Each shard is in
    order, and so is their merge. The cursor has the position in each shard. Raises
    `BadRequestError` and `StorageError`.
    """
    places = _places(cursor, status)
    shards = [
        [(due, shard) for due in table.query_due(name, after=places.get(shard), limit=PAGE)]
        for shard, name in enumerate(batches(status))
    ]
    found = list(islice(merge(*shards), PAGE))
    for due, shard in found:
        places[shard] = due
    events = map(Event.of, table.get_all([due.key for due, _ in found]))
    kept = [event for event in events if event.status is status]
    return kept, _cursor(places, status) if len(found) == PAGE else ""


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
        places = {SHARD_NAMES.index(shard): _place(*place) for shard, place in positions.items()}
    except (AttributeError, TypeError, ValueError, RecursionError):
        of, places = "", {}
    if of != status:
        raise BadRequestError(f"cursor: give the one of the page of {status} before")
    return places


def _place(due: Milliseconds, event_id: str) -> Due:
    if type(due) is not int or not 0 <= due <= MAX_DUE or ID.fullmatch(event_id) is None:
        raise ValueError(f"{due!r}, {event_id!r}")
    return Due(due, key(event_id))


def cancel(table: Table, claims: Claims, event_id: str, now: Milliseconds) -> Event:
    """Cancel an event; cancelling it again changes nothing.

    If a worker claims the event after it was read, the write fails and the event is read again.
    Raises `TooLateError` if the event was delivered or is being delivered, `UnknownEventError` and
    `StorageError`.
    """
    while True:
        event = read(table, event_id)
        if event.status is Status.CANCELLED:
            return event
        if event.status is not Status.ACTIVE:
            raise TooLateError(f"the event is done: {event.status}")
        if claims.held_until(event, now) > now:
            raise TooLateError("its delivery has begun; if that fails, it can be cancelled then")
        try:
            table.write(
                Update(
                    key(event_id),
                    values=event.end(Status.CANCELLED, now),
                    remove=("claim", "lease"),
                    condition=IS_ACTIVE & unchanged("tries", event.tries),
                )
            )
        except ConditionFailedError:
            continue
        return read(table, event_id)
