"""The parameters of a query, and the parsers of their values."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from functools import lru_cache
from urllib.parse import parse_qs

from chalicelib.http.errors import BadRequestError
from chalicelib.http.messages import Query, Unchanging

MAX_PARAMETERS = 120
"""The 100 ids of the longest list, and options beside them."""
MAX_CACHED = 2_048
"""Queries whose parameters are cached, because a README has the same ones on every visit."""
MAX_CACHED_CHARACTERS = 300
"""Characters of the longest query that is cached, so that all of them take little memory."""
SHOWN = 20
"""Characters of a wrong value in an error message, which must fit on a badge."""
REFUSED_CATEGORIES = {"Cc": "a control character", "Cs": "half a surrogate pair"}
"""Unicode general categories; the second can't be written as UTF-8."""


def parse(raw: str) -> Query:
    """Return the parameters of a query as it was sent, without the question mark.

    Raises `BadRequestError` for more than `MAX_PARAMETERS`.
    """
    return _parse_once(raw) if len(raw) <= MAX_CACHED_CHARACTERS else _parse(raw)


def _parse(raw: str) -> Query:
    number = 1 + raw.count("&")
    if number > MAX_PARAMETERS:
        raise BadRequestError(f"the query has {number} parameters: give at most {MAX_PARAMETERS}")
    return parse_qs(raw, keep_blank_values=True)


@lru_cache(MAX_CACHED)
def _parse_once(raw: str) -> Query:
    return Unchanging(_parse(raw))


def whole_number(known: range, given: str) -> int:
    """Return a whole number of a range. Raises `ValueError` for another text."""
    if re.fullmatch(f"[0-9]{{1,{len(str(known[-1]))}}}", given) and int(given) in known:
        return int(given)
    raise ValueError(f"give a whole number from {known[0]} to {known[-1]}, not {shown(given)}")


def among(known: Collection[str], given: str) -> str:
    """Return a text that is one of the known ones. Raises `ValueError` for another one."""
    if given not in known:
        raise ValueError(f"give {', '.join(known)}, not {shown(given)}")
    return given


def short_text(most: int, given: str) -> str:
    """Return a text of `most` characters that a badge can show. Raises `ValueError`."""
    if len(given) > most:
        raise ValueError(f"give at most {most} characters, not {len(given)}")
    check_characters(given, "it")
    return given


def shown(given: str) -> str:
    """Return the beginning of a wrong value, quoted for an error message."""
    return repr(given)[:SHOWN]


def check_characters(given: str, name: str) -> None:
    """Raise `ValueError` for a text with a character that no badge can show."""
    for category in map(unicodedata.category, given):
        if category in REFUSED_CATEGORIES:
            raise ValueError(f"{name} has {REFUSED_CATEGORIES[category]}: leave it out")
