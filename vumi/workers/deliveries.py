"""The delivery of messages and of changes, as Lambda does it from SQS and from the table's stream.

`archive_changes` is the consumer of journals.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TypeAlias

from chalicelib.storage.items import Item, text
from chalicelib.storage.messages import log_malformed_record, parse_records
from chalicelib.units import Seconds
from chalicelib.wallets.archive import (
    ArchiveResources,
    EntryRemoval,
    archive_entries,
    archive_malformed,
)
from vumi.storage.commits import InOneCommit
from vumi.storage.database import Database
from vumi.storage.queue import SqliteQueue
from vumi.storage.table import item_of

HandleMessages: TypeAlias = Callable[[Mapping[int, str]], Collection[int]]
"""A function that handles bodies by the ids of messages, and returns the ids to deliver again."""

BATCH_MESSAGES = 100
"""Messages in a batch, as many as `put_views` gets on AWS."""
LINGER_SECONDS = 0.05
"""The time that a message may wait for others to share its batch."""
IDLE_SECONDS = 5.0
"""The longest rest of a loop, because another program may send a message and wake no loop."""
FOLDS = "fold_views"
"""The consumer of the removals of windows' markers."""
MAX_BATCH_CHANGES = 1_000
"""The maximum number of changes in a batch, as for `fold_views` on AWS."""
MIN_BATCH_CHANGES = 50
STEP_SECONDS = 0.01
"""The time that a batch of changes should take, because visitors wait for it."""
RETRY_SECONDS = 1.0
"""The wait before a failed batch is delivered again."""


def deliver_messages(
    queue: SqliteQueue, handle: HandleMessages, in_one_commit: InOneCommit
) -> Seconds:
    """Deliver one batch of a queue's messages; return the time that may pass until the next.

    The writes of the handler and the deletion are one commit. So a handled message is never
    delivered again. A failed message is delivered again after its visibility timeout.
    """
    messages = queue.receive(BATCH_MESSAGES)

    def deliver() -> None:
        failed = handle({message.id: message.body for message in messages})
        queue.delete(message for message in messages if message.id not in failed)

    if messages:
        in_one_commit(deliver)
    full = len(messages) == BATCH_MESSAGES
    return 0.0 if full else queue.seconds_until_visible(LINGER_SECONDS, IDLE_SECONDS)


@dataclass(frozen=True, slots=True)
class Change:
    """A removal by TTL, as it is stored in the change log."""

    sequence: int
    removed_at: Seconds
    item: Item


HandleChanges: TypeAlias = Callable[[Sequence[Change]], Collection[Change]]
"""A function that handles changes and returns those to deliver again."""


class ChangeDelivery:
    """The delivery of the change log to a handler, in order, with a checkpoint of its consumer.

    Changes of items whose sort keys do not begin with `sort` are skipped, as the filter of a
    Lambda event source does. The writes of the handler and the checkpoint are one commit of
    `in_one_commit`, if it is given. `stopwatch` measures a batch, and the next batch
    has as many changes as fit into `STEP_SECONDS`, because changes of one badge cost far less than
    others.
    """

    def __init__(  # noqa: PLR0913  the parts of a consumer
        self,
        database: Database,
        consumer: str,
        handle: HandleChanges,
        *,
        sort: str = "",
        in_one_commit: InOneCommit = lambda function: function(),
        stopwatch: Callable[[], Seconds] = time.perf_counter,
    ) -> None:
        self._database, self._consumer, self._handle, self._sort = database, consumer, handle, sort
        self._in_one_commit = in_one_commit
        self._stopwatch = stopwatch
        self._batch_changes = MIN_BATCH_CHANGES
        database.write(
            lambda connection: connection.execute(
                "INSERT OR IGNORE INTO checkpoints (consumer, sequence) VALUES (?, 0)", (consumer,)
            )
        )

    def step(self) -> Seconds:
        """Deliver one batch; return the time that may pass until the next.

        All changes from the lowest failed one on are delivered again.
        """
        began = self._stopwatch()
        changes = self._read()
        if not changes:
            return IDLE_SECONDS
        rest = self._in_one_commit(partial(self._deliver, changes))
        if len(changes) == self._batch_changes:
            self._adapt(self._stopwatch() - began)
        return rest

    def _read(self) -> list[Change]:
        rows = self._database.read(
            "SELECT sequence, removed_at, pk, sk, attributes FROM changes WHERE sequence >"
            " (SELECT sequence FROM checkpoints WHERE consumer = ?)"
            " ORDER BY sequence LIMIT ?",
            (self._consumer, self._batch_changes),
        )
        return [Change(sequence, at, item_of(*row)) for sequence, at, *row in rows]

    def _adapt(self, seconds: Seconds) -> None:
        """Choose the size of the next batch by the time of one, at most twice its size."""
        fitting = int(self._batch_changes * STEP_SECONDS / max(seconds, STEP_SECONDS / 2))
        self._batch_changes = min(max(fitting, MIN_BATCH_CHANGES), MAX_BATCH_CHANGES)

    def _deliver(self, changes: Sequence[Change]) -> Seconds:
        chosen = [one for one in changes if text(one.item, "SK").startswith(self._sort)]
        failed = [change.sequence for change in self._handle(chosen)] if chosen else []
        lowest = min(failed, default=changes[-1].sequence + 1)
        done = [change.sequence for change in changes if change.sequence < lowest]
        if done:
            self._database.write(partial(self._checkpoint, done[-1]))
        return RETRY_SECONDS if failed else 0.0

    def _checkpoint(self, sequence: int, connection: sqlite3.Connection) -> None:
        """Move the checkpoint to a change; delete the changes that all consumers have handled."""
        connection.execute(
            "UPDATE checkpoints SET sequence = ? WHERE consumer = ?", (sequence, self._consumer)
        )
        connection.execute(
            "DELETE FROM changes WHERE sequence <= (SELECT min(sequence) FROM checkpoints)"
        )


def archive_changes(changes: Sequence[Change], resources: ArchiveResources) -> list[Change]:
    """Archive removed entries of journals; return the changes to deliver again.

    Raises `StorageError`.
    """
    removals, malformed = parse_records(
        changes,
        lambda one: EntryRemoval.of(one.item, one.sequence, one.removed_at),
        log_malformed_record,
    )
    archive_malformed([asdict(change) for change in malformed], resources)
    failed = set(archive_entries([removal for _, removal in removals], resources))
    return [change for change, removal in removals if removal in failed]
