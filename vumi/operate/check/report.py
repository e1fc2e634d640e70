"""The findings of a check, one per line of its report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import islice

EXAMPLES = 5
"""Findings of a kind that are reported one by one; the rest are only counted."""


class FindingKind(StrEnum):
    """The severity of a finding."""

    OK = "ok"
    WRONG = "wrong"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of a check."""

    kind: FindingKind
    message: str


ok = partial(Finding, FindingKind.OK)
"""Returns a finding about something that is correct."""
wrong = partial(Finding, FindingKind.WRONG)
"""Returns a finding about something that is wrong."""
note = partial(Finding, FindingKind.NOTE)
"""Returns a finding that the operator should know, although nothing is wrong."""


def all_wrong(messages: Iterable[str]) -> Iterator[Finding]:
    """Yield the first findings of a kind, then the number of the others."""
    left = iter(messages)
    yield from map(wrong, islice(left, EXAMPLES))
    if more := sum(1 for _ in left):
        yield wrong(f"and {more:,} more of this kind")
