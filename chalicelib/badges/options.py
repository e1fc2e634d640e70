"""How a badge is to look, from its query: the options of both badges, JSON and SVG."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from chalicelib.views.ids import REFUSED_CATEGORIES

if TYPE_CHECKING:
    from chalice.app import Request

Query = Mapping[str, Sequence[str]]
"""The values of each query parameter."""

FORMATS = ("plain", "comma", "short")
STYLES = ("flat", "flat-square", "plastic", "for-the-badge", "social")
MAX_LABEL = 100
MAX_LOGO = 50
MAX_BASE = 10**15
SHOWN = 20
"""So much of a wrong value stands in the refusal, which has to fit on a badge."""
THOUSANDS = ("", "k", "M", "B", "T")


class BadOptionError(ValueError):
    """An option is wrong; the message names it and says what to give, short enough for a badge."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a caller wants to see; an empty text leaves it to the badge.

    `label` is None where none is given, for an empty one is a badge without a label. `base` is
    added to the count shown.
    """

    peek: bool = False
    label: str | None = None
    color: str = ""
    label_color: str = ""
    style: str = ""
    logo: str = ""
    format: str = "plain"
    base: int = 0

    def message(self, count: int) -> str:
        """A count as it is shown: 1234, 1,234 or 1.2k."""
        count += self.base
        if self.format == "comma":
            return f"{count:,}"
        return short(count) if self.format == "short" else str(count)


def query_of(request: Request) -> Query:
    """The query of a request."""
    return request.to_original_event().get("multiValueQueryStringParameters") or {}


def parse(query: Query) -> Options:
    """The options in a query. Raises `BadOptionError`."""
    return Options(
        peek=one(query, "peek", _flag, default=False),
        label=one(query, "label", _label, default=None),
        color=one(query, "color", _color, default=""),
        label_color=one(query, "labelColor", _color, default=""),
        style=one(query, "style", partial(_among, STYLES), default=""),
        logo=one(query, "logo", _logo, default=""),
        format=one(query, "format", partial(_among, FORMATS), default="plain"),
        base=one(query, "base", base, default=0),
    )


def short(count: int) -> str:
    """1.2k for 1234, 12k for 12345: cut off, so that it never says more than there is."""
    power = min((len(str(count)) - 1) // 3, len(THOUSANDS) - 1)
    whole, rest = divmod(count, 1000**power)
    tenths = rest * 10 // 1000**power
    point = f".{tenths}" if whole < len("0123456789") and tenths else ""
    return f"{whole}{point}{THOUSANDS[power]}"


def one(query: Query, name: str, read: Callable[[str], Any], *, default: Any) -> Any:
    """The option `name`, or its default where the query has none; an option is given once.

    Empty is as good as not given, but for the label. Raises `BadOptionError`.
    """
    values = query.get(name, ())
    if len(values) > 1:
        raise BadOptionError(f"{name}: give one, not {len(values)}")
    if not values or (values[0] == "" and name != "label"):
        return default
    try:
        return read(values[0])
    except ValueError as wrong:
        raise BadOptionError(f"{name}: {wrong}") from None


def _flag(given: str) -> bool:
    if given not in {"0", "1"}:
        raise ValueError(f"give 1 or 0, not {shown(given)}")
    return given == "1"


def _label(given: str) -> str:
    if len(given) > MAX_LABEL:
        raise ValueError(f"give at most {MAX_LABEL} characters, not {len(given)}")
    for category in map(unicodedata.category, given):
        if category in REFUSED_CATEGORIES:
            raise ValueError(f"it has {REFUSED_CATEGORIES[category]}: leave it out")
    return given


def _color(given: str) -> str:
    from chalicelib.badges import colors  # noqa: PLC0415  most badges ask for none

    return colors.parse(given)


def _among(known: Sequence[str], given: str) -> str:
    if given not in known:
        raise ValueError(f"give {', '.join(known)}, not {shown(given)}")
    return given


def _logo(given: str) -> str:
    if not (given.isascii() and given.isalnum() and given == given.lower()):
        raise ValueError(f"give a simple-icons name like github, not {shown(given)}")
    if len(given) > MAX_LOGO:
        raise ValueError(f"give at most {MAX_LOGO} characters, not {len(given)}")
    return given


def base(given: str) -> int:
    """A count to start from. Raises `ValueError`, which says what to give."""
    decimal = given.isascii() and given.isdecimal() and len(given) <= len(str(MAX_BASE))
    if not (decimal and int(given) <= MAX_BASE):
        raise ValueError(f"give a whole number from 0 to {MAX_BASE}, not {shown(given)}")
    return int(given)


def shown(given: str) -> str:
    """The beginning of a wrong value as it is written out, where one character may take ten."""
    return repr(given)[:SHOWN]
