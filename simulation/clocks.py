"""Clocks that a test or a history moves, and ULIDs for a given time."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from chalicelib.storage.retry import Retry
from chalicelib.ulids import earliest
from chalicelib.units import Seconds, to_milliseconds

NOON: Seconds = datetime(2026, 3, 14, 12, tzinfo=UTC).timestamp()


@dataclass
class Clock:
    """A clock that a test sets."""

    now: Seconds = NOON

    def __call__(self) -> Seconds:
        return self.now


@dataclass
class FakeTime:
    """A clock that moves only by `sleep`; `slept` records the length of each sleep."""

    now: Seconds = 1_000.0
    slept: list[Seconds] = field(default_factory=list)

    def sleep(self, seconds: Seconds) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def monotonic(self) -> Seconds:
        return self.now

    def retry(self, **settings: Any) -> Retry:
        """Return a `Retry` on this clock that always has the longest jitter."""
        steps: dict[str, Any] = {
            "sleep": self.sleep,
            "monotonic": self.monotonic,
            "jitter": lambda: 1.0,
        }
        return Retry(**(steps | settings))


def ulid_of(taken: Seconds, tail: str = "0" * 16) -> str:
    """Return a ULID for a time, with a fixed random part."""
    return earliest(to_milliseconds(taken))[:10] + tail
