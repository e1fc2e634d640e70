"""When a view expires: on a mark of the window, after every redelivery of its message."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.settings import Settings
from chalicelib.views.storing import Lifetime

SECONDS = st.integers(min_value=1, max_value=86_400)
TIMES = st.integers(min_value=0, max_value=4_102_444_800)


@pytest.mark.parametrize(
    ("now", "ttl"),
    [
        (0.0, 300),  # 0 + 300 is itself a mark
        (0.001, 600),  # 300.001 is behind the mark 300
        (299.0, 600),  # 599 rounds up
        (300.0, 600),  # 600 is a mark
        (300.5, 900),  # 600.5 rounds up
    ],
)
def test_a_view_lives_until_the_next_five_minute_mark_after_five_minutes(
    now: float, ttl: int
) -> None:
    assert Lifetime(window=300, redelivery=300).ttl(now) == ttl


@given(TIMES | TIMES.map(lambda seconds: seconds + 0.25), SECONDS, SECONDS)
def test_a_view_lives_at_least_as_long_as_redeliveries_and_less_than_a_window_more(
    now: float, window: int, redelivery: int
) -> None:
    ttl = Lifetime(window, redelivery).ttl(now)
    assert type(ttl) is int
    assert ttl % window == 0
    assert now + redelivery <= ttl < now + redelivery + window


@given(TIMES, TIMES, SECONDS, SECONDS)
def test_a_view_stored_again_never_expires_earlier(
    now: int, earlier: int, window: int, redelivery: int
) -> None:
    first, second = sorted((now, earlier))
    lifetime = Lifetime(window, redelivery)
    assert lifetime.ttl(first) <= lifetime.ttl(second)


def test_the_settings_say_which_window_and_which_redelivery() -> None:
    settings = Settings(view_window_seconds=60, redelivery_seconds=240)
    # 1,000 + 240 = 1,240 rounds up to 21 * 60.
    assert Lifetime.of(settings).ttl(1_000) == 1_260
