"""ULIDs: ids of 26 characters, a time in milliseconds and random bits, that sort by their times.

Source: the specification of ULID, "Canonical String Representation" and "Encoding".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from os import urandom

from chalicelib.units import Milliseconds

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
CANONICAL = re.compile("[0-7][0-9A-HJKMNP-TV-Z]{25}")
"""A ULID in its canonical form."""
TO_DIGITS = str.maketrans(ALPHABET, "0123456789ABCDEFGHIJKLMNOPQRSTUV")
"""The digits of Python's numbers with base 32."""
TO_CHARACTERS = bytes(ord(ALPHABET[byte % len(ALPHABET)]) for byte in range(256))
"""The character of each byte, by its lowest five bits."""
TIME_CHARACTERS = 10
"""The first characters of a ULID, which are its time."""
RANDOM_CHARACTERS = 16
"""The other characters of a ULID, which are random."""
TIMES = range(2**48)
"""The times that a ULID can have."""
CHARACTER_BITS = 5
LOWEST_BITS = 0b11111
LAST_CHARACTERS = [first + last for first in ALPHABET for last in ALPHABET]
"""The last two characters of a time. The others are the same for about a second."""
MAX_CACHED = 4_096
"""Results that are cached, because the lowest ULID of a window is computed often."""


def new_ulid(at: Milliseconds, random_bytes: Callable[[int], bytes] = urandom) -> str:
    """Return a new ULID of a time. Each character of its random part has five random bits."""
    random = random_bytes(RANDOM_CHARACTERS).translate(TO_CHARACTERS).decode()
    return earliest(at)[:TIME_CHARACTERS] + random


def milliseconds(ulid: str) -> Milliseconds:
    """Return the time of a ULID. Raises `ValueError` for any other text."""
    return _decode(ulid, TIME_CHARACTERS)


@lru_cache(MAX_CACHED)
def earliest(at: Milliseconds) -> str:
    """Return the lowest ULID of a time."""
    return _time(at) + ALPHABET[0] * RANDOM_CHARACTERS


def latest(at: Milliseconds) -> str:
    """Return the highest ULID of a time."""
    return _time(at) + ALPHABET[-1] * RANDOM_CHARACTERS


def from_number(number: int) -> str:
    """Return the ULID of a number of 128 bits, of which the highest 48 are its time."""
    return _encode(number, TIME_CHARACTERS + RANDOM_CHARACTERS)


def to_number(ulid: str) -> int:
    """Return the 128 bits of a ULID. Raises `ValueError` for any other text."""
    return _decode(ulid, TIME_CHARACTERS + RANDOM_CHARACTERS)


def _time(at: Milliseconds) -> str:
    """Return the first characters of a ULID. Raises `ValueError` for a time that none has."""
    if at not in TIMES:
        raise ValueError(f"{at} ms is no time of a ULID")
    first, last = divmod(at, len(LAST_CHARACTERS))
    return _first_characters(first) + LAST_CHARACTERS[last]


@lru_cache(MAX_CACHED)
def _first_characters(number: int) -> str:
    return _encode(number, TIME_CHARACTERS - len(LAST_CHARACTERS[0]))


def _encode(number: int, characters: int) -> str:
    places = range(CHARACTER_BITS * (characters - 1), -1, -CHARACTER_BITS)
    return "".join([ALPHABET[number >> bits & LOWEST_BITS] for bits in places])


def _decode(ulid: str, characters: int) -> int:
    """Return the number that the first characters encode."""
    if not CANONICAL.fullmatch(ulid):
        raise ValueError(f"{ulid!r} is not a ULID in its canonical form")
    return int(ulid[:characters].translate(TO_DIGITS), len(ALPHABET))
