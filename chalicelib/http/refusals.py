"""The log of refused tokens, which a guesser of tokens can't fill."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from threading import Lock

from chalicelib import telemetry
from chalicelib.units import Seconds

LOG_SECONDS = 60
"""The shortest time between two lines with one reason."""


class Reason(StrEnum):
    """The reason why a request with authentication was refused."""

    MISSING = "missing"
    """It had no header `Authorization`."""
    MALFORMED = "malformed"
    """The header was not `Bearer` and a token."""
    UNKNOWN = "unknown"
    """Nobody has the token."""


class RefusalLog:
    """The log of refused tokens: at most one line a minute for each reason, and never a token.

    A line has the number of refusals since the line before it that have no line of their own.
    """

    def __init__(self, clock: Callable[[], Seconds]) -> None:
        self._clock = clock
        self._lock = Lock()
        self._logged_at: dict[Reason, Seconds] = {}
        self._left_out: Counter[Reason] = Counter()

    def add(self, reason: Reason) -> None:
        """Log a refusal, or count it for the next line with its reason."""
        left_out = self._count(reason)
        if left_out is not None:
            telemetry.event(logging.WARNING, "token_refused", reason=str(reason), left_out=left_out)

    def _count(self, reason: Reason) -> int | None:
        """Return the number of refusals that a line leaves out now, or None to write no line."""
        with self._lock:
            now = self._clock()
            logged_at = self._logged_at.get(reason)
            # A clock that was set back must not end the log until it is there again.
            if logged_at is not None and logged_at <= now < logged_at + LOG_SECONDS:
                self._left_out[reason] += 1
                return None
            self._logged_at[reason] = now
            return self._left_out.pop(reason, 0)
