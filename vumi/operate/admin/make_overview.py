"""The process that makes the overview's file for a server: `FOLDER NOW`.

Its priority is the lowest, so that visitors come first. It only reads the server's file.
"""

from __future__ import annotations

import signal
import sqlite3
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from vumi import priority
from vumi.operate.admin import overview, overview_file
from vumi.storage.database import FILE

WAIT_SECONDS = 5.0


def main(folder: Path, now: float) -> None:
    """Read all badges in the file of a folder, and make the overview's file."""
    priority.lower()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends this
    name = f"file:{quote(str((folder / FILE).absolute()))}?mode=ro"
    with closing(
        sqlite3.connect(name, uri=True, timeout=WAIT_SECONDS, isolation_level=None)
    ) as file:

        def read(sql: str, arguments: Sequence[object]) -> list[tuple[Any, ...]]:
            return file.execute(sql, arguments).fetchall()

        badges = overview.of_file(read, now)
        overview_file.write(folder / overview_file.FILE, badges, now, time.monotonic)


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
