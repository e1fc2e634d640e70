"""A decoder of the PNGs that vu-mi makes: eight bits a pixel, a palette, and no filter.

Source: W3C, "Portable Network Graphics (PNG) Specification (Third Edition)".
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

SIGNATURE = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class Picture:
    """The colours of a picture, and its rows of pixels, each an index of a colour."""

    palette: tuple[str, ...]
    rows: list[bytes]


def decode(document: bytes) -> Picture:
    """Decode a picture, and check each length and each checksum."""
    assert document.startswith(SIGNATURE)
    chunks = dict(_chunks(document[len(SIGNATURE) :]))
    assert list(chunks) == [b"IHDR", b"PLTE", b"IDAT", b"IEND"]
    width, height, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert rest == [8, 3, 0, 0, 0]
    colors = chunks[b"PLTE"]
    palette = tuple(f"#{colors[at : at + 3].hex()}" for at in range(0, len(colors), 3))
    rows = list(_rows(zlib.decompress(chunks[b"IDAT"]), width))
    assert len(rows) == height
    return Picture(palette, rows)


def _chunks(rest: bytes) -> Iterator[tuple[bytes, bytes]]:
    while rest:
        (length,) = struct.unpack(">I", rest[:4])
        checked, checksum, rest = (
            rest[4 : 8 + length],
            rest[8 + length : 12 + length],
            rest[12 + length :],
        )
        assert struct.unpack(">I", checksum) == (zlib.crc32(checked),)
        yield checked[:4], checked[4:]


def _rows(lines: bytes, width: int) -> Iterator[bytes]:
    """Yield the pixels of each line, which has no filter."""
    for at in range(0, len(lines), width + 1):
        assert lines[at] == 0
        yield lines[at + 1 : at + 1 + width]
