"""The picture of a badge's page: its size, its count in letters of squares, and its bars."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from chalicelib.badges.options import MAX_BASE
from chalicelib.pages import preview
from tests.unit.png_pictures import Picture, decode

NO_DAYS = [0] * preview.DAYS
FRAME = preview.MARGIN


def squares(count: int, days: Sequence[int] = NO_DAYS) -> list[bytes]:
    """Return the squares of a picture."""
    picture = decode(preview.draw(count, days))
    assert picture.palette == preview.PALETTE
    assert (len(picture.rows[0]), len(picture.rows)) == (1200, 630)
    return [row[:: preview.SCALE] for row in picture.rows[:: preview.SCALE]]


def heights(days: Sequence[int]) -> list[int]:
    """Return the height of each day's bar."""
    rows = squares(1, days)[preview.NAME_TOP + 20 : preview.GROUND]
    starts = range(FRAME, FRAME + preview.SLOT * preview.DAYS, preview.SLOT)
    return [sum(row[start] == preview.BLUE for row in rows) for start in starts]


def test_the_bars_are_as_high_as_their_days() -> None:
    days = [0, 1, 50, 100, *range(1, 27)]
    assert heights(days)[:4] == [0, 1, preview.BAR_HEIGHT // 2, preview.BAR_HEIGHT]
    assert heights(NO_DAYS) == NO_DAYS
    assert heights([7] * preview.DAYS) == [preview.BAR_HEIGHT] * preview.DAYS


@pytest.mark.parametrize("count", [0, 1, 999, 1_000, 12_345, 1_234_567, 10**9, 3 * MAX_BASE])
def test_nothing_reaches_into_the_margin(count: int) -> None:
    rows = squares(count, [5] * preview.DAYS)
    assert not any(any(row[:FRAME]) or any(row[-FRAME:]) for row in rows)
    assert not any(map(any, rows[: FRAME - 1]))
    assert any(preview.WHITE in row for row in rows)


def written(text: str) -> list[str]:
    """Return the letters of a text as rows of dots."""
    canvas = preview.Canvas()
    canvas.write(text, 0, 0, 1, preview.WHITE)
    return ["".join(".#"[bool(square)] for square in row[:14]) for row in canvas.rows[:7]]


def test_letters_are_drawn_from_left_to_right_and_commas_are_narrow() -> None:
    assert written("1,7") == [
        "..#......#####",
        ".##..........#",
        "..#.........#.",
        "..#........#..",
        "..#...##...#..",
        "..#....#...#..",
        ".###..#....#..",
    ]


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0"), (1_234_567, "1,234,567"), (123_456_789, "123,456,789"), (1_234_567_890, "1.2B")],
)
def test_a_count_that_would_be_small_is_short(count: int, text: str) -> None:
    canvas = preview.Canvas()
    size = 4 if len(text) < 9 else 3
    top = preview.COUNT_BOTTOM - 7 * size
    canvas.write(text, FRAME, top, size, preview.WHITE)
    drawn = squares(count)
    assert drawn[top : preview.COUNT_BOTTOM] == [
        bytes(row) for row in canvas.rows[top : preview.COUNT_BOTTOM]
    ]


def test_one_view_is_singular() -> None:
    names = [squares(count)[preview.NAME_TOP : preview.NAME_TOP + 14] for count in (1, 2)]
    last_letter = slice(FRAME + 4 * 12, FRAME + 5 * 12)
    assert [any(any(row[last_letter]) for row in name) for name in names] == [False, True]


PALETTE = ("#000000", "#ff8000", "#0102ff")
ROWS = [b"\x00\x01\x02", b"\x02\x02\x00"]


@pytest.mark.parametrize("scale", [2, 6])
def test_each_square_has_its_colour_and_size(scale: int) -> None:
    picture = decode(preview.encode_png(ROWS, PALETTE, scale))
    expected = [bytes(index for index in row for _ in range(scale)) for row in ROWS]
    assert picture == Picture(PALETTE, [row for row in expected for _ in range(scale)])
