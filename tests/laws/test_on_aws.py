"""The five laws over generated histories on AWS, each from a seed that replays it."""

from __future__ import annotations

import pytest

from tests.laws.histories import WEATHERS, replay

HISTORIES = 40
"""Of each weather; `make laws` runs as many as wanted."""


@pytest.mark.parametrize("weather", WEATHERS)
@pytest.mark.parametrize("tens", range(HISTORIES // 10))
def test_no_history_breaks_a_law(weather: str, tens: int) -> None:
    for seed in range(10 * tens, 10 * tens + 10):
        replay(weather, seed)
