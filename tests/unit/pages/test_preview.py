"""The picture of a badge's page: the size, the line of its days, and its smooth edges."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence

from chalicelib.pages import preview

NO_DAYS = [0] * preview.DAYS
PEAK = [0] * 14 + [80] + [0] * 15
FULL = {preview.LEVELS - 1, preview.OVER_AREA + preview.LEVELS - 1}


def draw(days: Sequence[int]) -> list[bytes]:
    """Return the rows of a picture: its pixels, each an index of a palette, without a filter.

    Source: W3C, "Portable Network Graphics (PNG) Specification (Third Edition)".
    """
    document = preview.draw(days)
    assert document[:8] == b"\x89PNG\r\n\x1a\n"
    chunks = dict(chunks_of(document[8:]))
    assert list(chunks) == [b"IHDR", b"PLTE", b"IDAT", b"IEND"]
    assert struct.unpack(">IIBBBBB", chunks[b"IHDR"]) == (1200, 630, 8, 3, 0, 0, 0)
    assert len(chunks[b"PLTE"]) == 2 * preview.LEVELS * len("rgb")
    lines = zlib.decompress(chunks[b"IDAT"])
    assert (len(lines), set(lines[::1201])) == (630 * 1201, {0})
    return [lines[at + 1 : at + 1201] for at in range(0, len(lines), 1201)]


def chunks_of(rest: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the kind and the content of each chunk, whose checksum is right."""
    while rest:
        end = 8 + struct.unpack(">I", rest[:4])[0]
        assert struct.unpack(">I", rest[end : end + 4]) == (zlib.crc32(rest[4:end]),)
        yield rest[4:8], rest[8:end]
        rest = rest[end + 4 :]


def line(rows: list[bytes], x: int) -> list[int]:
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
