"""A view: the GET makes it, and a message of the views queue carries it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from os import urandom

from chalicelib.counting import ids
from chalicelib.storage.messages import MalformedError
from chalicelib.units import Milliseconds

MESSAGE_SCHEMA = '{"id": text, "view": ULID, "first": boolean, "hot": boolean, "fold": boolean}'
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
CANONICAL = re.compile(f"[0-7][{ALPHABET}]{{25}}")
"""A ULID in its canonical form (the specification of ULID, "Encoding")."""
TO_DIGITS = str.maketrans(ALPHABET, "0123456789ABCDEFGHIJKLMNOPQRSTUV")
"""The digits of Python's numbers with base 32."""
TO_CHARACTERS = bytes(ord(ALPHABET[byte % len(ALPHABET)]) for byte in range(256))
"""The character of each byte, by its lowest five bits."""
TIME_CHARACTERS = 10
"""The first characters of a ULID, which are its time."""
TIMES = range(2**48)
"""The times that a ULID can have."""
PLACES = range(5 * (TIME_CHARACTERS - 1), -1, -5)
"""The places of the bits of each character of a time."""
LOWEST_BITS = 0b11111
RANDOM_CHARACTERS = 16
"""The other characters of a ULID, which are random."""
MAX_CACHED = 4_096
"""Results that are cached, because the lowest ULID of a window is computed often."""


@dataclass(frozen=True, slots=True)
class View:
    """One view of a badge.

    `ulid` identifies the view and has its time. `first` asks for the marker of the view's window,
    `hot` asks to count the view at once, and `fold` asks to fold the badge. `unmarked` asks
    to count it at once without a marker, because it is in the commit of its request: it can't come
    again.
    """

    badge_id: str
    ulid: str
    first: bool = True
    hot: bool = False
    fold: bool = False
    unmarked: bool = False

    @property
    def milliseconds(self) -> Milliseconds:
        """Return when the view was taken."""
        return milliseconds(self.ulid)

    def to_message(self) -> str:
        """Return the body of its message as JSON."""
        body = {"id": self.badge_id, "view": self.ulid, "first": self.first, "hot": self.hot}
        return json.dumps(body | ({"fold": True} if self.fold else {}))

    @classmethod
    def from_message(cls, body: object) -> View:
        """Return the view that a message carries. Raises `MalformedError`."""
        try:
            fields = json.loads(body)  # type: ignore[arg-type]
            flags = fields["first"], fields["hot"], fields.get("fold", False)
            view = cls(fields["id"], fields["view"], *flags)
            view._check(flags)
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise MalformedError(f"expected {MESSAGE_SCHEMA}: {error!r}") from error
        return view

    def _check(self, flags: tuple[object, ...]) -> None:
        if ids.normalise(self.badge_id) != self.badge_id:
            raise ValueError(f"id {self.badge_id!r} is not normalised")
        if not all(isinstance(flag, bool) for flag in flags):
            raise ValueError(f"first, hot and fold are true or false, not {flags}")
        milliseconds(self.ulid)


def ulid_in(body: object) -> str:
    """Return the ULID of the view that a message carries, empty for a malformed message."""
    try:
        return View.from_message(body).ulid
    except MalformedError:
        return ""


def new_ulid(at: Milliseconds) -> str:
    """Return a new ULID of a time. Each character of its random part has five random bits."""
    random = urandom(RANDOM_CHARACTERS).translate(TO_CHARACTERS).decode()
    return earliest(at)[:TIME_CHARACTERS] + random


def milliseconds(ulid: str) -> Milliseconds:
    """Return the time of a ULID. Raises `ValueError` for any other text.

    Each view needs it, and the library decodes all of a ULID character by character.
    """
    if not CANONICAL.fullmatch(ulid):
        raise ValueError(f"{ulid!r} is not a ULID in its canonical form")
    return int(ulid[:TIME_CHARACTERS].translate(TO_DIGITS), len(ALPHABET))


@lru_cache(MAX_CACHED)
def earliest(at: Milliseconds) -> str:
    """Return the lowest ULID of a time."""
    return _time(at) + ALPHABET[0] * RANDOM_CHARACTERS


def latest(at: Milliseconds) -> str:
    """Return the highest ULID of a time."""
    return _time(at) + ALPHABET[-1] * RANDOM_CHARACTERS


def _time(at: Milliseconds) -> str:
    """Return the first characters of a ULID. Raises `ValueError` for a time that none has."""
    if at not in TIMES:
        raise ValueError(f"{at} ms is no time of a ULID")
    return "".join([ALPHABET[at >> bits & LOWEST_BITS] for bits in PLACES])
