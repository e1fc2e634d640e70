"""The loops that stand in for AWS: SQS to `put_views`, TTL, the stream to its consumers.

Each is a step that does what is due and returns how many seconds may pass until the next; the
threads that repeat the steps are in `vumi.workers.loops`.
"""

from __future__ import annotations

import logging
import math
import sqlite3
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, Protocol, TypeAlias, TypeVar

from chalicelib import telemetry
from chalicelib.storage.errors import StorageError
from chalicelib.storage.items import Key, number, text
from chalicelib.views import keys
from chalicelib.views.view import milliseconds, ulid_in
from chalicelib.wallets.wallet import ENTRY
from vumi.storage.database import Database
from vumi.storage.queue import Message, SqliteQueue
from vumi.storage.table import Change, ChangeLog, any_expired, fetch, remove_expired
from vumi.workers import events

Result = TypeVar("Result")
Handler: TypeAlias = Callable[[dict[str, Any], Any], Any]

MESSAGES_AT_ONCE = 100
"""Messages in a batch, as many as `put_views` is given on AWS."""
CHANGES_AT_ONCE = 1_000
"""Stream records in a batch at most, as many as `fold_views` is given on AWS."""
LEAST_CHANGES_AT_ONCE = 50
STEP_SECONDS = 0.01
"""What a batch of stream records should take: a visitor waits behind it."""
REMOVALS_AT_ONCE = 500
"""Removals in one transaction, so that no visitor waits long behind one."""
LINGER_SECONDS = 0.05
"""How long a message may wait for others to share its batch."""
IDLE_SECONDS = 5.0
"""How long a loop rests at most: another program may have sent something, and woken nobody."""
EXPIRY_SECONDS = 1.0
"""How often to look for what has expired."""
SWEEP_SECONDS = 60.0
RETRY_SECONDS = 1.0
"""How long to wait before a batch that failed is delivered again."""


class Together(Protocol):
    """Calls a function whose writes share one commit; raises `StorageError`."""

    def __call__(self, function: Callable[[], Result], /) -> Result: ...


class DeliveryAtOnce:
    """Delivers to a handler what a function sends, in the commit that would have sent it.

    Such a message is never written: its work is on the disk when it would have been itself. Those
    that the handler fails at are written, as delivered once.
    """

    def __init__(self, queue: SqliteQueue, handler: Handler, clock: Callable[[], float]) -> None:
        self._queue = queue
        self._handler = handler
        self._clock = clock

    def __call__(self, function: Callable[[], Result]) -> Result:
        """Call a function within a commit, then deliver what it sent."""
        with self._queue.holding() as sent:
            result = function()
        now = self._clock()
        messages = [Message(place, one.body, now, 1, now) for place, one in enumerate(sent)]
        if failed := self._failed(messages):
            self._queue.keep(failed)
        return result

    def _failed(self, messages: Sequence[Message]) -> list[Message]:
        """Deliver messages. Raises `StorageError` where the commit can't be."""
        if not messages:
            return []
        try:
            failed = _undone(self._handler, self._queue, messages)
        except StorageError:
            raise
        except Exception:  # noqa: BLE001  the requests have their answers all the same
            telemetry.event(logging.ERROR, "a handler failed", queue=self._queue.name)
            return list(messages)
        return [message for message in messages if str(message.id) in failed]


def _undone(handler: Handler, queue: SqliteQueue, messages: Sequence[Message]) -> set[str]:
    """Deliver a batch; the identifiers of the messages that the handler is not done with."""
    answer = handler(events.queue_event(queue.name, messages), None)
    return events.failed_identifiers(answer, [str(message.id) for message in messages])


class MessageDelivery:
    """Delivers the messages of a queue to a handler, and deletes those it is done with.

    The writes of the handler and the deletion are one commit of `together`. So a message that was
    handled never comes again.
    """

    def __init__(
        self,
        queue: SqliteQueue,
        handler: Handler,
        clock: Callable[[], float],
        together: Together,
        at_once: int = MESSAGES_AT_ONCE,
    ) -> None:
        self._together = together
        self._queue = queue
        self._handler = handler
        self._clock = clock
        self._at_once = at_once

    def step(self) -> float:
        """Deliver one batch. A message that failed comes again after its visibility timeout."""
        messages = self._queue.receive(self._at_once)
        if not messages:
            return rest(self._queue, self._clock)
        self._together(partial(self._deliver, messages))
        return 0.0 if len(messages) == self._at_once else rest(self._queue, self._clock)

    def _deliver(self, messages: Sequence[Message]) -> None:
        failed = _undone(self._handler, self._queue, messages)
        self._queue.delete(message for message in messages if str(message.id) not in failed)


