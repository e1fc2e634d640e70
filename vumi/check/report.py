"""What a check of the file finds, as its lines say it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

EXAMPLES = 5
"""How many of a kind are told one by one; the rest is only counted."""


class Kind(StrEnum):
    """How a thing is: as it must be, not so, or worth to know."""

    OK = "ok"
    WRONG = "wrong"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of a check."""

    kind: Kind
    what: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}"


def ok(what: str) -> Finding:
    """A thing is as it must be."""
    return Finding(Kind.OK, what)


def wrong(what: str) -> Finding:
    """A thing is not as it must be."""
    return Finding(Kind.WRONG, what)


def note(what: str) -> Finding:
    """A thing is worth to know, and nothing is wrong with it."""
    return Finding(Kind.NOTE, what)


def all_wrong(messages: Iterable[str]) -> Iterator[Finding]:
    """The first of many of a kind, and how many more there are."""
    left = iter(messages)
    yield from map(wrong, islice(left, EXAMPLES))
    if more := sum(1 for _ in left):
        yield wrong(f"and {more:,} more of this kind")
