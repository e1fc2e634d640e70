"""Numbers with their nouns, for messages."""

from __future__ import annotations


def plural(number: int, noun: str) -> str:
    """Return a number with its noun, like `1 badge` or `1,000 badges`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
