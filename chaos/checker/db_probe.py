"""Looks into the machine's file while it runs, to know of each view when its put was done.

A view is put in the commit that answers its visitor, or, where that failed, its message is in the
file and is deleted once the view is put. Messages have growing ids. So whatever was acknowledged
before one look is put once a later look finds no message with an id of that time.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from chalicelib.views.view import milliseconds
from chaos.checker.history import Operation
from vumi.engine import VIEWS_QUEUE
from vumi.storage.database import FILE
from vumi.storage.queue import DEAD_LETTERS

LOOK_SECONDS = 0.03
LOOK = """
SELECT
    coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'messages'), 0),
    coalesce((SELECT min(id) FROM messages WHERE queue IN (?, ?)), 9e18)
"""
"""One statement, so all of it is of one moment."""
UNFOLDED = """
SELECT
    (SELECT count(*) FROM items AS views
        LEFT JOIN items AS summary ON summary.pk = views.pk AND summary.sk = 'VIEWS'
        WHERE views.sk >= 'VIEW#' AND views.sk < 'VIEWS' AND milliseconds(substr(views.sk, 6))
            > coalesce(json_extract(summary.attributes, '$.watermark'), 0)),
    (SELECT count(*) FROM items WHERE sk IN ('WINDOW', 'SEEN') OR sk >= 'VIEW#' AND sk < 'VIEWS')
"""


class Look(NamedTuple):
    """What the file held at a moment between `begun` and `ended`.

    `sent` is the last message ever, `waiting` the first that is not done.
    """

    begun: float
    ended: float
    sent: int
    waiting: float

    @property
    def all_put(self) -> bool:
        """Whether every view that was acknowledged is stored."""
        return self.waiting > self.sent


class Left(NamedTuple):
    """How many views are after the watermarks, and how many items TTL has still to remove."""

    live: int
    expiring: int


def look(folder: Path) -> Look:
    """Look once. Raises `sqlite3.Error` where the file can't be read just now."""
    begun = time.monotonic()
    with closing(_opened(folder)) as file:
        row = file.execute(LOOK, (VIEWS_QUEUE, VIEWS_QUEUE + DEAD_LETTERS)).fetchone()
    return Look(begun, time.monotonic(), *row)


def left(folder: Path) -> Left:
    """Return what is left to fold and to remove. Raises `sqlite3.Error`."""
    with closing(_opened(folder)) as file:
        file.create_function("milliseconds", 1, milliseconds)
        return Left(*file.execute(UNFOLDED).fetchone())


def _opened(folder: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{folder / FILE}?mode=ro", uri=True)


class DbProbe:
    """A thread that looks again and again."""

    def __init__(self, folder: Path) -> None:
        self.looks: list[Look] = []
        self._folder = folder
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="probe")
        self._thread.start()

    def stop(self) -> None:
        """Look a last time."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(LOOK_SECONDS):
            try:
                self.looks.append(look(self._folder))
            except sqlite3.Error:  # the machine is just being killed, or started
                continue


def annotated(operations: Iterable[Operation], looks: Sequence[Look]) -> list[Operation]:
    """Return what was seen from outside, with what was seen from inside."""
    puts = _puts(looks)
    begun = [look.begun for look in looks]
    return [_with_put(operation, begun, puts) for operation in operations]


def _with_put(operation: Operation, begun: Sequence[float], puts: Sequence[float]) -> Operation:
    """The put of an acknowledged hit was done as that of the first look after its answer."""
    if not operation.acknowledged:
        return operation
    place = bisect_left(begun, operation.completed)
    return replace(operation, put_by=puts[place]) if place < len(puts) else operation


def _puts(looks: Sequence[Look]) -> list[float]:
    """For each look, until one has none: when all that it found sent was seen put."""
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
