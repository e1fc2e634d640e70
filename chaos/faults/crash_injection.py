"""Crashes between two commits of one step, which a SIGKILL from outside rarely hits.

A file names a thread. After SIGUSR1 the process ends itself when that thread begins a transaction.
The commits before it stay, and the commits after it never happen.
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
"""The threads that commit: for visitors, for expired items, and for folds."""
MAX_TRANSACTIONS = 2
"""The most transactions that begin before the process ends."""


def write(path: Path, thread: str, begins: int) -> None:
    """Write which thread ends the process, and at which of its next transactions."""
    path.write_text(f"{begins} {thread}")


class CrashInjection:
    """A handler of SIGUSR1; call `install` before the first connection opens."""

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
            with suppress(sqlite3.ProgrammingError):  # the connection is closed
                connection.set_trace_callback(self._look)

    def _look(self, statement: str) -> None:
        if statement.startswith("BEGIN") and threading.current_thread().name == self._thread:
            self._left -= 1
            if not self._left:
                os.kill(os.getpid(), signal.SIGKILL)
