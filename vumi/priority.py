"""The priority of work that must not slow visitors down.

Backups, checks and overviews read the whole file while visitors are answered on the same
processors.
"""

from __future__ import annotations

import os

NICENESS = 19
"""The lowest priority (nice(2))."""


def lower() -> None:
    """Give this process the lowest priority for processor time."""
    os.nice(NICENESS)
