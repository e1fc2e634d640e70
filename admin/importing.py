"""Importing counts that were counted elsewhere, so that a badge goes on where it was.

A count becomes the badge's base, to which the views counted here are added. It is set, never added
to, so a file can be imported again, or from the start after it was cut short: what is right already
stays as it is. What somebody else decided is kept unless told: a base that differs, or a badge that
its owner let begin anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial

from admin.counts_file import Counted
from chalicelib.concurrency import Each
from chalicelib.ports import ConditionFailed, Table
from chalicelib.retry import Retry
from chalicelib.views.summary import Summary, read

AT_ONCE = 100
PATIENCE = Retry(attempts=12, base=0.2, cap=10.0, budget=60.0)
"""Beyond what the table's own retries bear: an import has time, a visitor has none."""


class Outcome(Enum):
    """What became of a line; the value says so to the operator."""

    IMPORTED = "imported"
    SAME = "there already"
    REPLACED = "replaced"
    KEPT = "kept as they are"


@dataclass(frozen=True, slots=True)
class Result:
    """A line, what became of it, and the base that its badge had before."""

    row: Counted
    outcome: Outcome
    before: int


@dataclass(frozen=True, slots=True)
class Import:
    """Where counts go, and how; `dry_run` says what would become of them, and writes nothing."""

    table: Table
    each: Each
    clock: Callable[[], float]
    replace: bool = False
    dry_run: bool = False
    patience: Retry = PATIENCE

    def run(self, rows: Sequence[Counted]) -> Iterator[Result]:
        """Import all lines, in their order. Raises `StorageError`; what came before it stays."""
        for start in range(0, len(rows), AT_ONCE):
            chunk = rows[start : start + AT_ONCE]
            yield from self.patience.call(partial(self._import_all, chunk))

    def _import_all(self, rows: Sequence[Counted]) -> list[Result]:
        return list(self.each(self._import, rows))

    def _import(self, row: Counted) -> Result:
        """Look and write until nobody else has written in between."""
        while True:
            summary = self._summary(row.badge_id)
            outcome = self._outcome(summary, row.count)
            result = Result(row, outcome, summary.base)
            if self.dry_run or outcome in {Outcome.SAME, Outcome.KEPT}:
                return result
            try:
                self.table.write(summary.update(self.clock(), {"base": row.count}))
            except ConditionFailed:
                continue
            return result

    def _summary(self, name: str) -> Summary:
        """Return the summary of a badge by any of its names."""
        summary = read(self.table, name)
        return self._summary(summary.alias) if summary.alias else summary

    def _outcome(self, summary: Summary, count: int) -> Outcome:
        if summary.base == count:
            return Outcome.SAME
        if not summary.base and not summary.reset:
            return Outcome.IMPORTED
        return Outcome.REPLACED if self.replace else Outcome.KEPT
