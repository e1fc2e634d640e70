"""A badge, and the options of its look and of its number.

Source: shields.io, "Endpoint Badge". The JSON has only keys of its schema: older versions of
shields refuse any other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from chalicelib.http.fields import Field, Json, Options, choice, enum, integer, schema, string
from chalicelib.http.query import among, short_text, shown, whole_number
from chalicelib.lazy import lazy

if TYPE_CHECKING:
    from chalicelib.badges import colors, own_logo
    from chalicelib.badges.logos import Logo
else:
    colors = lazy("chalicelib.badges.colors")
    own_logo = lazy("chalicelib.badges.own_logo")

STYLES = ("flat", "flat-square", "plastic", "for-the-badge", "social")
PIXEL = "pixel"
"""The style of an image that counts and that nobody sees."""
SPARK_DAYS = range(7, 91)
"""The days that a sparkline may have."""
MAX_LABEL = 100
MAX_LOGO = 50
OWN_LOGO = "data:"
"""The beginning of a logo that is not a name."""
MAX_BASE = 10**15
THOUSANDS = ("", "k", "M", "B", "T")

NO_CONTROL_CHARACTERS = r"[^\u0000-\u001f\u007f-\u009f]*"
LOGO_NAME = string("[a-z0-9]+")
COLOR = schema("Color", string("(#?([0-9A-Fa-f]{3}|[0-9A-Fa-f]{6})|[A-Za-z]+)"))
A_COLOR = "A name of CSS or shields.io, or hex digits."
STYLE = schema("Style", enum(STYLES))
BASE = schema("Base", integer(0, MAX_BASE))
base = partial(whole_number, range(MAX_BASE + 1))
"""The parser of a base. It raises `ValueError`, whose message says what to give."""


def short(count: int) -> str:
    """Return 1.2k for 1234 and 12k for 12345, rounded down, so that it never shows too much."""
    power = min((len(str(count)) - 1) // 3, len(THOUSANDS) - 1)
    whole, rest = divmod(count, 1000**power)
    tenths = rest * 10 // 1000**power
    point = f".{tenths}" if whole < len("0123456789") and tenths else ""
    return f"{whole}{point}{THOUSANDS[power]}"


def flag(given: str) -> bool:
    """Parse 0 or 1. Raises `ValueError`."""
    if given not in {"0", "1"}:
        raise ValueError(f"give 1 or 0, not {shown(given)}")
    return given == "1"


FORMATS: Mapping[str, Callable[[int], str]] = {"plain": str, "comma": "{:,}".format, "short": short}


def color_option(words: str, example: str, name: str = "") -> Field[str]:
    """Declare an option that is a colour."""
    return Field(_color, COLOR, words, name=name, default="", example=example)


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


def _logo_schema() -> Json:
    url = re.escape(own_logo.PREFIX)
    own = string(f"{url}[A-Za-z0-9+/]+={{0,2}}", maxLength=own_logo.MAX_LENGTH)
    return {"anyOf": [LOGO_NAME | {"maxLength": MAX_LOGO}, own]}


class Badge(NamedTuple):
    """A badge to be drawn, by shields.io or as SVG.

    `color` is the background of the message, `label_color` that of the label and its logo, each in
    a form that `colors.parse` accepts. `logo` is a name of simple-icons, or a user's own. If
    `label_color`, `style`, `logo` or `logo_color` is empty, shields chooses it. `spark` has the
    views of the last days, the oldest first, of which only an SVG shows a line.
    """

    label: str
    message: str
    color: str = "blue"
    label_color: str = ""
    style: str = ""
    logo: str | Logo = ""
    logo_color: str = ""
    spark: tuple[int, ...] = ()
    is_error: bool = False

    @classmethod
    def error(cls, label: str, reason: str) -> Badge:
        return cls(label, reason, "red", is_error=True)

    def to_json(self) -> Mapping[str, Any]:
        optional = {
            "labelColor": self.label_color,
            "style": self.style,
            "isError": self.is_error,
            **self._logo_to_json(),
        }
        return {
            "schemaVersion": 1,
            "label": self.label,
            "message": self.message,
            "color": self.color,
            **{name: value for name, value in optional.items() if value},
        }

    def _logo_to_json(self) -> Mapping[str, str]:
        """Return a named logo with its colour, or an own logo, which has its colour inside."""
        if not isinstance(self.logo, str):
            return {"logoSvg": self.logo.document(self.logo_color)}
        return {"namedLogo": self.logo, "logoColor": self.logo_color if self.logo else ""}


class Look(Options):
    """The options of every badge. An empty text means the badge's default.

    `label` is None if none is given. `logo` is a name or the user's own.
    """

    label = Field[str | None](
        partial(short_text, MAX_LABEL),
        string(NO_CONTROL_CHARACTERS, maxLength=MAX_LABEL),
        "The text on the left, in place of the badge's own. An empty one leaves the badge without a"
        " label.",
        default=None,
        example="visitors",
        may_be_empty=True,
    )
    color = color_option(f"Of the message. {A_COLOR}", "green")
    label_color = color_option(f"Of the label. {A_COLOR}", "#555", name="labelColor")
    style = Field(partial(among, STYLES), STYLE, f"{STYLES[0]} if none is given.", default="")
    logo = Field["str | Logo"](
        _logo,
        _logo_schema,
        "A simple-icons name: the SVG draws the common ones, and names the reason for others. Or"
        " your own SVG in a data URL: shapes and colours alone, without text and references.",
        default="",
        example="github",
    )
    logo_color = color_option(
        f"Of the logo. {A_COLOR} The brand's colour, or one that is visible, if none is given.",
        "white",
        name="logoColor",
    )

    def badge(self, label: str, message: str, color: str, spark: tuple[int, ...] = ()) -> Badge:
        """Return a badge with this look, which has its own label and colour unless one is given."""
        label = label if self.label is None else self.label
        look = self.color or color, self.label_color, self.style, self.logo, self.logo_color
        return Badge(label, message, *look, spark)


class NumberFormat(Options):
    """The form of a number."""

    format = choice(lambda: FORMATS, "Of the count: 1234, 1,234 or 1.2k.", "plain")

    def total(self, count: int) -> int:
        """Return the number of all views that is shown."""
        return count

    def write(self, count: int) -> str:
        """Return a number as it is shown: 1234, 1,234 or 1.2k."""
        return FORMATS[self.format](count)


class CountFormat(NumberFormat):
    """The form of a count, to which `base` is added."""

    base = Field(base, BASE | {"default": 0}, "Added to the shown count.", default=0, example=1200)

    def total(self, count: int) -> int:
        return count + self.base


PLAIN = Look()
