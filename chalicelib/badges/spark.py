"""A sparkline: the views of the last days as a small line in the message half of an SVG badge."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from chalicelib.badges import colors
from chalicelib.badges.logos import VISIBLE

DAYS = range(7, 91)
"""The days that a sparkline may have."""
STEPS = {10: 6, 15: 4, 45: 2, 90: 1}
"""The pixels between two days, by the most days: so that a line is 36 to 89 pixels wide."""
GAP = 6
"""The pixels between the message and the line."""
HEIGHT = 10
LIGHT, DARK = "#fff", "#333"
WHITE, BLACK = "#ffffff", "#000000"


def measure(days: Sequence[int]) -> int:
    """Return the width of the sparkline of some days; 0 for none."""
    return (len(days) - 1) * _find_step(days) if days else 0


def describe(days: Sequence[int]) -> str:
    """Describe a sparkline for those who can't see it."""
    return f"last {len(days)} days: {sum(days)}, at most {max(days)} a day"


def draw(days: Sequence[int], x: float, bottom: int, background: str) -> str:
    """Write the line and the area below it; their highest point is the day with most views."""
    step, heights = _find_step(days), _scale(days)
    rises = " ".join(_move(step, before - after) for before, after in pairwise(heights))
    line = f"M{x:g} {bottom - heights[0]:g}l{rises}"
    color = _choose_color(background)
    return (
        f'<path d="{line}V{bottom}H{x:g}z" fill="{color}" fill-opacity=".3"/>'
        f'<path d="{line}" fill="none" stroke="{color}" stroke-width="1.2"'
        ' stroke-linejoin="round"/>'
    )


def _find_step(days: Sequence[int]) -> int:
    return next(step for most, step in STEPS.items() if len(days) <= most)


def _scale(days: Sequence[int]) -> list[float]:
    """Return heights in half pixels: 0 for no views, and at least 1 for some."""
    most = max(days)
    return [1 + round(2 * (HEIGHT - 1) * views / most) / 2 if views else 0 for views in days]


def _move(right: float, down: float) -> str:
    """Write a step of a line without a separator that it does not need."""
    return f"{right:g}{'' if down < 0 else ' '}{down:g}"


def _choose_color(background: str) -> str:
    """Return the colour of text on a background, or black or white if it could not be seen."""
    usual = DARK if colors.is_light(background) else LIGHT
    if colors.contrast(colors.parse(usual), background) >= VISIBLE:
        return usual
    return max((WHITE, BLACK), key=lambda color: colors.contrast(color, background))
