"""A lock for the threads that compute much, which get it in the order in which they came.

Two threads that compute concurrently hand the interpreter back and forth at every call of SQLite
and of a socket, and each waits longer than both would take one after the other.
"""

from __future__ import annotations

import threading
from collections import deque


class FairLock:
    """A lock that goes to the thread that has waited longest."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken = False
        self._waiting: deque[threading.Lock] = deque()

    @property
    def waiting(self) -> int:
        """Return the number of threads that wait for the lock."""
        return len(self._waiting)

    def __enter__(self) -> None:
        with self._lock:
            if not self._taken:
                self._taken = True
                return
            asleep = threading.Lock()
            asleep.acquire()
            self._waiting.append(asleep)
        asleep.acquire()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._taken = False
