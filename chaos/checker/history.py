"""The history of a run: every operation, its beginning and end, and its outcome.

Times are seconds by a monotonic clock that all processes of a machine share; in the simulator they
are steps. A history is a file of JSON lines, so that people can study a failure.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, replace
from enum import StrEnum
from pathlib import Path

Span = tuple[str, str]
"""The first and the last day (UTC) on which a view may count, as yyyy-mm-dd."""
LAST_DAY = "9999-12-31"
ANY_DAY = "", LAST_DAY


class Kind(StrEnum):
    """A kind of operation: HIT counts a view and shows the count before it, READ counts nothing.

    FINAL is a read at rest: after the last view was put, or after all views were folded. RESET is
    an owner's request that ends a life of the badge, and is repeated until it is answered.
    """

    HIT = "hit"
    READ = "read"
    FINAL = "final"
    RESET = "reset"


class Outcome(StrEnum):
    """The outcome: ACKNOWLEDGED was done, REFUSED was surely not done, UNKNOWN may be done."""

    ACKNOWLEDGED = "acknowledged"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Operation:
    """One request for a badge.

    `shown` is the count in its answer, None if the answer had none. At the time `put_by` its view
    was certainly put; None if no look saw that. `days` has the views of each day in a history,
    whose sum is `shown`. `span` has the days on which the view of a hit may count.
    """

    badge_id: str
    kind: Kind
    invoked: float
    completed: float
    outcome: Outcome
    shown: int | None = None
    put_by: float | None = None
    note: str = ""
    days: Mapping[str, int] | None = None
    span: Span = ANY_DAY

    def to_json(self) -> str:
        return json.dumps(astuple(self))

    @classmethod
    def from_json(cls, line: str) -> Operation:
        badge_id, kind, invoked, completed, outcome, *more, days, span = json.loads(line)
        one = cls(badge_id, Kind(kind), invoked, completed, Outcome(outcome), *more)
        return replace(one, days=days, span=tuple(span))

    @property
    def attempted(self) -> bool:
        """Whether the operation may have counted a view."""
        return self.kind is Kind.HIT and self.outcome is not Outcome.REFUSED

    @property
    def acknowledged(self) -> bool:
        """Whether the operation has certainly counted a view."""
        return self.kind is Kind.HIT and self.outcome is Outcome.ACKNOWLEDGED

    def __str__(self) -> str:
        count = "no count" if self.shown is None else str(self.shown)
        put = "" if self.put_by is None else f", put by {self.put_by:.4f}"
        note = f" ({self.note})" if self.note else ""
        days = "" if self.days is None else f", days {dict(self.days)}"
        return (
            f"{self.invoked:.4f} to {self.completed:.4f}: {self.kind} {self.badge_id!r}"
            f" {self.outcome}, shown {count}{put}{days}{note}"
        )


class Recorder:
    """A writer of operations to a file as they end; threads may share it."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w")
        self._lock = threading.Lock()

    def add(self, operation: Operation) -> None:
        line = operation.to_json() + "\n"
        with self._lock:
            self._file.write(line)

    def close(self) -> None:
        self._file.close()


def write(path: Path, operations: Iterable[Operation]) -> None:
    """Write a history to a file, in the order in which its operations ended."""
    path.write_text("".join(f"{operation.to_json()}\n" for operation in in_order(operations)))


def read(path: Path) -> list[Operation]:
    """Return the operations in a file, which `write` or a recorder wrote."""
    with path.open() as file:
        return list(map(Operation.from_json, file))


def in_order(operations: Iterable[Operation]) -> list[Operation]:
    """Sort operations by the times at which they ended."""
    return sorted(operations, key=lambda operation: (operation.completed, operation.invoked))
