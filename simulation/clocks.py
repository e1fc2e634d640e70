"""Clocks that a test or a history moves, and ULIDs of a given time."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ulid import ULID

from chalicelib.storage.retry import Retry

NOON = datetime(2026, 3, 14, 12, tzinfo=UTC).timestamp()


@dataclass
class Clock:
    """Seconds since 1970, as a test sets them."""

    now: float = NOON

    def __call__(self) -> float:
        return self.now


@dataclass
class FakeTime:
    """A clock that moves only while somebody sleeps on it; keeps how long each sleep was."""

    now: float = 1_000.0
    slept: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def monotonic(self) -> float:
        return self.now

    def retry(self, **settings: Any) -> Retry:
        """A `Retry` on this clock, whose jitter is always the longest."""
        steps: dict[str, Any] = {
            "sleep": self.sleep,
            "monotonic": self.monotonic,
            "jitter": lambda: 1.0,
        }
        return Retry(**(steps | settings))


def ulid_of(taken: float, tail: str = "0" * 16) -> str:
    """A ULID of a time in seconds since 1970, its random part fixed."""
    return str(ULID.from_timestamp(taken))[:10] + tail
