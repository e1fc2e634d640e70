"""The id of a badge: a text of 1 to 200 characters and 400 bytes, as NFC."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from fnmatch import fnmatchcase

from chalicelib.http.errors import BadRequestError, ClientError
from chalicelib.http.query import check_characters
from chalicelib.settings import Settings

MAX_CHARACTERS = 200
MAX_BYTES = 400
"""Bytes of UTF-8."""
MAX_COMPOSED = 4
"""The most characters that NFC composes to one (Unicode Standard Annex #15)."""
FORMAT = "Cf"
"""The Unicode category of characters that show nothing, or turn the direction of others."""


class BadIdError(BadRequestError):
    """An id is missing or malformed. The message says what to give, and fits on a badge."""


class NotCountedError(ClientError):
    """The operator of this server counts other ids (`IDS`)."""

    status = 403
    code = "not_counted"


def parse(given: Sequence[str]) -> str:
    """Return the only value of a query parameter as an id. Raises `BadIdError`."""
    if not given:
        raise BadIdError("give an id: ?id=owner/name")
    if len(given) > 1:
        raise BadIdError(f"give one id, not {len(given)}")
    return normalise(given[0])


def normalise(raw: str) -> str:
    """Return an id in the form in which it is stored. Raises `BadIdError`.

    The time to normalise many combining characters grows with the square of their number.
    """
    _check_length(raw, MAX_CHARACTERS * MAX_COMPOSED)
    badge_id = unicodedata.normalize("NFC", raw)
    if not badge_id:
        raise BadIdError("the id is empty: give one like owner/name")
    _check_length(badge_id, MAX_CHARACTERS)
    if not badge_id.isprintable():  # printable characters have none of the refused categories
        _check_characters(badge_id)
    return badge_id


def _check_characters(badge_id: str) -> None:
    try:
        check_characters(badge_id, "the id")
    except ValueError as wrong:
        raise BadIdError(str(wrong)) from None
    for character in badge_id:
        if unicodedata.category(character) == FORMAT:
            point = f"U+{ord(character):04X}"
            raise BadIdError(f"the id has {point}, a character that is not shown: leave it out")


def _check_length(given: str, most: int) -> None:
    size = len(given.encode(errors="surrogatepass"))
    if len(given) > most or size > most * MAX_BYTES // MAX_CHARACTERS:
        raise BadIdError(
            f"the id has {len(given)} characters and {size} bytes: give at most {MAX_CHARACTERS}"
            f" and {MAX_BYTES}"
        )


def check_counted(badge_id: str, settings: Settings) -> None:
    """Raise `NotCountedError` for an id that the operator does not count."""
    if settings.ids and not any(fnmatchcase(badge_id, pattern) for pattern in settings.ids):
        raise NotCountedError("this id is not counted here: the operator must add it to IDS")
