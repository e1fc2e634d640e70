"""The metrics of the file: its queues, the lag of its folds, and its size."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from chalicelib.counting import keys
from chalicelib.storage.errors import StorageError
from chalicelib.units import Seconds
from vumi.metrics.counters import Family
from vumi.storage import queue as queues
from vumi.storage.database import Database
from vumi.storage.file_format import WAL, beside
from vumi.storage.queue import DEAD_LETTERS
from vumi.workers.deliveries import FOLDS

MAX_LOOKED_AT = 10_000
"""Markers are removed in the order of their expiry, so the oldest is among the first."""
EXPIRED_MARKER = (
    "SELECT ttl FROM (SELECT sk, ttl FROM items WHERE ttl < ? ORDER BY ttl LIMIT ?)"
    " WHERE sk = ? LIMIT 1"
)
REMOVED_MARKER = (
    "SELECT attributes FROM (SELECT sk, attributes FROM changes WHERE sequence >"
    " (SELECT sequence FROM checkpoints WHERE consumer = ?) ORDER BY sequence LIMIT ?)"
    " WHERE sk = ? LIMIT 1"
)
"""A removal that the consumer of folds has not handled."""


def read(
    database: Database, queue_names: Sequence[str], clock: Callable[[], Seconds]
) -> Iterator[Family]:
    """Yield the metrics; without those inside the file if it can't be read.

    They are read outside of commits, on a connection for reading. `queue_names` are the queues that
    have metrics without a message too.
    """
    try:
        inside = [*_queues(database, queue_names, clock()), _fold_lag(database, clock())]
    except StorageError:
        inside = []
    sound = bool(inside) and not database.corrupt
    meaning = "1 if the file can be read and is not corrupt, else 0."
    yield Family.of("vumi_storage_up", meaning, int(sound))
    yield from inside
    path = database.path
    yield Family.of("vumi_file_size_bytes", "Size of the file.", _size(path))
    wal = _size(beside(path, WAL))
    yield Family.of("vumi_wal_size_bytes", "Size of the write-ahead log of the file.", wal)
    meaning = "Free space on the disk of the file for this user."
    yield Family.of("vumi_disk_free_bytes", meaning, shutil.disk_usage(path.parent).free)


def _queues(database: Database, names: Sequence[str], now: Seconds) -> Iterator[Family]:
    found = queues.states(database)
    dead = {name for name in found if name.endswith(DEAD_LETTERS)}
    letters = {name.removesuffix(DEAD_LETTERS): found.pop(name).messages for name in dead}
    states = dict.fromkeys(names, queues.QueueState(0, now, now)) | found
    numbers = {name: one.messages for name, one in states.items()}
    ages = {name: max(0.0, now - one.oldest_sent_at) for name, one in states.items()}
    overdue = {name: max(0.0, now - one.first_visible_at) for name, one in states.items()}
    meaning = "Messages that wait or are being handled."
    yield Family.by_label("vumi_queue_messages", meaning, "queue", numbers)
    meaning = "Age of the oldest message since it was sent; 0 without a message."
    yield Family.by_label("vumi_queue_oldest_message_age_seconds", meaning, "queue", ages)
    meaning = "Time for which a message could have been received; 0 without such a message."
    yield Family.by_label("vumi_queue_overdue_seconds", meaning, "queue", overdue)
    letters = dict.fromkeys(states, 0) | letters
    yield Family.by_label("vumi_dead_letters", "Messages that failed too often.", "queue", letters)


def _fold_lag(database: Database, now: Seconds) -> Family:
    expired = database.read(EXPIRED_MARKER, (now, MAX_LOOKED_AT, keys.WINDOW))
    removed = database.read(REMOVED_MARKER, (FOLDS, MAX_LOOKED_AT, keys.WINDOW))
    due = [*(ttl for (ttl,) in expired), *(json.loads(one)["ttl"] for (one,) in removed), now]
    meaning = "Age of the oldest marker that is due and not folded; 0 if there is none."
    return Family.of("vumi_fold_lag_seconds", meaning, now - min(due))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
