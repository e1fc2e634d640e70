"""The result of a measurement or of a run, as a Markdown table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Report:
    """A table; `failure` says which count was wrong, and the figures are then void."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    failure: str = ""

    def __str__(self) -> str:
        notes = [f"- {note}" for note in self.notes]
        failure = [f"\nFAILED: {self.failure}"] if self.failure else []
        return "\n".join(
            [f"## {self.title}\n", *_table(self.head, self.rows), "", *notes, *failure]
        )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Format a table: the first column is text, the others are right-aligned figures."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return [_line(row, widths) for row in (head, rule, *rows)]


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [row[0].ljust(widths[0])]
    cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
    return f"| {' | '.join(cells)} |"
