"""The delivery of changes, as Lambda does it between the table's stream and its consumers.

`archive_changes` is the consumer of journals.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict
from functools import partial
from typing import TypeAlias

from chalicelib.storage.items import text
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
from vumi.storage.removals import Change, ChangeLog
from vumi.workers.messages import IDLE_SECONDS

HandleChanges: TypeAlias = Callable[[Sequence[Change]], Collection[Change]]
"""A function that handles changes and returns those to deliver again."""

MAX_BATCH_CHANGES = 1_000
"""The maximum number of changes in a batch, as for `fold_views` on AWS."""
MIN_BATCH_CHANGES = 50
STEP_SECONDS = 0.01
"""The time that a batch of changes should take, because visitors wait for it."""
RETRY_SECONDS = 1.0
"""The wait before a failed batch is delivered again."""


class ChangeDelivery:
    """The delivery of the table's changes to a handler, in order, with a checkpoint.

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
        self._in_one_commit = in_one_commit
        self._log = ChangeLog(database, consumer)
        self._handle = handle
        self._sort = sort
        self._stopwatch = stopwatch
        self._batch_changes = MIN_BATCH_CHANGES

    def step(self) -> Seconds:
        """Deliver one batch; return the time that may pass until the next.

        All changes from the lowest failed one on are delivered again.
        """
        began = self._stopwatch()
        changes = self._log.read(self._batch_changes)
        if not changes:
            return IDLE_SECONDS
        rest = self._in_one_commit(partial(self._deliver, changes))
        if len(changes) == self._batch_changes:
            self._adapt(self._stopwatch() - began)
        return rest

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
            self._log.checkpoint(done[-1])
        return RETRY_SECONDS if failed else 0.0


def archive_changes(changes: Sequence[Change], resources: ArchiveResources) -> list[Change]:
    """Archive removed entries of journals; return the changes to deliver again.

    Raises `StorageError`.
    """
    removals, malformed = parse_records(changes, _entry_removal, log_malformed_record)
    archive_malformed([asdict(change) for change in malformed], resources)
    failed = set(archive_entries([removal for _, removal in removals], resources))
    return [change for change, removal in removals if removal in failed]


def _entry_removal(change: Change) -> EntryRemoval:
    return EntryRemoval.of(change.item, change.sequence, change.removed_at)
