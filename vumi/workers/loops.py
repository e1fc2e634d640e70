"""Threads that repeat a step until they are stopped, resting in between unless woken."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from chalicelib import telemetry
from vumi.storage.database import Corrupt

AFTER_ERROR_SECONDS = 1.0
AFTER_CORRUPT_SECONDS = 60.0
"""Nothing is written to a corrupt file any more; the log says so, and that is enough."""


class Loop:
    """Repeats `step`, which returns how many seconds may pass until it is due again.

    Woken, it lingers before the step, so that what comes in a burst is handled in one batch, as
    the batch window of a Lambda event source has it. It takes a `turn` for each step.
    """

    def __init__(
        self,
        name: str,
        step: Callable[[], float],
        linger: float = 0.0,
        turn: AbstractContextManager[object] | None = None,
    ) -> None:
        self._step = step
        self._turn = turn or nullcontext()
        self._linger = linger
        self._woken = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Let the step come soon: there is something to do."""
        if not self._woken.is_set():
            self._woken.set()

    def stop(self) -> None:
        """Let the step under way end, and no other begin."""
        self._stopping.set()
        self._woken.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._woken.clear()
            rest = self._once()
            if rest and self._woken.wait(rest):
                self._stopping.wait(self._linger)

    def _once(self) -> float:
        try:
            with self._turn:
                return self._step()
        except Corrupt as corrupt:
            telemetry.event(
                logging.WARNING, "a loop rests", loop=self._thread.name, reason=str(corrupt)
            )
            self._stopping.wait(AFTER_CORRUPT_SECONDS)
            return 0.0
        except Exception:  # noqa: BLE001  a loop that ended would end the counting
            telemetry.event(logging.ERROR, "a loop failed", loop=self._thread.name)
            return AFTER_ERROR_SECONDS
