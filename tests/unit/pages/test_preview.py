"""The picture of a badge's page: the size, the line of its days, and its smooth edges."""

from __future__ import annotations

from collections.abc import Sequence

from chalicelib.pages import preview
from tests.unit.png_pictures import decode

NO_DAYS = [0] * preview.DAYS
PEAK = [0] * 14 + [80] + [0] * 15
FULL = {preview.LEVELS - 1, preview.OVER_AREA + preview.LEVELS - 1}


def draw(days: Sequence[int]) -> list[bytes]:
    """Return the rows of a picture."""
    picture = decode(preview.draw(days))
    assert (len(picture.rows[0]), len(picture.rows)) == (1200, 630)
    assert len(picture.palette) == 2 * preview.LEVELS
    return picture.rows


def line(rows: list[bytes], x: int) -> list[int]:
    """Return the rows that the line covers wholly in a column."""
    return [y for y, row in enumerate(rows) if row[x] in FULL]


def column_of(day: int) -> int:
    return preview.LEFT + (preview.RIGHT - preview.LEFT) * day // (preview.DAYS - 1)


def test_the_line_goes_from_day_to_day_and_is_as_high_as_its_views() -> None:
    rows = draw([0, 40, 80, *[20] * 27])
    for day, share in ((0, 0), (1, 0.5), (2, 1), (20, 0.25)):
        y = preview.GROUND - (preview.GROUND - preview.TOP) * share
        assert any(abs(covered - y) <= 2 for covered in line(rows, column_of(day)))


def test_a_month_without_views_is_a_flat_line() -> None:
    rows = draw(NO_DAYS)
    columns = range(preview.LEFT, preview.RIGHT)
    assert {tuple(line(rows, x)) for x in columns} == {
        tuple(range(preview.GROUND - preview.RADIUS, preview.GROUND + preview.RADIUS))
    }


def test_nothing_is_in_the_margin_and_the_line_overshoots_no_day() -> None:
    rows = draw(PEAK)
    edge = preview.RADIUS + 1
    margin = [*rows[: preview.TOP - edge], *rows[preview.GROUND + edge :]]
    sides = [row[: preview.LEFT - edge] + row[preview.RIGHT + edge :] for row in rows]
    assert not any(map(any, margin + sides))
    assert any(rows[preview.TOP])


def test_steep_edges_are_smooth_over_the_background_and_the_area() -> None:
    shades = {shade for row in draw(PEAK) for shade in row}
    assert len(shades & set(range(preview.LEVELS))) > preview.LEVELS // 2
    assert len(shades & set(range(preview.OVER_AREA, 2 * preview.LEVELS))) > preview.LEVELS // 2
