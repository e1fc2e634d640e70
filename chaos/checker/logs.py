"""The machine's logs: only a full disk may cause errors, and nothing may cause a bare traceback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

DISK_FULL_ERRORS = (
    "UnavailableError: SQLite: ",
    "NotStoredError: ",
    "NotSentError: ",
    "InBetweenError: ",
)
"""The errors while the disk is full; a reason follows. The last one is that of a slow request."""
SHOWN = 500


def errors(folder: Path) -> list[str]:
    """Return the unexpected log lines of all starts."""
    return [
        f"{log.name}: {line[-SHOWN:]}"
        for log in sorted(folder.glob("server-*.log"))
        for line in _find_unexpected(log.read_text(errors="replace"))
    ]


def _find_unexpected(text: str) -> Iterator[str]:
    """Yield the unexpected lines; a killed process may leave its last line unfinished."""
    *lines, unfinished = text.split("\n")
    del unfinished
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            yield line
            continue
        wrong = entry.get("level") == "ERROR" and entry.get("message") != "dead_letters"
        if wrong and not any(expected in entry.get("error", "") for expected in DISK_FULL_ERRORS):
            yield line
