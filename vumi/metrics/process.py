"""The metrics of the process, with the names that Prometheus' own clients give them."""

from __future__ import annotations

import platform
import resource
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from chalicelib.units import Seconds
from vumi.metrics import catalogue
from vumi.metrics.families import Family

PROC = Path("/proc/self")


@dataclass(frozen=True, slots=True)
class ProcessMetrics:
    """The metrics of this process; those of `proc` only where the system has it, as Linux has."""

    version: str
    started_at: Seconds
    proc: Path = PROC

    def families(self) -> Iterator[Family]:
        versions = (self.version, platform.python_version(), sqlite3.sqlite_version)
        yield Family(catalogue.BUILD, {versions: 1})
        yield Family.of(catalogue.START, self.started_at)
        used = resource.getrusage(resource.RUSAGE_SELF)
        yield Family.of(catalogue.CPU, used.ru_utime + used.ru_stime)
        yield Family.of(catalogue.MAX_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        if self.proc.exists():
            yield Family.of(catalogue.MEMORY, _resident_bytes(self.proc / "statm"))
            yield Family.of(catalogue.OPEN_FILES, sum(1 for _ in (self.proc / "fd").iterdir()))


def _resident_bytes(statm: Path) -> int:
    """Return the resident memory. Source: proc(5), "/proc/pid/statm"."""
    return int(statm.read_text().split()[1]) * resource.getpagesize()
