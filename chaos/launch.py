"""`python -m chaos.launch CLOCK DOOM`: `python -m local` by the clock whose offset is in a file.

DOOM is the file that says when it is to end itself.
"""

from __future__ import annotations

import sys
from pathlib import Path

from chalicelib.views import counting
from chaos.clock import OffsetClock
from chaos.doom import Doom
from local.__main__ import main

HOT = 100
"""Live views from which a badge is hot here, where views live for a second or two."""

if __name__ == "__main__":
    counting.HOT = HOT
    Doom(Path(sys.argv[2])).install()
    sys.exit(main(sys.argv[3:], OffsetClock(Path(sys.argv[1]))))
