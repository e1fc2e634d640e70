"""A badge as an SVG image of our own, in the styles of shields.io.

Pure text out of plain values. Nothing in it refers to anything outside of it, so image proxies such
as GitHub's show all of it.
"""

from __future__ import annotations

import unicodedata
from binascii import crc32
from dataclasses import dataclass

from chalicelib.views import colors, logos, svg_styles
from chalicelib.views.logos import Logo
from chalicelib.views.svg_markup import Drawing, escape, number

MAX_BYTES = 4096
"""A logo that would make a badge larger is left out."""
LABEL_COLOR = "#555555"
NOT_DRAWN = {"Cc", "Cs"}
"""General categories: controls and halves of surrogate pairs, most of which XML 1.0 can't hold."""
NOT_IN_XML = "\ufffe\uffff"
SHOWN = 20
"""So much of a style that is none stands in the refusal, which has to fit on a badge."""


class BadStyleError(ValueError):
    """What was given is no style; the message says what to give, short enough for a badge."""


@dataclass(frozen=True, slots=True)
class Badge:
    """What a badge shows, as its caller wrote it."""

    label: str
    """The left half; empty for a badge that has none."""
    message: str
    color: str = "blue"
    """Behind the message: what `colors.parse` takes. Without a meaning for `social`."""
    label_color: str = ""
    """Behind the label and its logo; empty for grey."""
    style: str = "flat"
    logo: str = ""
    """What `logos.find` takes; one that is unknown is not drawn."""


def draw(badge: Badge) -> str:
    """The badge as an SVG document. Raises `BadColorError` and `BadStyleError`."""
    drawn = _document(badge, logos.find(badge.logo))
    return drawn if _fits(drawn) else _document(badge, None)


def can_draw_logo(badge: Badge) -> bool:
    """Whether the badge's logo is known and leaves room for the texts. Raises as `draw` does."""
    logo = logos.find(badge.logo)
    return logo is not None and _fits(_document(badge, logo))


def _fits(drawn: str) -> bool:
    return len(drawn.encode()) <= MAX_BYTES


def _document(badge: Badge, logo: Logo | None) -> str:
    drawing = _drawing(badge, logo)
    style = svg_styles.STYLES.get(badge.style)
    if style is None:
        known = ", ".join(svg_styles.STYLES)
        raise BadStyleError(f"no style {repr(badge.style)[:SHOWN]}: give {known}")
    picture = style(drawing)
    width, height = number(picture.width), picture.height
    name = escape(": ".join(filter(None, (drawing.label, drawing.message))))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}" role="img" aria-label="{name}">'
        f"<title>{name}</title>{picture.content}</svg>"
    )


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
