"""`python -m chaos.launch CLOCK`: `python -m local` by the clock whose offset is in a file."""

from __future__ import annotations

import sys
from pathlib import Path

from chaos.clock import OffsetClock
from local.__main__ import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[2:], OffsetClock(Path(sys.argv[1]))))
