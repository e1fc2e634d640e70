"""Threads that repeat a step until they are stopped, resting in between unless woken."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from chalicelib import telemetry

AFTER_ERROR_SECONDS = 1.0


class Loop:
    """Repeats `step`, which returns how many seconds may pass until it is due again."""

    def __init__(self, name: str, step: Callable[[], float]) -> None:
        self._step = step
        self._woken = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=name)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Let the step come at once: there is something to do."""
        self._woken.set()

    def stop(self) -> None:
        """Let the step under way end, and no other begin."""
        self._stopping = True
        self._woken.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping:
            self._woken.clear()
            rest = self._once()
            if not self._stopping:
                self._woken.wait(rest)

    def _once(self) -> float:
        try:
            return self._step()
        except Exception:  # noqa: BLE001  a loop that ended would end the counting
            telemetry.event(logging.ERROR, "a loop failed", loop=self._thread.name)
            return AFTER_ERROR_SECONDS
