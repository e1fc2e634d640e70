"""The threads that repeat a step until they are stopped, and rest in between unless woken."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from chalicelib import telemetry
from chalicelib.units import Seconds
from vumi.storage.database import CorruptFileError

AFTER_ERROR_SECONDS = 1.0
AFTER_CORRUPT_SECONDS = 60.0
"""The rest of a loop after it found the file corrupt, which is then no longer written."""


class Loop:
    """A thread that repeats `step`, which returns the time that may pass until it is due again.

    A woken loop lingers before the step, so that a burst is handled in one batch, as by the batch
    window of a Lambda event source. Log lines and metrics of the step have the name of the loop as
    their function.
    """

    def __init__(self, name: str, step: Callable[[], Seconds], linger: Seconds = 0.0) -> None:
        self._step = step
        self._linger = linger
        self._woken = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Take the next step soon, because there is something to do."""
        if not self._woken.is_set():
            self._woken.set()

    def stop(self) -> None:
        """Wait for the current step, and begin no other."""
        self._stopping.set()
        self._woken.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        telemetry.begin(self._thread.name, None)
        while not self._stopping.is_set():
            rest = self._once()
            if rest and self._woken.wait(rest):
                self._stopping.wait(self._linger)
            self._woken.clear()  # before the check: a stop after that ends the next rest too

    def _once(self) -> Seconds:
        try:
            return self._step()
        except CorruptFileError as corrupt:
            telemetry.event(logging.WARNING, "loop_paused", reason=str(corrupt))
            self._stopping.wait(AFTER_CORRUPT_SECONDS)
            return 0.0
        except Exception:  # noqa: BLE001  without its loop, nothing would be counted
            telemetry.event(logging.ERROR, "loop_failed")
            return AFTER_ERROR_SECONDS
