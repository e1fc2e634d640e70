"""A badge as an SVG image of our own, in the styles of shields.io.

Pure text out of plain values. Nothing in it refers to anything outside of it, so image proxies such
as GitHub's show all of it.
"""

from __future__ import annotations

import unicodedata
from binascii import crc32

from chalicelib.badges import colors, logos, svg_styles
from chalicelib.badges.badge import Badge
from chalicelib.badges.logos import Logo
from chalicelib.badges.svg_markup import Drawing, escape, number

MAX_BYTES = 4096
"""A logo that would make a badge larger is left out."""
NO_SUCH_LOGO = "it is not among those drawn here"
NO_ROOM = f"with it the badge would have more than {MAX_BYTES} bytes"
LABEL_COLOR = "#555555"
DEFAULT_STYLE = "flat"
NOT_DRAWN = {"Cc", "Cs"}
"""General categories: controls and halves of surrogate pairs, most of which XML 1.0 can't hold."""
NOT_IN_XML = "\ufffe\uffff"


def draw(badge: Badge) -> str:
    """Draw a badge. Raises `BadColorError`.

    A logo that can't be drawn is left out, and the picture says so.
    """
    if not badge.logo:
        return _document(badge, None)
    logo = logos.find(badge.logo)
    if logo is None:
        return _document(badge, None, NO_SUCH_LOGO)
    drawn = _document(badge, logo)
    return drawn if _fits(drawn) else _document(badge, None, NO_ROOM)


def _fits(drawn: str) -> bool:
    return len(drawn.encode()) <= MAX_BYTES


def _document(badge: Badge, logo: Logo | None, left_out: str = "") -> str:
    drawing = _drawing(badge, logo)
    picture = svg_styles.STYLES[badge.style or DEFAULT_STYLE](drawing)
    width, height = number(picture.width), picture.height
    name = escape(": ".join(filter(None, (drawing.label, drawing.message))))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}" role="img" aria-label="{name}">'
        f"<title>{name}</title>{_said(badge.logo, left_out)}{picture.content}</svg>"
    )


def _said(logo: str, left_out: str) -> str:
    """What the picture lacks, for whoever opens it or asks the page."""
    if not left_out:
        return ""
    return f"<desc>Without the logo {escape(_drawable(logo))}: {left_out}.</desc>"


def _drawing(badge: Badge, logo: Logo | None) -> Drawing:
    return Drawing(
        label=_drawable(badge.label),
        message=_drawable(badge.message),
        color=colors.parse(badge.color),
        label_color=colors.parse(badge.label_color or LABEL_COLOR),
        logo=logo,
        logo_has_block=bool(badge.label_color),
        # Badges of other content inlined in one page must not take this one's gradients.
        key=f"{crc32(repr(badge).encode()):08x}",
    )


def _drawable(text: str) -> str:
    """A text as it is drawn: SVG shows any white space as one space, and none at the ends."""
    if not (text.isascii() and text.isprintable()):
        text = "".join(map(_drawn, text))
    return " ".join(filter(None, text.split(" ")))


def _drawn(one: str) -> str:
    if one in "\t\n\r":
        return " "
    return "" if unicodedata.category(one) in NOT_DRAWN or one in NOT_IN_XML else one
