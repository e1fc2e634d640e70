"""A picture of squares as a PNG, read by a decoder for its two filters."""

from __future__ import annotations

import pytest

from chalicelib.badges import png
from tests.unit.png_pictures import Picture, decode

PALETTE = ("#000000", "#ff8000", "#0102ff")
ROWS = [b"\x00\x01\x02", b"\x02\x02\x00"]


@pytest.mark.parametrize("scale", [2, 6])
def test_each_square_has_its_colour_and_size(scale: int) -> None:
    picture = decode(png.encode(ROWS, PALETTE, scale))
    expected = [bytes(index for index in row for _ in range(scale)) for row in ROWS]
    assert picture == Picture(PALETTE, [row for row in expected for _ in range(scale)])


def test_sixteen_colours_are_possible() -> None:
    palette = tuple(f"#{index:06x}" for index in range(16))
    assert decode(png.encode([bytes(range(16))], palette, 2)).palette == palette
