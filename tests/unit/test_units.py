"""The conversions and the form of times."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.units import to_iso8601, to_milliseconds


@pytest.mark.parametrize(
    ("seconds", "milliseconds"),
    [(0, 0), (300, 300_000), (0.0005, 0), (0.0019, 1), (1_767_225_600.25, 1_767_225_600_250)],
)
def test_seconds_become_whole_milliseconds_rounded_down(seconds: float, milliseconds: int) -> None:
    assert to_milliseconds(seconds) == milliseconds
    assert type(to_milliseconds(seconds)) is int


@given(st.integers(0, 10**13))
def test_a_time_is_shown_to_the_millisecond(milliseconds: int) -> None:
    shown = to_iso8601(milliseconds)
    assert shown.endswith("Z")
    assert len(shown) == len("2026-03-14T12:00:00.000Z")
    assert round(datetime.fromisoformat(shown).timestamp() * 1000) == milliseconds
