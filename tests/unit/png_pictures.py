"""A decoder of the PNGs that vu-mi makes: four bits a pixel, a palette, and two filters.

Source: W3C, "Portable Network Graphics (PNG) Specification (Third Edition)".
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

SIGNATURE = b"\x89PNG\r\n\x1a\n"
PIXELS = bytes.maketrans(b"0123456789abcdef", bytes(range(16)))


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
    assert rest == [4, 3, 0, 0, 0]
    colors = chunks[b"PLTE"]
    palette = tuple(f"#{colors[at : at + 3].hex()}" for at in range(0, len(colors), 3))
    rows = list(_rows(zlib.decompress(chunks[b"IDAT"]), width // 2))
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
    """Undo the filters None (0) and Up (2), and unpack two pixels of each byte."""
    above = bytes(width)
    for at in range(0, len(lines), width + 1):
        kind, line = lines[at], lines[at + 1 : at + 1 + width]
        assert kind in {0, 2}
        if kind == 2:
            changed = any(line)
            added = zip(line, above, strict=True)
            line = bytes((one + other) % 256 for one, other in added) if changed else above
        above = line
        yield line.hex().encode().translate(PIXELS)
