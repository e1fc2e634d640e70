"""The units of times and durations. A time counts from 1970 (UTC), unless its clock is monotonic.

The units are aliases of numbers, so arithmetic with them needs no conversion.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TypeAlias

Seconds: TypeAlias = float
"""Seconds, with fractions: clocks, waits and timeouts."""
WholeSeconds: TypeAlias = int
"""Whole seconds: marks, TTLs and settings."""
Milliseconds: TypeAlias = int
"""Whole milliseconds: times of views, events and entries, watermarks and resets."""


def to_milliseconds(seconds: Seconds) -> Milliseconds:
    """Convert seconds to whole milliseconds, rounded down."""
    return int(seconds * 1000)


def to_iso8601(milliseconds: Milliseconds) -> str:
    """Return a time in UTC: `2026-11-21T10:00:00.000Z`."""
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
