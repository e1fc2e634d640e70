"""The width of a text, computed without a font, from which the widths of a badge's halves follow.

It is exact for the characters of Verdana, as shields.io measures them. It is close for scripts that
each system draws in another font: there `textLength` makes the renderer use this width.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Mapping
from enum import Enum
from functools import cache
from itertools import pairwise
from operator import itemgetter

from chalicelib.badges import text_advances as data

PER_PIXEL = 1100
"""Advances are in hundredths of a pixel at 11 px; times the size, divided by this, in pixels."""
EM = 1100
HANGUL = 1012
"""The advance of a syllable, narrower than a square in Noto, Apple's and Microsoft's fonts."""
EMOJI = 1375
"""The advance of an emoji: 1.25 em in Noto and in Apple's font."""
VIRAMA, STEM = "\u094d", 220
"""A Devanagari consonant before a virama loses the width of its stem."""
INVISIBLE_CATEGORIES = {"Mn", "Me", "Cc", "Cf", "Cs"}
"""General categories without an advance: combining marks, controls, joiners."""

EMOJI_SEQUENCE = (
    "[\U0001f1e6-\U0001f1ff]{2}"  # a flag is two letters
    "|(?:[\U0001f000-\U0001faff]|.(?=[\ufe0f\U0001f3fb-\U0001f3ff]))"
    "[\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*"
    "(?:\u200d.[\ufe0f\U0001f3fb-\U0001f3ff]*)*"
)
"""Matches one emoji. Source: Unicode UTS #51, "ED-17. emoji sequence"."""


class Face(Enum):
    """A font of a badge."""

    VERDANA = data.VERDANA
    VERDANA_BOLD = data.VERDANA_BOLD
    HELVETICA_BOLD = data.HELVETICA_BOLD


def width(text: str, face: Face, size: float) -> float:
    """Return the width in pixels of a text at a size in pixels."""
    return sum(advances(text, face)) * size / PER_PIXEL


def advances(text: str, face: Face) -> list[int]:
    """Return the advance of each emoji and of each other visible character, in no order.

    Advances are in hundredths of a pixel at 11 px.
    """
    letters, emoji = _remove_emoji(unicodedata.normalize("NFC", text))
    table = _read_advances(face)
    found = (_find_advance(char, following, table) for char, following in pairwise(letters + " "))
    return [EMOJI] * emoji + [advance for advance in found if advance]


def joins(text: str) -> bool:
    """Return whether letters of the text join, so that spacing would separate them."""
    return any(
        "\u0600" <= char <= "\u109f" or "\u1780" <= char <= "\u18af" or "\ufb50" <= char <= "\ufeff"
        for char in text
    )


def _remove_emoji(text: str) -> tuple[str, int]:
    """Return a text without emoji and combining marks, and the number of emoji."""
    if text.isascii():
        return text, 0
    rest, emoji = re.subn(EMOJI_SEQUENCE, "", text)
    kept = (char for char in rest if char == VIRAMA or unicodedata.category(char) != "Mn")
    return "".join(kept), emoji


def _find_advance(char: str, following: str, table: Mapping[str, int]) -> int:
    """Return the advance of a character, which may depend on the one that follows."""
    if following in data.ARABIC_LETTERS and char in _read_joined_advances():
        return _read_joined_advances()[char]
    advance = table.get(char)
    if advance is None:
        advance = _compute_advance(char, table)
    return max(0, advance - STEM) if following == VIRAMA else advance


def _compute_advance(char: str, table: Mapping[str, int]) -> int:
    """Compute the advance of a character without an entry, from its class or decomposition."""
    if unicodedata.category(char) in INVISIBLE_CATEGORIES:
        return 0
    squares = unicodedata.east_asian_width(char)
    if squares in "WF":
        return _advance_of_square(char)
    if squares == "H":
        return EM // 2
    parts = unicodedata.normalize("NFKD", char)
    if parts != char:
        return sum(_find_advance(part, " ", table) for part in parts)
    return data.BLOCKS[bisect_right(data.BLOCKS, char, key=itemgetter(0)) - 1][1]


def _advance_of_square(char: str) -> int:
    if "\uac00" <= char <= "\ud7a3":
        return HANGUL
    return EMOJI if "\u2300" <= char < "\u2c00" else EM


@cache
def _read_advances(face: Face) -> dict[str, int]:
    others = zip(data.OTHER_LETTERS, _parse_numbers(data.OTHERS), strict=True)
    arabic = zip(data.ARABIC_LETTERS, _parse_numbers(data.ARABIC), strict=True)
    # The list of a face that draws only capitals is shorter than the letters.
    own = zip(data.LETTERS, _parse_numbers(face.value), strict=False)
    return dict([*others, *arabic, *own])


@cache
def _read_joined_advances() -> dict[str, int]:
    return dict(zip(data.ARABIC_LETTERS, _parse_numbers(data.ARABIC_JOINED), strict=True))


def _parse_numbers(listed: str) -> list[int]:
    return [int(number) for number in listed.split()]
