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

from chalicelib.aws.retry import Retry
from chalicelib.concurrency import MapParallel
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import ConditionFailed
from chalicelib.views import keys
from chalicelib.views.summary import Summary
from vumi.admin.counts_file import Counted

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
    map_parallel: MapParallel
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
        return list(self.map_parallel(self._import, rows))

    def _import(self, row: Counted) -> Result:
        """Look and write until nobody else has written in between."""
        while True:
            summary, is_decided = self._badge(row.badge_id)
            outcome = self._outcome(summary.base == row.count, is_decided)
            result = Result(row, outcome, summary.base)
            if self.dry_run or outcome in {Outcome.SAME, Outcome.KEPT}:
                return result
            try:
                self.table.write(summary.update(self.clock(), {"base": row.count}))
            except ConditionFailed:
                continue
            return result

    def _badge(self, name: str) -> tuple[Summary, bool]:
        """Return a badge by any of its names, and whether somebody decided on its base.

        A base of 0 that was set is a decision, and no base is not.
        """
        item = self.table.get(keys.summary(name)) or {}
        summary = Summary.of(name, item)
        if summary.alias:
            return self._badge(summary.alias)
        return summary, "base" in item or "reset" in item

    def _outcome(self, is_same: bool, is_decided: bool) -> Outcome:  # noqa: FBT001  two facts
        if is_same:
            return Outcome.SAME
        if not is_decided:
            return Outcome.IMPORTED
        return Outcome.REPLACED if self.replace else Outcome.KEPT
