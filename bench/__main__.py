"""`python -m bench [NAME ...]`: measure everything, or what is named, and print it as tables.

What takes minutes and compares vu-mi with itself is measured only where it is named.

The exit status is 1 where a measurement found a count that is wrong; an aim that was missed, which
on a busy machine says little, only stands in its table.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

import moto  # noqa: F401  it answers only sessions of botocore that are made after its import

from bench.measuring import machine
from simulation.environment import isolate
from simulation.report import Report

MEASUREMENTS = {
    **{
        name: f"bench.speed.{name}"
        for name in (
            "hits",
            "get_cpu",
            "cold_start",
            "fold",
            "lateness",
            "accepting",
            "sweep",
            "wallets",
        )
    },
    "hot": "bench.cost.hot",
}
LONG = {name: f"bench.speed.{name}" for name in ("steps", "memory")}


def main(names: Sequence[str]) -> int:
    """Run the measurements; return the exit status."""
    known = MEASUREMENTS | LONG
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"no {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    isolate(os.environ)
    print(f"# vu-mi, measured\n\n{machine()}", flush=True)
    reports = [_measure(known[name]) for name in names or MEASUREMENTS]
    return int(any(report.failure for report in reports))


def _measure(module: str) -> Report:
    report: Report = importlib.import_module(module).measure()
    print(f"\n{report}", flush=True)
    return report


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
