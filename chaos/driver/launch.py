"""`python -m chaos.driver.launch CLOCK CRASH`: `python -m vumi` with injected faults.

CLOCK is the file with the offset of the clock, CRASH the file that says when the process kills
itself.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from chaos.faults.clock import OffsetClock
from chaos.faults.crash_injection import CrashInjection
from vumi.cli.program import main

HOT_VIEWS = "100"
"""A badge is hot with fewer views here, because a window is one second."""

if __name__ == "__main__":
    os.environ["HOT_VIEWS"] = HOT_VIEWS
    CrashInjection(Path(sys.argv[2])).install()
    sys.exit(main(["serve"], OffsetClock(Path(sys.argv[1]))))
