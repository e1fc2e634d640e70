"""The sweep, which sends the events that are due within five minutes to the queue each minute.

It queries the index from its cursor on, and again for overdue events. If a sweep did not run, or
the index lagged, the events that it missed are overdue a minute later, and are found then. Later
events cost nothing. A cursor from a clock that was ahead is set back.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from chalicelib import telemetry
from chalicelib.concurrency import MapParallel
from chalicelib.events.event import PARTITION, Status, batches, checked, message
from chalicelib.storage.conditions import Condition, attr, unchanged
from chalicelib.storage.errors import StorageError
from chalicelib.storage.items import Due, Key, Value, number
from chalicelib.storage.messages import MalformedError
from chalicelib.storage.ports import MAX_DELAY_SECONDS, MAX_DUE, Message, Queue, Table
from chalicelib.storage.writes import ConditionFailedError, Update
from chalicelib.units import Milliseconds, to_milliseconds

if TYPE_CHECKING:
    from chalicelib.events.routes import EventResources

AHEAD_SECONDS = 300
OVERDUE_SECONDS = 60
"""An event that is still active this long after its time lost its message or its worker."""
RESCUE_SECONDS = 300
"""The time after which an overdue event that was sent again may be sent once more."""
SKEW_SECONDS = 60
"""The maximum lead of the cursor over a sweep's horizon, because the clocks of sweeps differ.

