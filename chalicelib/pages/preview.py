"""The picture of a badge's page for link previews: its count, and its days as bars.

No service that shows previews accepts SVG. This picture has large square pixels, so it needs no
font and no library for pictures.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence

from chalicelib.badges.options import short

COLUMNS, ROWS, SCALE = 200, 105, 6
"""The size in squares, and the pixels of a square: 1200 x 630 pixels, as previews want it."""
WIDTH, HEIGHT = COLUMNS * SCALE, ROWS * SCALE
DAYS = 30
PALETTE = ("#0d1117", "#f0f6fc", "#9198a1", "#4493f8", "#30363d")
WHITE, GREY, BLUE, DIM = range(1, len(PALETTE))
"""Indices of the palette. The first colour is the background."""
MARGIN = 11
LETTER, POINT, LETTER_HEIGHT = 6, 3, 7
"""Squares from one letter to the next, from a comma or a point to the next, and of the height."""
MIN_SIZE, MAX_SIZE, NAME_SIZE = 3, 4, 2
"""Times that the squares of a letter are enlarged: those of the count, and of the words."""
COUNT_BOTTOM, NAME_TOP, GROUND = 39, 44, 94
"""Squares from the top: the lower edge of the count, the words, and the line below the bars."""
BAR, SLOT, BAR_HEIGHT = 4, 6, 30
GLYPHS = {
    character: bytes.fromhex(rows)
    for character, rows in (
        ("0", "0e11111111110e"),
        ("1", "040c040404040e"),
        ("2", "0e11010204081f"),
        ("3", "0e11010601110e"),
        ("4", "02060a121f0202"),
        ("5", "1f101e0101110e"),
        ("6", "0608101e11110e"),
        ("7", "1f010204040404"),
        ("8", "0e11110e11110e"),
        ("9", "0e11110f01020c"),
        (",", "00000000180810"),
        (".", "00000000001818"),
        ("-", "0000000e000000"),
        ("e", "00000e111f100e"),
        ("i", "04000c0404040e"),
        ("k", "10101214181412"),
        ("m", "00001a15151515"),
        ("s", "00000f100e011e"),
        ("u", "0000111111130d"),
        ("v", "00001111110a04"),
        ("w", "0000111115150a"),
        ("B", "1e11111e11111e"),
        ("M", "111b1515111111"),
        ("T", "1f040404040404"),
    )
}
"""Seven rows of five squares each, a row in a byte."""
SIGNATURE = b"\x89PNG\r\n\x1a\n"
DEPTH, INDEXED = 4, 3
"""The bits of a pixel, and the colour type of pixels that are indices into a palette."""
TWO_PIXELS = 0x11
"""A byte has two pixels of 4 bits. An index times this is a byte of two equal ones."""
NO_FILTER, SAME_AS_ABOVE = b"\x00", b"\x02"
"""The filter of a line as it is, and of one that has only its differences to the line above."""


class Canvas:
    """The squares of a picture, each an index of the palette."""

    def __init__(self) -> None:
        self.rows = [bytearray(COLUMNS) for _ in range(ROWS)]

    def fill(self, x: int, y: int, width: int, height: int, color: int) -> None:
        for row in self.rows[y : y + height]:
            row[x : x + width] = bytes([color]) * width

    def write(self, text: str, x: int, y: int, size: int, color: int) -> None:
        """Write a text whose first letter has its upper left corner at a square."""
        for character in text:
            for column, row in _squares(character):
                self.fill(x + column * size, y + row * size, size, size, color)
            x += _advance(character) * size


def draw(count: int, days: Sequence[int]) -> bytes:
    """Draw a count and the views of the last `DAYS` days, the oldest first, as a PNG."""
    canvas = Canvas()
    text = _format(count)
    size = _size(text)
    canvas.write(text, MARGIN, COUNT_BOTTOM - LETTER_HEIGHT * size, size, WHITE)
    canvas.write("view" if count == 1 else "views", MARGIN, NAME_TOP, NAME_SIZE, GREY)
    name = "vu-mi"
    canvas.write(name, COLUMNS - MARGIN - _width(name, NAME_SIZE), NAME_TOP, NAME_SIZE, BLUE)
    canvas.fill(MARGIN, GROUND, COLUMNS - 2 * MARGIN, 1, DIM)
    _draw_bars(canvas, days)
    return encode_png([bytes(row) for row in canvas.rows], PALETTE, SCALE)


def _draw_bars(canvas: Canvas, days: Sequence[int]) -> None:
    """Draw a bar for each day with views, at least one square high."""
    most = max(days)
    for place, views in enumerate(days):
        if views:
            height = max(1, views * BAR_HEIGHT // most)
            canvas.fill(MARGIN + place * SLOT, GROUND - height, BAR, height, BLUE)


def _format(count: int) -> str:
    """Return a count with commas, or like 1.2B if it would be too wide."""
    text = f"{count:,}"
    return text if _size(text) >= MIN_SIZE else short(count)


def _size(text: str) -> int:
    return min(MAX_SIZE, (COLUMNS - 2 * MARGIN) // _width(text, 1))


def _width(text: str, size: int) -> int:
    return (sum(map(_advance, text)) - 1) * size


def _advance(character: str) -> int:
    return POINT if character in ",." else LETTER


def _squares(character: str) -> Iterator[tuple[int, int]]:
    """Yield the columns and rows of the squares of a letter."""
    for row, bits in enumerate(GLYPHS[character]):
        for column in range(LETTER - 1):
            if bits >> (LETTER - 2 - column) & 1:
                yield column, row


def encode_png(rows: Sequence[bytes], palette: Sequence[str], scale: int) -> bytes:
    """Encode rows of squares, each an index into a palette of at most 16 colours `#rrggbb`.

    A square is `scale` pixels wide and high, which is an even number.
    Source: W3C, "Portable Network Graphics (PNG) Specification (Third Edition)".
    """
    width, height = len(rows[0]) * scale, len(rows) * scale
    colors = b"".join(bytes.fromhex(color[1:]) for color in palette)
    lines = zlib.compress(b"".join(_lines(rows, len(palette), scale)))
    return SIGNATURE + b"".join(
        (
            _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, DEPTH, INDEXED, 0, 0, 0)),
            _chunk(b"PLTE", colors),
            _chunk(b"IDAT", lines),
            _chunk(b"IEND", b""),
        )
    )


def _lines(rows: Sequence[bytes], colors: int, scale: int) -> Iterator[bytes]:
    squares = [bytes([index * TWO_PIXELS]) * (scale // 2) for index in range(colors)]
    for row in rows:
        line = b"".join(squares[index] for index in row)
        yield NO_FILTER + line
        yield (SAME_AS_ABOVE + bytes(len(line))) * (scale - 1)


def _chunk(kind: bytes, content: bytes) -> bytes:
    checked = kind + content
    return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))
