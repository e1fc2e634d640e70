"""A badge as an SVG image, in the styles of shields.io.

The image refers to nothing outside itself, so image proxies such as GitHub's show it completely.
"""

from __future__ import annotations

import unicodedata
from binascii import crc32
from functools import lru_cache

from chalicelib.badges import colors, logos, svg_styles
from chalicelib.badges.logos import Logo
from chalicelib.badges.options import Badge
from chalicelib.badges.svg_styles import Drawing, escape, number

MAX_BYTES = 4096
"""A logo or a sparkline that would make a badge larger is left out."""
MAX_CACHED = 1_000
"""Images that are kept: many badges show the same count in the same style."""
NO_SUCH_LOGO = "it is not one of the included logos"
NO_ROOM = f"the badge would have more than {MAX_BYTES} bytes"
NO_SPARK = f"Without the sparkline: {NO_ROOM}."
LABEL_COLOR = "#555555"
DEFAULT_STYLE = "flat"
REMOVED_CATEGORIES = {"Cc", "Cs"}
"""General categories that XML 1.0 does not allow: controls and halves of surrogate pairs."""
REMOVED_CHARACTERS = "\ufffe\uffff"


@lru_cache(MAX_CACHED)
def draw(badge: Badge) -> str:
    """Draw a badge as an SVG document. Raises `ValueError`.

    A logo or a sparkline that can't be drawn is left out, and the image says why.
    """
    drawn = _draw_with_logo(badge)
    if badge.spark and not _fits(drawn):
        return _draw_with_logo(badge._replace(spark=()), NO_SPARK)
    return drawn


def _draw_with_logo(badge: Badge, description: str = "") -> str:
    if not badge.logo:
        return _write_document(badge, None, description)
    logo = logos.find(badge.logo) if isinstance(badge.logo, str) else badge.logo
    drawn = _write_document(badge, logo, description) if logo else ""
    if drawn and _fits(drawn):
        return drawn
    left_out = _describe(badge.logo, NO_ROOM if drawn else "")
    return _write_document(badge, None, f"{description} {left_out}".lstrip())


def _fits(drawn: str) -> bool:
    return len(drawn.encode()) <= MAX_BYTES


def _describe(logo: str | Logo, reason: str) -> str:
    """Describe why a logo is left out: for a reason, or because there is none of its name."""
    if not isinstance(logo, str):
        return f"Without your logo: {reason}."
    licence = logos.find_refused_licence(logo)
    unknown = f"its licence ({licence}) limits its use" if licence else NO_SUCH_LOGO
    return f"Without the logo {escape(_normalize(logo))}: {reason or unknown}."


def _write_document(badge: Badge, logo: Logo | None, description: str = "") -> str:
    drawing = _make_drawing(badge, logo)
    end, height, content = svg_styles.STYLES[badge.style or DEFAULT_STYLE](drawing)
    width = number(end)
    reason = f"<desc>{description}</desc>" if description else ""
    name = ": ".join(filter(None, (drawing.label, drawing.message)))
    if days := badge.spark:
        name += f"; last {len(days)} days: {sum(days)}, at most {max(days)} a day"
    name = escape(name)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}" role="img" aria-label="{name}">'
        f"<title>{name}</title>{reason}{content}</svg>"
    )


def _make_drawing(badge: Badge, logo: Logo | None) -> Drawing:
    return Drawing(
        label=_normalize(badge.label),
        message=_normalize(badge.message),
        color=colors.parse(badge.color),
        label_color=colors.parse(badge.label_color or LABEL_COLOR),
        logo=logo,
        logo_color=badge.logo_color and colors.parse(badge.logo_color),
        logo_has_block=bool(badge.label_color),
        # Other badges inlined in the same page must not use the gradients of this one.
        key=f"{crc32(repr(badge).encode()):08x}",
        spark=badge.spark,
    )


def _normalize(text: str) -> str:
    """Return a text as SVG shows it: white space as one space, and none at the ends."""
    if not (text.isascii() and text.isprintable()):
        text = "".join(map(_replace_character, text))
    return " ".join(filter(None, text.split(" ")))


def _replace_character(char: str) -> str:
    if char in "\t\n\r":
        return " "
    is_removed = unicodedata.category(char) in REMOVED_CATEGORIES or char in REMOVED_CHARACTERS
    return "" if is_removed else char
