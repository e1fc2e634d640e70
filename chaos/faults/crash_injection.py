"""Death between two commits of one step, which a SIGKILL from outside hardly ever meets.

Told by a file and SIGUSR1, the process ends itself when a thread of that name begins a transaction:
what that thread committed before stays, and what was to follow never comes.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

THREADS = ("MainThread", "expiry", "fold_views")
"""Who commits: for visitors, for what has expired, for what is folded."""
MAX_TRANSACTIONS = 2
"""Transactions that may begin until it ends."""


def write(path: Path, thread: str, begins: int) -> None:
    """Say at which beginning of a transaction from now on it is to end, and of which thread."""
    path.write_text(f"{begins} {thread}")


class CrashInjection:
    """Waits for SIGUSR1 from `install` on, which comes before the first connection."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connections: list[sqlite3.Connection] = []
        self._thread, self._left = "", 0

    def install(self) -> None:
        sys.addaudithook(self._note)
        signal.signal(signal.SIGUSR1, lambda *_: self._begin())

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "sqlite3.connect/handle":
            self._connections.append(arguments[0])

    def _begin(self) -> None:
        left, self._thread = self._path.read_text().split(maxsplit=1)
        self._left = int(left)
        for connection in self._connections:
            with suppress(sqlite3.ProgrammingError):  # it is closed
                connection.set_trace_callback(self._look)

    def _look(self, statement: str) -> None:
        if statement.startswith("BEGIN") and threading.current_thread().name == self._thread:
            self._left -= 1
            if not self._left:
                os.kill(os.getpid(), signal.SIGKILL)
