"""How wide a text is drawn, with no font at hand: the widths of a badge's halves follow from it.

Exact for what Verdana holds, as shields.io measures it. Close for scripts that every system draws
in another font, where `textLength` makes the renderer keep to the width that is drawn here.
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
"""Advances are in hundredths of a pixel at 11 px; times the size, over this, they are in pixels."""
EM = 1100
HANGUL = 1012
"""Syllables are a little narrower than their square in Noto, Apple's and Microsoft's fonts."""
EMOJI = 1375
"""Noto's and Apple's are 1.25 em wide."""
VIRAMA, STEM = "\u094d", 220
"""A Devanagari consonant before a virama loses its stem."""
UNSEEN = {"Mn", "Me", "Cc", "Cf", "Cs"}
"""General categories that move no pen: combining marks, controls, joiners."""

EMOJI_SEQUENCE = (
    "[\U0001f1e6-\U0001f1ff]{2}"  # a flag is two letters
    "|(?:[\U0001f000-\U0001faff]|.(?=[\ufe0f\U0001f3fb-\U0001f3ff]))"
    "[\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*"
    "(?:\u200d.[\ufe0f\U0001f3fb-\U0001f3ff]*)*"
)
"""What one emoji is made of. Source: Unicode UTS #51, "ED-17. emoji sequence"."""


class Face(Enum):
    """A font of a badge."""

    VERDANA = data.VERDANA
    VERDANA_BOLD = data.VERDANA_BOLD
    HELVETICA_BOLD = data.HELVETICA_BOLD


def width(text: str, face: Face, size: float) -> float:
    """The width in pixels of a text at a size in pixels."""
    return sum(advances(text, face)) * size / PER_PIXEL


def advances(text: str, face: Face) -> list[int]:
    """The advance of each emoji, and of each other character that takes room.

    In hundredths of a pixel at 11 px, in no order.
    """
    letters, emoji = _without_emoji(unicodedata.normalize("NFC", text))
    table = _advances(face)
    taken = (_advance(one, following, table) for one, following in pairwise(letters + " "))
    return [EMOJI] * emoji + [advance for advance in taken if advance]


def joins(text: str) -> bool:
    """Whether letters of the text touch, so that space between them would tear them apart."""
    return any(
        "\u0600" <= one <= "\u109f" or "\u1780" <= one <= "\u18af" or "\ufb50" <= one <= "\ufeff"
        for one in text
    )


def _without_emoji(text: str) -> tuple[str, int]:
    """The rest of a text, without the marks over its letters, and the number of emoji."""
    if text.isascii():
        return text, 0
    rest, emoji = re.subn(EMOJI_SEQUENCE, "", text)
    kept = (one for one in rest if one == VIRAMA or unicodedata.category(one) != "Mn")
    return "".join(kept), emoji


def _advance(one: str, following: str, table: Mapping[str, int]) -> int:
    """The advance of a character, which may lean on the one that follows."""
    if following in data.ARABIC_LETTERS and one in _joined():
        return _joined()[one]
    advance = table.get(one)
    if advance is None:
        advance = _unlisted(one, table)
    return max(0, advance - STEM) if following == VIRAMA else advance


def _unlisted(one: str, table: Mapping[str, int]) -> int:
    """The advance of a character that no table holds: by what it is, or what it is made of."""
    if unicodedata.category(one) in UNSEEN:
        return 0
    squares = unicodedata.east_asian_width(one)
    if squares in "WF":
        return _square(one)
    if squares == "H":
        return EM // 2
    parts = unicodedata.normalize("NFKD", one)
    if parts != one:
        return sum(_advance(part, " ", table) for part in parts)
    return data.BLOCKS[bisect_right(data.BLOCKS, one, key=itemgetter(0)) - 1][1]


def _square(one: str) -> int:
    if "\uac00" <= one <= "\ud7a3":
        return HANGUL
    return EMOJI if "\u2300" <= one < "\u2c00" else EM


@cache
def _advances(face: Face) -> dict[str, int]:
    others = zip(data.OTHER_LETTERS, _numbers(data.OTHERS), strict=True)
    arabic = zip(data.ARABIC_LETTERS, _numbers(data.ARABIC), strict=True)
    # The list of a face that draws capitals alone is shorter than the letters.
    own = zip(data.LETTERS, _numbers(face.value), strict=False)
    return dict([*others, *arabic, *own])


@cache
def _joined() -> dict[str, int]:
    return dict(zip(data.ARABIC_LETTERS, _numbers(data.ARABIC_JOINED), strict=True))


def _numbers(listed: str) -> list[int]:
    return [int(number) for number in listed.split()]
