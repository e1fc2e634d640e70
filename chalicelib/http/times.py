"""The format of times in responses."""

from __future__ import annotations

from datetime import UTC, datetime

from chalicelib.units import Milliseconds


def to_iso8601(milliseconds: Milliseconds) -> str:
    """Return a time in UTC: `2026-11-21T10:00:00.000Z`."""
    when = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")
