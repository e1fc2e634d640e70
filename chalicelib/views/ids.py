"""The id of a badge: any text of 1 to 200 characters without control characters, as NFC."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

MAX_CHARACTERS = 200
REFUSED_CATEGORIES = {"Cc": "a control character", "Cs": "half a surrogate pair"}
"""Unicode general categories; the second can't be written as UTF-8."""


class BadIdError(ValueError):
    """The id is missing or wrong; the message says what to give, short enough for a badge."""


def parse(given: Sequence[str]) -> str:
    """The one id among the values of a query parameter. Raises `BadIdError`."""
    if not given:
        raise BadIdError("give an id: ?id=owner/name")
    if len(given) > 1:
        raise BadIdError(f"give one id, not {len(given)}")
    return normalise(given[0])


def normalise(raw: str) -> str:
    """An id as it is stored. Raises `BadIdError`."""
    badge_id = unicodedata.normalize("NFC", raw)
    if not badge_id:
        raise BadIdError("the id is empty: give one like owner/name")
    if len(badge_id) > MAX_CHARACTERS:
        raise BadIdError(f"the id has {len(badge_id)} characters: give at most {MAX_CHARACTERS}")
    for category in map(unicodedata.category, badge_id):
        if category in REFUSED_CATEGORIES:
            raise BadIdError(f"the id has {REFUSED_CATEGORIES[category]}: leave it out")
    return badge_id