An event that was accepted since the last sweep, and is due before that, was enqueued immediately.
"""
SLICE_SECONDS = 120
"""Twice the time between two sweeps, so that a sweep usually has one slice."""
GROUP = 100
"""Events in one message to the distribution."""
PAGE = 1_000
CURSOR = Key("TIMER", "SWEEP")
"""The item with the cursor, `swept`: all events up to this time have been sent."""


SweptGroup: TypeAlias = tuple[tuple[str, int], ...]
"""The ids of events that a sweep sends together, each with its due time in milliseconds."""


def sweep_now(resources: EventResources) -> tuple[int, int]:
    """Call `sweep` with the resources and the time of a process."""
    now = to_milliseconds(resources.clock())
    return sweep(resources.table, resources.distribution_queue, now, resources.map_parallel)


def distribute_now(groups: Iterable[SweptGroup], resources: EventResources) -> list[SweptGroup]:
    """Call `distribute` with the queue and the time of a process."""
    return distribute(groups, resources.delivery_queue, to_milliseconds(resources.clock()))


def sweep(
    table: Table, distribution: Queue, now: Milliseconds, map_parallel: MapParallel = map
) -> tuple[int, int]:
    """Send the events that are due soon to the distribution.

    Returns the number of events, and how many of them were overdue. `map_parallel` moves those in
    the index. Raises `StorageError`; the next sweep goes on from the cursor.
    """
    swept = _cursor(table, now, map_parallel)
    late = min(swept, now - to_milliseconds(OVERDUE_SECONDS))
    ahead = 0
    for first, last in _slices(swept, now):
        for batch in batches(Status.ACTIVE):
            ahead += _send(between(table, batch, first, last), distribution)
        # Forward, never back, because a sweep may be late or run twice.
        later = attr("swept").missing() | (attr("swept") < last)
        _change(table, CURSOR, {"swept": last}, later)
    overdue = _rescue(table, distribution, late, now, map_parallel)
    if overdue:
        telemetry.event(logging.WARNING, "overdue_events_sent", events=overdue)
    telemetry.count(events_swept=ahead, events_overdue=overdue)
    return ahead + overdue, overdue


def _cursor(table: Table, now: Milliseconds, map_parallel: MapParallel) -> Milliseconds:
    """Read the cursor; set it back if it is from a clock that was ahead."""
    swept = number(table.get(CURSOR) or {}, "swept")
    horizon = now + to_milliseconds(AHEAD_SECONDS)
    if swept <= horizon + to_milliseconds(SKEW_SECONDS):
        return swept
    telemetry.event(logging.WARNING, "sweep_cursor_ahead", seconds=(swept - horizon) // 1000)

    def put_back(batch: str, due: Due) -> None:
        """Move an event to its own time again, if a rescue by the clock ahead moved it."""
        next_at = number(table.get(due.key) or {}, "next_at")
        if next_at < due.due:
            _move_in_index(table, batch, next_at, due)

    for batch in batches(Status.ACTIVE):
        for group in _groups(list(between(table, batch, horizon + 1, swept))):
            list(map_parallel(partial(put_back, batch), group))
    overdue = now - to_milliseconds(OVERDUE_SECONDS)
    _change(table, CURSOR, {"swept": overdue}, unchanged("swept", swept))
    return overdue


def _slices(swept: Milliseconds, now: Milliseconds) -> Iterator[tuple[Milliseconds, Milliseconds]]:
    """Yield the first and last times of slices, from the cursor to the horizon.

    The first slice has all missed events. The cursor moves after each slice, so an interrupted
    sweep leaves less to the next one.
    """
    first, horizon = swept + 1, now + to_milliseconds(AHEAD_SECONDS)
    while first <= horizon:
        last = min(max(now, first - 1 + to_milliseconds(SLICE_SECONDS)), horizon)
        yield first, last
        first = last + 1


def between(
    table: Table, batch: str, first: Milliseconds = 0, last: Milliseconds = MAX_DUE
) -> Iterator[Due]:
    """Yield the entries of a batch whose `due` is from first to last, in its order."""
    after: Due | None = None
    while True:
        page = table.query_due(batch, first=first, last=last, after=after, limit=PAGE)
        yield from page
        if len(page) < PAGE:
            return
        after = page[-1]


def _rescue(
    table: Table,
    distribution: Queue,
    last: Milliseconds,
    now: Milliseconds,
    map_parallel: MapParallel,
) -> int:
    """Send overdue events again, and move them in the index, so that they aren't sent every minute.

    An event is moved after it was sent, so the next sweep finds those that the queue refused.
    """
    sent = 0
    for batch in batches(Status.ACTIVE):
        move = partial(_move_in_index, table, batch, now + to_milliseconds(RESCUE_SECONDS))
        for group in _groups(list(between(table, batch, last=last))):
            sent += _send(group, distribution)
            list(map_parallel(move, group))
    return sent


def _move_in_index(table: Table, batch: str, time: Milliseconds, due: Due) -> None:
    """Move an event in the index, unless it has changed since it was found there."""
    there = (attr("batch") == batch) & (attr("due") == due.due)
    _change(table, due.key, {"due": time}, there)


def _change(table: Table, key: Key, values: Mapping[str, Value], condition: Condition) -> None:
    """Write values on a condition; if it does not hold, another process has written."""
    with suppress(ConditionFailedError):
        table.write(Update(key, values=values, condition=condition))


def _groups(found: Iterable[Due]) -> Iterator[list[Due]]:
    left = iter(found)
    while group := list(islice(left, GROUP)):
        yield group


def _send(found: Iterable[Due], distribution: Queue) -> int:
    sent = 0
    for group in _groups(found):
        events = [[one.key.pk.removeprefix(PARTITION), one.due] for one in group]
        distribution.send(json.dumps({"events": events}))
        sent += len(group)
    return sent


def distribute(groups: Iterable[SweptGroup], queue: Queue, now: Milliseconds) -> list[SweptGroup]:
    """Enqueue each event of the groups for its time; return the groups to deliver again.

    If the sweep's clock was ahead of this one, a message may be early, which does no harm.
    """
    failed = []
    for group in groups:
        waits = ((event_id, max(0, due - now) / 1000) for event_id, due in group)
        try:
            queue.send_all(
                [Message(message(one), min(wait, MAX_DELAY_SECONDS)) for one, wait in waits]
            )
        except StorageError as error:
            telemetry.event(logging.WARNING, "events_not_distributed", reason=str(error))
            failed.append(group)
    return failed


def group_in(body: object) -> SweptGroup:
    """Return the group that a message of a sweep carries. Raises `MalformedError`."""
    try:
        given = json.loads(body)["events"]  # type: ignore[arg-type]
        return tuple((checked(event_id, str), checked(due, int)) for event_id, due in given)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise MalformedError(f'expected {{"events": [[id, due]]}}: {error!r}') from error
