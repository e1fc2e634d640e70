"""The metrics of the file: its queues, the lag of its folds, and its size."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from chalicelib.storage.errors import StorageError
from chalicelib.units import Seconds
from vumi.metrics import catalogue
from vumi.metrics.families import Family
from vumi.storage import queue as queues
from vumi.storage import table
from vumi.storage.database import Database
from vumi.storage.queue import DEAD_LETTERS
from vumi.storage.read_only import WAL, beside


@dataclass(frozen=True, slots=True)
class StorageMetrics:
    """The metrics of a file, which a scrape reads outside of commits, on a connection for reading.

    `queue_names` are the queues that have metrics without a message too.
    """

    database: Database
    path: Path
    queue_names: Sequence[str]
    clock: Callable[[], Seconds]

    def families(self) -> Iterator[Family]:
        """Yield the metrics; without those inside the file if it can't be read."""
        try:
            inside = [*self._queues(), self._fold_lag()]
        except StorageError:
            inside = []
        sound = bool(inside) and not self.database.is_corrupt
        yield Family.of(catalogue.STORAGE_UP, int(sound))
        yield from inside
        yield Family.of(catalogue.FILE_BYTES, _size(self.path))
        yield Family.of(catalogue.WAL_BYTES, _size(beside(self.path, WAL)))
        disk = os.statvfs(self.path.parent)
        yield Family.of(catalogue.FREE_BYTES, disk.f_bavail * disk.f_frsize)

    def _queues(self) -> Iterator[Family]:
        now, found = self.clock(), queues.states(self.database)
        dead = {name for name in found if name.endswith(DEAD_LETTERS)}
        letters = {name.removesuffix(DEAD_LETTERS): found.pop(name).messages for name in dead}
        states = dict.fromkeys(self.queue_names, queues.QueueState(0, now, now)) | found
        numbers = {name: one.messages for name, one in states.items()}
        ages = {name: max(0.0, now - one.oldest_sent_at) for name, one in states.items()}
        overdue = {name: max(0.0, now - one.first_visible_at) for name, one in states.items()}
        yield Family.by_label(catalogue.QUEUE_MESSAGES, numbers)
        yield Family.by_label(catalogue.QUEUE_AGE, ages)
        yield Family.by_label(catalogue.QUEUE_OVERDUE, overdue)
        yield Family.by_label(catalogue.DEAD_LETTERS, dict.fromkeys(states, 0) | letters)

    def _fold_lag(self) -> Family:
        now = self.clock()
        due = table.first_due_marker(self.database, now)
        return Family.of(catalogue.FOLD_LAG, 0 if due is None else max(0.0, now - due))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
