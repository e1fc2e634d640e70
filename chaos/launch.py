"""`python -m chaos.launch CLOCK DOOM`: `python -m vumi` by the clock whose offset is in a file.

DOOM is the file that says when it is to end itself.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from chaos.clock import OffsetClock
from chaos.doom import Doom
from vumi.__main__ import main

HOT_VIEWS = "100"
"""A badge is hot with fewer views here, where a window is a second."""

if __name__ == "__main__":
    os.environ["HOT_VIEWS"] = HOT_VIEWS
    Doom(Path(sys.argv[2])).install()
    sys.exit(main(sys.argv[3:], OffsetClock(Path(sys.argv[1]))))
