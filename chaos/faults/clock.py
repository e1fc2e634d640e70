"""A clock that jumps: the machine's own clock, and an offset that is stored in a file.

The engine takes its clock as an argument, so a process gets this one. Any process with the file can
set it. The offset stays when the process is killed.
"""

from __future__ import annotations

import mmap
import struct
import time
from pathlib import Path
from typing import NamedTuple

SECONDS = struct.Struct("d")
DAY_SECONDS = 86_400


class Jump(NamedTuple):
    """A jump at a monotonic time, and the seconds that the clock showed before and after it."""

    at: float
    before: float
    after: float


class OffsetClock:
    """A clock: seconds since 1970 plus the offset in the file, which is made if it is missing.

    `jumps` has the jumps by this object; the first one changes nothing.
    """

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(SECONDS.pack(0.0))
        with path.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), SECONDS.size)
        self.jumps = [Jump(time.monotonic(), self(), self())]

    def __call__(self) -> float:
        return time.time() + self.offset

    @property
    def offset(self) -> float:
        """The seconds by which the clock is ahead."""
        [offset] = SECONDS.unpack_from(self._shared)
        return float(offset)

    def jump(self, seconds: float) -> None:
        """Set every clock on this file, forwards or backwards."""
        before = self()
        SECONDS.pack_into(self._shared, 0, self.offset + seconds)
        self.jumps.append(Jump(time.monotonic(), before, self()))

    def jump_before_midnight(self, seconds: float) -> None:
        """Set every clock forward to some seconds before a midnight (UTC)."""
        self.jump((-self() - seconds) % DAY_SECONDS)
