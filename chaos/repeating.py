"""A thread that repeats one step, with rests, until it is stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Repeating:
    """A thread that repeats `step`, each time after the seconds that `rest` returns."""

    def __init__(self, step: Callable[[], object], rest: Callable[[], float]) -> None:
        self._step, self._rest = step, rest
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        """Wait for the end of the step under way, and begin no other."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(self._rest()):
            self._step()
