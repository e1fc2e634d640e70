"""Metrics as a test reads them."""

from __future__ import annotations

from collections.abc import Iterable

from vumi.metrics.counters import Family, render


def parse(text: str) -> dict[str, float]:
    """Return each sample of a scrape by its name and labels."""
    lines = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}


def samples(families: Iterable[Family]) -> dict[str, float]:
    """Return each sample of families by its name and labels."""
    return parse(render(families))
