"""The findings of a check, one per line of its report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
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

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


def ok(message: str) -> Finding:
    """Return a finding about something that is correct."""
    return Finding(FindingKind.OK, message)


def wrong(message: str) -> Finding:
    """Return a finding about something that is wrong."""
    return Finding(FindingKind.WRONG, message)


def note(message: str) -> Finding:
    """Return a finding that the operator should know, although nothing is wrong."""
    return Finding(FindingKind.NOTE, message)


def all_wrong(messages: Iterable[str]) -> Iterator[Finding]:
    """Yield the first findings of a kind, then the number of the others."""
    left = iter(messages)
    yield from map(wrong, islice(left, EXAMPLES))
    if more := sum(1 for _ in left):
        yield wrong(f"and {more:,} more of this kind")
