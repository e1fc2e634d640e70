"""Looks into the machine's file while it runs, to know of each view when its put was done.

A view is acknowledged with its message, and the message is deleted once the view is put. Messages
have growing ids. So whatever was acknowledged before one look is put once a later look finds no
message with an id of that time. In the same way two looks with one and the same last removal tell
that nothing was removed between them.
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

from chaos.history import History, Operation, Still
from local.database import FILE
from local.engine import VIEWS_QUEUE
from local.queue import DEAD_LETTERS

LOOK_SECONDS = 0.03
LOOK = """
SELECT
    coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'messages'), 0),
    coalesce((SELECT min(id) FROM messages WHERE queue IN (?, ?)), 9e18),
    coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'changes'), 0),
    (SELECT count(*) FROM changes WHERE sequence >
        (SELECT sequence FROM checkpoints WHERE consumer = 'fold_views')),
    (SELECT count(*) FROM items WHERE ttl IS NOT NULL),
    (SELECT count(*) FROM messages WHERE queue = ?)
"""
"""One statement, so all of it is of one moment."""


class Look(NamedTuple):
    """What the file held at a moment between `begun` and `ended`.

    `sent` is the last message ever, `waiting` the first that is not done, `removed` the last
    removal ever; `unfolded` removals wait for the fold, `live` views for their removal.
    """

    begun: float
    ended: float
    sent: int
    waiting: float
    removed: int
    unfolded: int
    live: int
    dead: int

    @property
    def all_put(self) -> bool:
        """Whether every view that was acknowledged is stored."""
        return self.waiting > self.sent

    @property
    def all_folded(self) -> bool:
        """Whether every view that was acknowledged is in a count."""
        return self.all_put and not self.live and not self.unfolded


def look(folder: Path) -> Look:
    """Look once. Raises `sqlite3.Error` where the file can't be read just now."""
    begun = time.monotonic()
    dead = VIEWS_QUEUE + DEAD_LETTERS
    with closing(sqlite3.connect(f"file:{folder / FILE}?mode=ro", uri=True)) as file:
        row = file.execute(LOOK, (VIEWS_QUEUE, dead, dead)).fetchone()
    return Look(begun, time.monotonic(), *row)


class Witness:
    """A thread that looks again and again."""

    def __init__(self, folder: Path) -> None:
        self.looks: list[Look] = []
        self._folder = folder
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="witness")
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


def annotated(operations: Iterable[Operation], looks: Sequence[Look]) -> History:
    """The history of what was seen from outside, with what was seen from inside."""
    puts = _puts(looks)
    begun = [look.begun for look in looks]
    return History(
        tuple(_with_put(operation, begun, puts) for operation in operations), _stills(looks)
    )


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


def _stills(looks: Sequence[Look]) -> tuple[Still, ...]:
    """From one look with everything folded to the last one that knows of no other removal."""
    stills: list[Still] = []
    first: Look | None = None
    for one in looks:
        if first is not None and one.removed == first.removed:
            stills[-1] = Still(first.ended, one.begun)
            continue
        first = None if one.unfolded else one
        if first is not None:
            stills.append(Still(first.ended, first.ended))
    return tuple(still for still in stills if still.begun < still.ended)
