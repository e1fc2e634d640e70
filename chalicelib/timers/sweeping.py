"""The sweep: once a minute, what is due within five minutes goes on its way to the queue.

It asks the index for what has become due since the last sweep looked, and for what is overdue. What
was missed, by a sweep that did not come or an index that lagged, is overdue a minute later, and
so found. How much lies further ahead makes no difference.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from chalicelib import telemetry
from chalicelib.concurrency import Each
from chalicelib.ports import (
    MAX_DUE,
    ConditionFailed,
    Due,
    Key,
    Message,
    Queue,
    Table,
    Update,
    attribute,
    number,
)
from chalicelib.timers.event import PARTITION, MalformedError, Status, batches, checked, message

AHEAD_SECONDS = 300
OVERDUE_SECONDS = 60
"""An event that is still active so long after its time has lost its message, or its worker."""
RESCUE_SECONDS = 300
"""How long an overdue event that was sent once more is left alone."""
SLICE_SECONDS = 120
"""Twice what lies between two sweeps, so that as a rule there is one."""
GROUP = 100
"""Events in one message to the distribution."""
PAGE = 1_000
CURSOR = Key("TIMER", "SWEEP")
"""The item that keeps, as `swept`, up to which time events are on their way."""


@dataclass(frozen=True, slots=True)
class Swept:
    """How many events a sweep sent on their way, and how many of them were overdue."""

    sent: int
    overdue: int


def sweep(table: Table, distribution: Queue, now: int, each: Each = map) -> Swept:
    """Send what is due soon on its way. Raises `StorageError`; the next sweep then goes on there.

    `each` works through the overdue ones.
    """
    swept = number(table.get(CURSOR) or {}, "swept")
    late = min(swept, now - OVERDUE_SECONDS * 1000)
    ahead = 0
    for first, last in _slices(swept, now):
        for batch in batches(Status.ACTIVE):
            ahead += _send(between(table, batch, first, last), distribution)
        _move(table, last)
    overdue = 0
    for batch in batches(Status.ACTIVE):
        overdue += _send(_rescued(table, batch, late, now, each), distribution)
    if overdue:
        telemetry.event(logging.WARNING, "overdue events were sent once more", events=overdue)
    telemetry.count(events_swept=ahead, events_overdue=overdue)
    return Swept(ahead + overdue, overdue)


def _slices(swept: int, now: int) -> Iterator[tuple[int, int]]:
    """From where the last sweep came to up to the horizon: what was missed, then slice by slice.

    So a sweep that is cut short, be there ever so many events, leaves less to the next.
    """
    first, horizon = swept + 1, now + AHEAD_SECONDS * 1000
    while first <= horizon:
        last = min(max(now, first - 1 + SLICE_SECONDS * 1000), horizon)
        yield first, last
        first = last + 1


def between(table: Table, batch: str, first: int = 0, last: int = MAX_DUE) -> Iterator[Due]:
    """What has its `due` from first to last, in its order; all of a batch if nothing is said."""
    after: Due | None = None
    while page := table.query_due(batch, first=first, last=last, after=after, limit=PAGE):
        yield from page
        after = page[-1]


def _rescued(table: Table, batch: str, last: int, now: int, each: Each) -> Iterator[Due]:
    """Overdue events, each moved behind what is looked for, so that it is not sent every minute."""
    for group in _groups(list(between(table, batch, last=last))):
        moved = each(lambda due: _moved(table, batch, due, now), group)
        yield from (due for due, was_moved in zip(group, moved, strict=True) if was_moved)


def _moved(table: Table, batch: str, due: Due, now: int) -> bool:
    """Whether it was still there to be moved."""
    update = Update(
        due.key,
        values={"due": now + RESCUE_SECONDS * 1000},
        condition=attribute("batch").eq(batch) & attribute("due").eq(due.due),
    )
    try:
        table.write(update)
    except ConditionFailed:
        return False
    return True


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


def _move(table: Table, horizon: int) -> None:
    """The cursor never goes back, for a sweep may be late or come twice."""
    later = attribute("swept").not_exists() | attribute("swept").lt(horizon)
    try:
        table.write(Update(CURSOR, values={"swept": horizon}, condition=later))
    except ConditionFailed:
        return


def distribute(body: object, queue: Queue, now: int) -> int:
    """Put each event of a message on the queue, delayed until it is due; returns how many.

    Raises `MalformedError` and `StorageError`.
    """
    messages = [
        Message(message(event_id), max(0, due - now) / 1000) for event_id, due in _group(body)
    ]
    queue.send_all(messages)
    return len(messages)


def _group(body: object) -> Sequence[tuple[str, int]]:
    try:
        given = json.loads(body)["events"]  # type: ignore[arg-type]
        return [(checked(event_id, str), checked(due, int)) for event_id, due in given]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise MalformedError(f'expected {{"events": [[id, due]]}}: {error!r}') from error