def rest(queue: SqliteQueue, clock: Callable[[], float], least: float = LINGER_SECONDS) -> float:
    """How many seconds may pass until a queue has a message to deliver, unless one is sent."""
    visible = queue.next_visible()
    if visible is None:
        return IDLE_SECONDS
    return min(IDLE_SECONDS, max(least, visible - clock()))


class Expiry:
    """Removes the items whose time to live is over, as DynamoDB's TTL does.

    A view stays until it is in the count of its badge, however late its fold comes, and what shows
    that it is counted stays while the queue of views has a message of it. The change log gets the
    removals that a consumer of the stream handles.
    """

    def __init__(
        self,
        database: Database,
        queue: SqliteQueue,
        clock: Callable[[], float],
        on_removal: Callable[[], None],
    ) -> None:
        self._database = database
        self._queue = queue
        self._clock = clock
        self._on_removal = on_removal

    def step(self) -> float:
        """Remove one batch."""
        now = self._clock()
        if not any_expired(self._database, now):
            return EXPIRY_SECONDS
        removed = self._database.in_one_commit(partial(self._remove, now))
        if not removed:
            return EXPIRY_SECONDS
        self._on_removal()
        return 0.0

    def _remove(self, now: float) -> int:
        return self._database.write(
            lambda connection: remove_expired(
                connection, now, REMOVALS_AT_ONCE, self._may_go(connection), _is_consumed
            )
        )

    def _may_go(self, connection: sqlite3.Connection) -> Callable[[Key], bool]:
        """Return whether an expired item may go, as the transaction sees it."""
        waiting = set(map(ulid_in, self._queue.bodies()))

        @cache
        def watermark(partition: str) -> int:
            return number(fetch(connection, Key(partition, keys.SUMMARY)) or {}, "watermark")

        def may_go(key: Key) -> bool:
            if key.sk == keys.SEEN:
                return key.pk.removeprefix(f"{keys.SEEN}#") not in waiting
            if not key.sk.startswith(keys.VIEW):
                return True
            ulid = key.sk.removeprefix(keys.VIEW)
            return milliseconds(ulid) <= watermark(key.pk) and ulid not in waiting

        return may_go


def _is_consumed(key: Key) -> bool:
    """Whether a consumer of the stream handles the removal of an item."""
    return key.sk == keys.WINDOW or key.sk.startswith(ENTRY)


class Sweeping:
    """Calls a handler once a minute, as the schedule of a Lambda function does."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    def step(self) -> float:
        self._handler(events.scheduled_event(), None)
        return SWEEP_SECONDS


class StreamDelivery:
    """Delivers the changes of the table to a handler, in order, and moves its checkpoint.

    Changes of items whose sort keys do not begin with `sort` are passed by, as the filter of a
    Lambda event source does it. The writes of the handler and the checkpoint are one commit of
    `together`, if it is given. `stopwatch`, in seconds, says how long a batch takes: the next one
    is as large as fits into `STEP_SECONDS`, for those of one badge cost far less than others.
    """

    def __init__(  # noqa: PLR0913  what a consumer of a stream is made of
        self,
        database: Database,
        consumer: str,
        handler: Handler,
        *,
        sort: str = "",
        together: Together = lambda function: function(),
        stopwatch: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._together = together
        self._label = database.stream_label
        self._log = ChangeLog(database, consumer)
        self._handler = handler
        self._sort = sort
        self._stopwatch = stopwatch
        self._at_once = LEAST_CHANGES_AT_ONCE

    def step(self) -> float:
        """Deliver one batch; from the lowest failed sequence number on it comes again."""
        began = self._stopwatch()
        changes = self._log.read(self._at_once)
        if not changes:
            return IDLE_SECONDS
        rest = self._together(partial(self._step, changes))
        if len(changes) == self._at_once:
            self._pace(self._stopwatch() - began)
        return rest

    def _pace(self, took: float) -> None:
        """Choose how large the next batch is, after how long one took: no more than twice that."""
        fitting = int(self._at_once * STEP_SECONDS / max(took, STEP_SECONDS / 2))
        self._at_once = min(max(fitting, LEAST_CHANGES_AT_ONCE), CHANGES_AT_ONCE)

    def _step(self, changes: Sequence[Change]) -> float:
        failed = self._deliver(
            [one for one in changes if text(one.item, "SK").startswith(self._sort)]
        )
        lowest = min(map(int, failed), default=math.inf)
        done = [change.sequence for change in changes if change.sequence < lowest]
        if done:
            self._log.checkpoint(done[-1])
        return RETRY_SECONDS if failed else 0.0

    def _deliver(self, changes: Sequence[Change]) -> set[str]:
        """The sequence numbers of the changes that failed."""
        if not changes:
            return set()
        answer = self._handler(events.stream_event(self._label, changes), None)
        return events.failed_identifiers(answer, [str(change.sequence) for change in changes])
