"""The id of a badge: a text of 1 to 200 characters and 400 bytes, as NFC."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from fnmatch import translate
from functools import cache, cached_property, lru_cache
from typing import Any, TypeVar

from chalicelib.http.errors import BadRequestError, ClientError
from chalicelib.http.fields import Field, Options, Repeated, schema, string
from chalicelib.http.messages import Query, Unchanging
from chalicelib.http.query import MAX_CACHED, check_characters
from chalicelib.resources import Resources

MAX_CHARACTERS = 200
MAX_BYTES = 400
"""Bytes of UTF-8."""
MAX_COMPOSED = 4
"""The most characters that NFC composes to one (Unicode Standard Annex #15)."""
FORMAT = "Cf"
"""The Unicode category of characters that show nothing, or turn the direction of others."""


CHARACTERS = (
    r"[^\u0000-\u001f\u007f-\u009f\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e"
    r"\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb]*"
)
"""The pattern of texts without control and format characters (Unicode category Cf).

Some format characters above U+FFFF are missing, because no escape is the same in ECMAScript and in
Python.
"""
ID = schema("Id", string(CHARACTERS, minLength=1, maxLength=MAX_CHARACTERS))


class BadIdError(BadRequestError):
    """An id is missing or malformed. The message says what to give, and fits on a badge."""


class NotCountedError(ClientError):
    """The operator of this server counts other ids (`IDS`)."""

    status = 403
    code = "not_counted"


class BannedError(ClientError):
    """The operator has banned the id: its views are not counted, and its numbers not told."""

    status = 403
    code = "banned"


def parse(given: str | None) -> str:
    """Return an option of a query as an id. Raises `BadIdError`."""
    if given is None:
        raise BadIdError("give an id: ?id=owner/name")
    return normalise(given)


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


Asked = TypeVar("Asked", bound="IdOption | IdsOptions")


class IdOption(Options):
    """The id of a badge in a query."""

    badge_id = Field(
        parse,
        ID,
        f"The badge: any text of at most {MAX_BYTES} bytes of UTF-8 without control characters and"
        " format characters (Unicode category Cf: bidirectional controls, zero-width characters),"
        " percent-encoded. Two spellings of one Unicode text are one id (NFC). Letters of different"
        " case are different ids. An operator may list the ids that are counted (`IDS`); a badge of"
        " another id is an error.",
        name="id",
        example="owner/name",
    )

    @cached_property
    def badge_ids(self) -> Sequence[str]:
        return (self.badge_id,)


class IdsOptions(Options):
    """The ids of several badges in a query, which a subclass declares."""

    badge_ids: Repeated[str]


def several(most: int, **rules: Any) -> Repeated[str]:
    """Declare the ids of several badges."""
    words = "The badges, each as the `id` of a badge alone."
    example = ["owner/name", "owner/other"]
    return Repeated(parse, ID, words, most=most, name="id", example=example, **rules)


class Patterns:
    """Patterns of ids, in which only `*` has a meaning: any characters."""

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        self._exact = frozenset(unicodedata.normalize("NFC", pattern) for pattern in patterns)
        wild = [pattern for pattern in self._exact if "*" in pattern]
        globs = [translate(one.replace("[", "[[]").replace("?", "[?]")) for one in wild]
        self._wild = re.compile("|".join(globs)) if globs else None

    def cover(self, badge_id: str) -> bool:
        """Return whether a pattern matches an id."""
        if badge_id in self._exact:
            return True
        return self._wild is not None and self._wild.match(badge_id) is not None


_patterns = cache(Patterns)


def is_counted(badge_id: str, resources: Resources) -> bool:
    """Return whether the operator counts an id, and has not banned it."""
    return _is_listed(badge_id, resources) and not resources.bans.cover(badge_id)


def _is_listed(badge_id: str, resources: Resources) -> bool:
    listed = resources.settings.ids
    return not listed or _patterns(listed).cover(badge_id)


def check_counted(badge_id: str, resources: Resources) -> None:
    """Raise `NotCountedError` or `BannedError` for an id that the operator does not count."""
    if not _is_listed(badge_id, resources):
        raise NotCountedError("this id is not counted here: the operator must add it to IDS")
    check_not_banned(badge_id, resources)


def check_not_banned(badge_id: str, resources: Resources) -> None:
    """Raise `BannedError` for an id that the operator has banned."""
    if resources.bans.cover(badge_id):
        raise BannedError("not counted here")


def read(kind: Callable[[Query], Asked], query: Query, resources: Resources) -> Asked:
    """Return the options of a query for badges that are all counted here. Raises `ClientError`."""
    options = _read_once(kind, query) if isinstance(query, Unchanging) else kind(query)
    for badge_id in options.badge_ids:
        check_counted(badge_id, resources)
    return options


@lru_cache(MAX_CACHED)
def _read_once(kind: Callable[[Query], Asked], query: Unchanging[str, Sequence[str]]) -> Asked:
    return kind(query)
