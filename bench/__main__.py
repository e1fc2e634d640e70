"""`python -m bench [NAME ...]`: run all measurements, or those named, and print their tables.

The attacks, which take minutes, run only by name. The exit status is 1 if a count was wrong.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

import moto  # noqa: F401  import moto first: it patches only later botocore sessions

from bench.measuring import machine
from simulation.environment import isolate
from simulation.report import Report

MEASUREMENTS = {name: f"bench.speed.{name}" for name in ("hits", "get_cpu", "cold_start")}
LONG = {"attacks": "bench.speed.attacks"}


def main(names: Sequence[str]) -> int:
    """Run the measurements; return the exit status."""
    known = MEASUREMENTS | LONG
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"no {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    isolate(os.environ)
    print(f"# vu-mi, measured\n\n{machine()}", flush=True)
    failed = False
    for name in names or MEASUREMENTS:
        report: Report = importlib.import_module(known[name]).measure()
        print(f"\n{report}", flush=True)
        failed |= bool(report.failure)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
