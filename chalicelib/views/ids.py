"""The id of a badge: any text of 1 to 200 characters without control characters, as NFC."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

MAX_CHARACTERS = 200
REFUSED_CATEGORIES = {"Cc": "a control character", "Cs": "half a surrogate pair"}
"""Unicode general categories that an id may not have; UTF-8 can't encode the second."""


class BadIdError(ValueError):
    """An id is missing or malformed. The message says what to give, and fits on a badge."""


def parse(given: Sequence[str]) -> str:
    """Return the only value of a query parameter as an id. Raises `BadIdError`."""
    if not given:
        raise BadIdError("give an id: ?id=owner/name")
    if len(given) > 1:
        raise BadIdError(f"give one id, not {len(given)}")
    return normalise(given[0])


def normalise(raw: str) -> str:
    """Return an id in the form in which it is stored. Raises `BadIdError`."""
    badge_id = unicodedata.normalize("NFC", raw)
    if not badge_id:
        raise BadIdError("the id is empty: give one like owner/name")
    if len(badge_id) > MAX_CHARACTERS:
        raise BadIdError(f"the id has {len(badge_id)} characters: give at most {MAX_CHARACTERS}")
    for category in map(unicodedata.category, badge_id):
        if category in REFUSED_CATEGORIES:
            raise BadIdError(f"the id has {REFUSED_CATEGORIES[category]}: leave it out")
    return badge_id
