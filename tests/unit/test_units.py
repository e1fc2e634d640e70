"""Seconds become whole milliseconds."""

from __future__ import annotations

import pytest

from chalicelib.units import to_milliseconds


@pytest.mark.parametrize(
    ("seconds", "milliseconds"),
    [(0, 0), (300, 300_000), (0.0005, 0), (0.0019, 1), (1_767_225_600.25, 1_767_225_600_250)],
)
def test_seconds_become_whole_milliseconds_rounded_down(seconds: float, milliseconds: int) -> None:
    assert to_milliseconds(seconds) == milliseconds
    assert type(to_milliseconds(seconds)) is int
