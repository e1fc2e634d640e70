"""The id of a badge: any text of 1 to 200 characters without control characters, as NFC."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from chalicelib.http.errors import BadRequestError
from chalicelib.http.query import check_characters

MAX_CHARACTERS = 200
MAX_COMPOSED = 4
"""The most characters that NFC composes to one (Unicode Standard Annex #15)."""


class BadIdError(BadRequestError):
    """An id is missing or malformed. The message says what to give, and fits on a badge."""


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
    try:
        check_characters(badge_id, "the id")
    except ValueError as wrong:
        raise BadIdError(str(wrong)) from None
    return badge_id


def _check_length(given: str, most: int) -> None:
    if len(given) > most:
        raise BadIdError(f"the id has {len(given)} characters: give at most {MAX_CHARACTERS}")
