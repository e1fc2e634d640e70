"""Measurements on a machine that others use too: the sides take turns, and the median counts.

Other work on the machine then slows all sides alike, so the ratio of two medians stays valid.
"""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from statistics import median
from typing import TextIO, TypeVar

from chalicelib import telemetry
from chalicelib.api import ProcessResources
from chalicelib.aws import resources

Figure = TypeVar("Figure")
Side = TypeVar("Side", bound=Hashable)


def interleaved(
    rounds: int, sides: Mapping[Side, Callable[[], Figure]]
) -> dict[Side, list[Figure]]:
    """Return the figures of every side, measured once a round: A B A B and so on."""
    figures: dict[Side, list[Figure]] = {side: [] for side in sides}
    for _ in range(rounds):
        for side, measure in sides.items():
            figures[side].append(measure())
    return figures


def medians(figures: Mapping[Side, Iterable[float]]) -> dict[Side, float]:
    """Return the median of every side."""
    return {side: median(measured) for side, measured in figures.items()}


def cpu_seconds(call: Callable[[], object]) -> float:
    """Return the processor time of a call, in all threads of this process."""
    started = time.process_time()
    call()
    return time.process_time() - started


@contextmanager
def handlers_over(given: ProcessResources, log: TextIO) -> Iterator[None]:
    """Let the handlers use these resources, and write what they log on Lambda to `log`."""
    telemetry.write_to(log, with_metrics=True)
    resources.use(given)
    try:
        yield
    finally:
        resources.use(None)
        telemetry.write_to(sys.stderr, with_metrics=False)


def machine() -> str:
    """Describe the machine and the versions on which the figures depend."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("boto3", "chalice", "granian"))
    return (
        f"{os.cpu_count()} cores ({platform.system()} {platform.machine()}, load"
        f" {os.getloadavg()[0]:.1f} before), {platform.python_implementation()}"
        f" {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {packages}"
    )
