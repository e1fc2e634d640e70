"""A probe of the machine's file that finds out when each view was put.

The machine puts a view in the commit that answers its visitor. If that fails, it stores a message
in the file, and deletes it once the view is put. Message ids grow. So if a later look finds no
message with an id of an earlier look, all views acknowledged before the earlier look are put.
"""

from __future__ import annotations

import sqlite3
import time
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from chalicelib.ulids import milliseconds
from chaos.checker.history import Operation
from chaos.repeating import Repeating
from vumi.engine import VIEWS_QUEUE
from vumi.storage.database import FILE
from vumi.storage.queue import DEAD_LETTERS

LOOK_SECONDS = 0.03
LOOK = """
SELECT
    coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'messages'), 0),
    coalesce((SELECT min(id) FROM messages WHERE queue IN (?, ?)), 9e18)
"""
"""One statement, so it reads one state of the file."""
UNFOLDED = """
SELECT
    (SELECT count(*) FROM viewed JOIN views ON badge = number
        LEFT JOIN items AS summary ON summary.pk = viewed.pk AND summary.sk = 'VIEWS'
        WHERE milliseconds(substr(views.sk, 6))
            > coalesce(json_extract(summary.attributes, '$.watermark'), 0)),
    (SELECT count(*) FROM views) + (SELECT count(*) FROM items WHERE sk IN ('WINDOW', 'SEEN'))
"""


class Look(NamedTuple):
    """The messages in the file at a moment between `begun` and `ended`.

    `sent` is the id of the last message so far, `waiting` the id of the first undone message.
    """

    begun: float
    ended: float
    sent: int
    waiting: float

    @property
    def all_put(self) -> bool:
        """Whether every acknowledged view is stored."""
        return self.waiting > self.sent


class Left(NamedTuple):
    """The number of views after the watermarks, and of items that TTL has not removed yet."""

    live: int
    expiring: int


def look(folder: Path) -> Look:
    """Look once. Raises `sqlite3.Error` if the file can't be read now."""
    begun = time.monotonic()
    with closing(_open(folder)) as file:
        row = file.execute(LOOK, (VIEWS_QUEUE, VIEWS_QUEUE + DEAD_LETTERS)).fetchone()
    return Look(begun, time.monotonic(), *row)


def count_left(folder: Path) -> Left:
    """Return the numbers of items left to fold and to remove. Raises `sqlite3.Error`."""
    with closing(_open(folder)) as file:
        file.create_function("milliseconds", 1, milliseconds)
        return Left(*file.execute(UNFOLDED).fetchone())


def _open(folder: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{folder / FILE}?mode=ro", uri=True)


class DbProbe(Repeating):
    """A thread that looks repeatedly."""

    def __init__(self, folder: Path) -> None:
        self.looks: list[Look] = []
        self._folder = folder
        super().__init__(self._look, lambda: LOOK_SECONDS)

    def _look(self) -> None:
        with suppress(sqlite3.Error):  # the machine is being killed or started
            self.looks.append(look(self._folder))


def annotated(operations: Iterable[Operation], looks: Sequence[Look]) -> list[Operation]:
    """Return the recorded operations with the time of their put, as the looks show it."""
    puts = _puts(looks)
    begun = [look.begun for look in looks]
    return [_with_put(operation, begun, puts) for operation in operations]


def _with_put(operation: Operation, begun: Sequence[float], puts: Sequence[float]) -> Operation:
    """Add the time of its put to an acknowledged hit: that of the first look after its answer."""
    if not operation.acknowledged:
        return operation
    place = bisect_left(begun, operation.completed)
    return replace(operation, put_by=puts[place]) if place < len(puts) else operation


def _puts(looks: Sequence[Look]) -> list[float]:
    """Return, for each look, when a later look saw all its sent messages put; stop if none did."""
    puts: list[float] = []
    later = 0
    for place, one in enumerate(looks):
        later = max(later, place)
        while later < len(looks) and looks[later].waiting <= one.sent:
            later += 1
        if later == len(looks):
            break
        puts.append(looks[later].ended)
    return puts
