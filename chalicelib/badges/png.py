"""A picture of large square pixels as a PNG of few colours, without a library.

Source: W3C, "Portable Network Graphics (PNG) Specification (Third Edition)".
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence

SIGNATURE = b"\x89PNG\r\n\x1a\n"
DEPTH, INDEXED = 4, 3
"""The bits of a pixel, and the colour type of pixels that are indices into a palette."""
TWO_PIXELS = 0x11
"""A byte has two pixels of 4 bits. An index times this is a byte of two equal ones."""
NO_FILTER, SAME_AS_ABOVE = b"\x00", b"\x02"
"""The filter of a line as it is, and of one that has only its differences to the line above."""


def encode(rows: Sequence[bytes], palette: Sequence[str], scale: int) -> bytes:
    """Encode rows of squares, each an index into a palette of at most 16 colours `#rrggbb`.

    A square is `scale` pixels wide and high, which is an even number.
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
