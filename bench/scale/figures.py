"""The format of figures in the tables of `scale`."""

from __future__ import annotations

import math

from chalicelib.units import Seconds

DAY_SECONDS = 86_400
EXACT = 100
"""Figures from here on are whole numbers."""


def figure(number: float) -> str:
    """Return a number with two decimals, unless it is large or whole."""
    is_whole = number >= EXACT or number == int(number)
    return f"{number:,.0f}" if is_whole else f"{number:,.2f}"


def seconds(number: Seconds) -> str:
    """Return a time in seconds, or that it never comes."""
    return f"{number:,.2f}" if number < math.inf else "never"
