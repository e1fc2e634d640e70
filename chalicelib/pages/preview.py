"""The picture of a badge's page for link previews: the line of its last days.

No service that shows previews accepts SVG. The picture has no letters, so it needs no font: each
service writes the title of the page, with the badge's name and count, beside it.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from operator import add, sub

WIDTH, HEIGHT = 1200, 630
"""The pixels that previews want."""
DAYS = 30
BACKGROUND, AREA, LINE = (13, 17, 23), (18, 41, 73), (68, 147, 248)
LEVELS = 16
"""The shades from what is below the line to the line."""
PALETTE = bytes(
    round(one + (other - one) * level / (LEVELS - 1))
    for ground in (BACKGROUND, AREA)
    for level in range(LEVELS)
    for one, other in zip(ground, LINE, strict=True)
)
OVER_AREA = LEVELS
"""The index of the first shade over the area; the first one over the background is 0."""
LEFT, RIGHT, TOP, GROUND = 80, 1120, 120, 520
RADIUS = 5
"""Half of the line's width."""
FINE = 3
"""The columns that are averaged to one column of pixels, so that steep edges are smooth."""
REACH = RADIUS * FINE
CHORDS = [math.sqrt(RADIUS**2 - dx**2) for dx in range(-RADIUS, RADIUS + 1)]
"""Half of the heights of the discs that reach a column, from the left to the right."""
MAX_CACHED = 64
"""Pictures that are kept, of some 15 KB each."""
SIGNATURE = b"\x89PNG\r\n\x1a\n"
DEPTH, INDEXED = 8, 3
"""The bits of a pixel, and the colour type of pixels that are indices into a palette."""
NO_FILTER = b"\x00"


def draw(days: Sequence[int]) -> bytes:
    """Draw the views of the last days, the oldest first, as a PNG."""
    most = max(*days, 1)
    return _draw(tuple(GROUND - round(views * (GROUND - TOP) / most) for views in days))


@lru_cache(MAX_CACHED)
def _draw(points: Sequence[int]) -> bytes:
    """Draw a line through points, which takes 20 ms; a view moves none of a badge with many."""
    heights = [*_curve(points)]
    columns = b"".join(_column(heights, x) for x in range(WIDTH))
    rows = b"".join(NO_FILTER + columns[y::HEIGHT] for y in range(HEIGHT))
    head = struct.pack(">IIBBBBB", WIDTH, HEIGHT, DEPTH, INDEXED, 0, 0, 0)
    parts = ((b"IHDR", head), (b"PLTE", PALETTE), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return SIGNATURE + b"".join(_chunk(*part) for part in parts)


def _curve(points: Sequence[float]) -> Iterator[float]:
    """Yield the heights of a smooth line through the points, one for each fine column.

    It never leaves the range of two neighbours. Source: Fritsch and Butland, "A Method for
    Constructing Local Monotone Piecewise Cubic Interpolants", 1984.
    """
    rises = [after - before for before, after in pairwise(points)]
    slopes = [0.0, *(_slope(*both) for both in pairwise(rises)), 0.0]
    steps = len(rises)
    for fine in range((RIGHT - LEFT) * FINE):
        place, t = divmod(fine * steps / ((RIGHT - LEFT) * FINE), 1)
        at = int(place)
        bend = (slopes[at] * (1 - t) - slopes[at + 1] * t) * t * (1 - t)
        yield points[at] + rises[at] * t * t * (3 - 2 * t) + bend


def _slope(before: float, after: float) -> float:
    return 2 * before * after / (before + after) if before * after > 0 else 0.0


def _column(heights: Sequence[float], x: int) -> bytes:
    """Draw a column: the background, the line over it and over the area, and the ground."""
    fine = range((x - LEFT) * FINE, (x - LEFT + 1) * FINE)
    spans = [span for at in fine if (span := _span(heights, at))]
    if not spans:
        return bytes(HEIGHT)
    tops, bottoms = zip(*spans, strict=True)
    below = OVER_AREA if LEFT <= x < RIGHT else 0
    first, last = int(min(tops)), int(max(bottoms)) + 1
    upper, lower = min(int(max(tops)) + 1, last), max(int(min(bottoms)), first)
    column = bytearray(first)
    column += bytes(_shade(spans, y) for y in range(first, upper))
    column += bytes([LEVELS - 1]) * (lower - upper)
    column += bytes(below + _shade(spans, y) for y in range(max(upper, lower), last))
    column += bytes([below]) * (GROUND - last)
    return bytes(column.ljust(HEIGHT, b"\0"))


def _span(heights: Sequence[float], at: int) -> tuple[float, float] | None:
    """Return the upper and the lower edge of the line in a fine column: discs along the curve."""
    first = at % FINE if at < REACH else at - REACH
    discs = heights[first : at + REACH + 1 : FINE] if at + REACH >= 0 else ()
    chords = CHORDS[(first - at + REACH) // FINE :]
    top = min(map(sub, discs, chords), default=HEIGHT)
    bottom = max(map(add, discs, chords), default=0)
    return (top, bottom) if top < bottom else None


def _shade(spans: Sequence[tuple[float, float]], y: int) -> int:
    """Return how much of a pixel the line covers, as a shade."""
    covered = sum(max(0.0, min(bottom, y + 1) - max(top, y)) for top, bottom in spans)
    return round(covered / FINE * (LEVELS - 1))


def _chunk(kind: bytes, content: bytes) -> bytes:
    """Write a part. Source: W3C, "Portable Network Graphics (PNG) Specification"."""
    checked = kind + content
    return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))
