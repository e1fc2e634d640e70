"""The options of a badge's look, which JSON and SVG badges read from the query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from chalicelib.http.messages import Query
from chalicelib.http.query import among, check_characters, is_plain, one, shown
from chalicelib.lazy import lazy

if TYPE_CHECKING:
    from chalicelib.badges import colors, own_logo
    from chalicelib.badges.logos import Logo
else:
    colors = lazy("chalicelib.badges.colors")
    own_logo = lazy("chalicelib.badges.own_logo")

LOOK = ("label", "color", "labelColor", "style", "logo", "logoColor")
"""The options of every badge."""
FORMATS = ("plain", "comma", "short")
STYLES = ("flat", "flat-square", "plastic", "for-the-badge", "social")
PIXEL = "pixel"
"""The style of an image that counts and that nobody sees."""
MAX_LABEL = 100
MAX_LOGO = 50
OWN_LOGO = "data:"
"""The beginning of a logo that is not a name."""
MAX_BASE = 10**15
THOUSANDS = ("", "k", "M", "B", "T")


@dataclass(frozen=True, slots=True)
class Options:
    """The options that a caller gives; an empty text means the badge's default.

    `label` is None if none is given, because an empty one means a badge without a label. `logo` is
    a name or the user's own. `base` is added to the count.
    """

    peek: bool = False
    label: str | None = None
    color: str = ""
    label_color: str = ""
    style: str = ""
    logo: str | Logo = ""
    logo_color: str = ""
    format: str = "plain"
    base: int = 0

    def message(self, count: int) -> str:
        """Return the text of a count and the base."""
        return self.write(count + self.base)

    def write(self, count: int) -> str:
        """Return a number as it is shown: 1234, 1,234 or 1.2k."""
        if self.format == "comma":
            return f"{count:,}"
        return short(count) if self.format == "short" else str(count)


PLAIN = Options()


def parse(query: Query, styles: Sequence[str] = STYLES) -> Options:
    """Return the options in a query, with one of the `styles`. Raises `BadRequestError`."""
    if is_plain(query):
        return PLAIN
    return Options(
        peek=one(query, "peek", _flag, default=False),
        label=one(query, "label", _label, default=None, may_be_empty=True),
        color=one(query, "color", _color, default=""),
        label_color=one(query, "labelColor", _color, default=""),
        style=one(query, "style", partial(among, styles), default=""),
        logo=one(query, "logo", _logo, default=""),
        logo_color=one(query, "logoColor", _color, default=""),
        format=one(query, "format", partial(among, FORMATS), default="plain"),
        base=one(query, "base", base, default=0),
    )


def short(count: int) -> str:
    """Return 1.2k for 1234 and 12k for 12345, rounded down, so that it never shows too much."""
    power = min((len(str(count)) - 1) // 3, len(THOUSANDS) - 1)
    whole, rest = divmod(count, 1000**power)
    tenths = rest * 10 // 1000**power
    point = f".{tenths}" if whole < len("0123456789") and tenths else ""
    return f"{whole}{point}{THOUSANDS[power]}"


def _flag(given: str) -> bool:
    if given not in {"0", "1"}:
        raise ValueError(f"give 1 or 0, not {shown(given)}")
    return given == "1"


def _label(given: str) -> str:
    if len(given) > MAX_LABEL:
        raise ValueError(f"give at most {MAX_LABEL} characters, not {len(given)}")
    check_characters(given, "it")
    return given


def _color(given: str) -> str:
    return colors.parse(given)


def _logo(given: str) -> str | Logo:
    if given.startswith(OWN_LOGO):
        return own_logo.parse(given)
    if not (given.isascii() and given.isalnum() and given == given.lower()):
        raise ValueError(f"give a simple-icons name like github, not {shown(given)}")
    if len(given) > MAX_LOGO:
        raise ValueError(f"give at most {MAX_LOGO} characters, not {len(given)}")
    return given


def base(given: str) -> int:
    """Parse a base. Raises `ValueError`, whose message says what to give."""
    decimal = given.isascii() and given.isdecimal() and len(given) <= len(str(MAX_BASE))
    if not (decimal and int(given) <= MAX_BASE):
        raise ValueError(f"give a whole number from 0 to {MAX_BASE}, not {shown(given)}")
    return int(given)
