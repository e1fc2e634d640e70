"""What was seen of a run: every operation, when it began and ended, and what came of it.

Times are seconds by a clock that only goes forward, one for all processes of a machine; in the
simulator they are steps. A history is a file of JSON lines, so that a failure can be studied.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple


class Kind(StrEnum):
    """HIT counts a view and shows the count before it, READ counts nothing.

    FINAL is a read once all is quiet: after the last view was put, or after all were folded.
    """

    HIT = "hit"
    READ = "read"
    FINAL = "final"


class Outcome(StrEnum):
    """ACKNOWLEDGED was answered and done, REFUSED was surely not done, UNKNOWN may have been."""

    ACKNOWLEDGED = "acknowledged"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Operation:
    """One request for a badge.

    `shown` is the count in its answer, None where that had none. `put_by` is a time at which the
    put of its view was certainly done, None where that was never seen.
    """

    badge_id: str
    kind: Kind
    invoked: float
    completed: float
    outcome: Outcome
    shown: int | None = None
    put_by: float | None = None
    note: str = ""

    def to_json(self) -> str:
        return json.dumps(
            [
                self.badge_id,
                self.kind,
                round(self.invoked, 6),
                round(self.completed, 6),
                self.outcome,
                self.shown,
                self.put_by,
                self.note,
            ]
        )

    @classmethod
    def from_json(cls, line: str) -> Operation:
        badge_id, kind, invoked, completed, outcome, shown, put_by, note = json.loads(line)
        return cls(badge_id, Kind(kind), invoked, completed, Outcome(outcome), shown, put_by, note)

    @property
    def attempted(self) -> bool:
        """Whether it may have counted a view."""
        return self.kind is Kind.HIT and self.outcome is not Outcome.REFUSED

    @property
    def acknowledged(self) -> bool:
        """Whether it has certainly counted a view."""
        return self.kind is Kind.HIT and self.outcome is Outcome.ACKNOWLEDGED

    def __str__(self) -> str:
        count = "no count" if self.shown is None else str(self.shown)
        put = "" if self.put_by is None else f", put by {self.put_by:.4f}"
        note = f" ({self.note})" if self.note else ""
        return (
            f"{self.invoked:.4f} to {self.completed:.4f}: {self.kind} {self.badge_id!r}"
            f" {self.outcome}, shown {count}{put}{note}"
        )


class Still(NamedTuple):
    """A time within which no view was between its removal and its fold: all are in the sum."""

    begun: float
    ended: float


@dataclass(frozen=True, slots=True)
class History:
    """All operations of a run in any order, and the times at which nothing was being folded."""

    operations: tuple[Operation, ...]
    stills: tuple[Still, ...] = ()


class Recorder:
    """Writes operations to a file as they end; threads may share it."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w")
        self._lock = threading.Lock()

    def add(self, operation: Operation) -> None:
        line = operation.to_json() + "\n"
        with self._lock:
            self._file.write(line)

    def close(self) -> None:
        self._file.close()


def operations_in(path: Path) -> Iterator[Operation]:
    """The operations that a recorder wrote."""
    with path.open() as file:
        yield from map(Operation.from_json, file)


def write(path: Path, history: History) -> None:
    """Keep a whole history: the stills in the first line, then the operations by their ends."""
    lines: list[Any] = [json.dumps(history.stills)]
    lines += [op.to_json() for op in in_order(history.operations)]
    path.write_text("\n".join(lines) + "\n")


def read(path: Path) -> History:
    """A history that was kept."""
    with path.open() as file:
        stills = tuple(Still(*still) for still in json.loads(next(file)))
        return History(tuple(map(Operation.from_json, file)), stills)


def in_order(operations: Iterable[Operation]) -> list[Operation]:
    """By the times at which they ended."""
    return sorted(operations, key=lambda operation: (operation.completed, operation.invoked))
