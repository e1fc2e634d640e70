"""The import of counts from another counter, so that badges continue from them.

A count becomes the base of its badge, to which views are added. An import sets the base and never
adds to it, so it is safe to repeat. It does not overwrite a decision unless `replace` is set: a
different base, or a reset by the owner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial

from chalicelib.concurrency import MapParallel
from chalicelib.counting import keys
from chalicelib.counting.summary import Summary
from chalicelib.storage.items import text
from chalicelib.storage.ports import Table
from chalicelib.storage.retry import Retry
from chalicelib.storage.writes import ConditionFailedError
from chalicelib.units import Seconds
from vumi.operate.admin.counts_file import ImportedCount

BATCH_BADGES = 100
PATIENCE = Retry(attempts=12, base=0.2, cap=10.0, budget=60.0)
"""Longer than the table's own retries, because no visitor waits for an import."""


class ImportOutcome(Enum):
    """The outcome of a line; its value is printed for the operator."""

    IMPORTED = "imported"
    SAME = "unchanged"
    REPLACED = "replaced"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class ImportResult:
    """A line, its outcome, and the earlier base of its badge."""

    row: ImportedCount
    outcome: ImportOutcome
    before: int

    def to_json(self) -> dict[str, object]:
        """Return the line of JSON of the badge."""
        bases = {"before": self.before, "count": self.row.count}
        return {"id": self.row.badge_id, "outcome": self.outcome.value, **bases}


@dataclass(frozen=True, slots=True)
class Import:
    """The job that imports counts; with `dry_run` it writes nothing."""

    table: Table
    map_parallel: MapParallel
    clock: Callable[[], Seconds]
    replace: bool = False
    dry_run: bool = False
    patience: Retry = PATIENCE

    def run(self, rows: Sequence[ImportedCount]) -> Iterator[ImportResult]:
        """Import all lines in order. Raises `StorageError`; the lines before are imported then."""
        for start in range(0, len(rows), BATCH_BADGES):
            chunk = rows[start : start + BATCH_BADGES]
            yield from self.patience.call(partial(self._import_batch, chunk))

    def _import_batch(self, rows: Sequence[ImportedCount]) -> list[ImportResult]:
        return list(self.map_parallel(self._import, rows))

    def _import(self, row: ImportedCount) -> ImportResult:
        """Read and write a badge until no other write comes in between."""
        while True:
            summary, is_decided = self._read_badge(row.badge_id)
            outcome = self._choose_outcome(summary.base == row.count, is_decided)
            result = ImportResult(row, outcome, summary.base)
            if self.dry_run or outcome in {ImportOutcome.SAME, ImportOutcome.KEPT}:
                return result
            try:
                self.table.write(summary.update(self.clock(), {"base": row.count}))
            except ConditionFailedError:
                continue
            return result

    def _read_badge(self, name: str) -> tuple[Summary, bool]:
        """Return a badge by any of its names, and whether its base is a decision.

        A base of 0 that was set is a decision, and a missing base is not.
        """
        item = self.table.get(keys.summary(name)) or {}
        if alias := text(item, "alias"):
            name, item = alias, self.table.get(keys.summary(alias)) or {}
        return Summary.of(name, item), "base" in item or "reset" in item

    def _choose_outcome(self, is_same: bool, is_decided: bool) -> ImportOutcome:  # noqa: FBT001  two properties of a line
        if is_same:
            return ImportOutcome.SAME
        if not is_decided:
            return ImportOutcome.IMPORTED
        return ImportOutcome.REPLACED if self.replace else ImportOutcome.KEPT
