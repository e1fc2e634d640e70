"""The times in responses: ISO 8601, in UTC, to the millisecond."""

from __future__ import annotations

from datetime import datetime

from hypothesis import given
from hypothesis import strategies as st

from chalicelib.http.times import to_iso8601


@given(st.integers(0, 10**13))
def test_a_time_is_shown_to_the_millisecond(milliseconds: int) -> None:
    shown = to_iso8601(milliseconds)
    assert shown.endswith("Z")
    assert len(shown) == len("2026-03-14T12:00:00.000Z")
    assert round(datetime.fromisoformat(shown).timestamp() * 1000) == milliseconds
