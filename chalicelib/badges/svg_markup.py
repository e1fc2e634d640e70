"""The layout and the markup that the styles of an SVG badge share. All lengths are in pixels.

The values are named tuples: a dataclass takes six times as long to make at a cold start.
"""

from __future__ import annotations

from typing import NamedTuple

from chalicelib.badges import text_width
from chalicelib.badges.logos import SIDE, Logo

LOGO_SIZE = 14
"""As shields.io draws it."""
LOGO_GAP = 3
"""Between a logo and a label."""


class Drawing(NamedTuple):
    """What there is to draw: texts that XML holds, colours as `#rrggbb`."""

    label: str
    message: str
    color: str
    label_color: str
    logo: Logo | None
    logo_has_block: bool
    """A logo without a label stands on the label's colour, not on the message's."""
    key: str
    """What makes ids the badge's own."""


class Text(NamedTuple):
    """A text in the form in which it is drawn, and how long that is."""

    content: str
    length: float


class Line(NamedTuple):
    """A text, the middle of its baseline, and what is behind it."""

    text: Text
    x: float
    y: float
    background: str


class Measures(NamedTuple):
    """How a style of two halves is laid out."""

    height: int
    baseline: float
    padding: int
    """Left and right of a text."""
    logo_x: int
    logo_alone: int
    """What a logo without a label adds to the message's half."""
    inwards: int
    """How much nearer to the seam a text stands than in the middle."""


class Halves(NamedTuple):
    """Where the halves meet and end, and their texts."""

    seam: float
    end: float
    label: Line
    message: Line


def halves(drawing: Drawing, measures: Measures, label: Text, message: Text) -> Halves:
    """The layout of two halves for texts of these lengths."""
    seam = _seam(drawing, measures, label)
    alone = measures.logo_alone if drawing.logo and not seam else 0
    end = seam + alone + message.length + 2 * measures.padding
    left = seam - measures.padding - label.length / 2 + measures.inwards
    right = end - measures.padding - message.length / 2 - (measures.inwards if seam else 0)
    return Halves(
        seam,
        end,
        Line(label, left, measures.baseline, drawing.label_color),
        Line(message, right, measures.baseline, drawing.color),
    )


def _seam(drawing: Drawing, measures: Measures, label: Text) -> float:
    """How wide the label's half is; a logo's block is one too."""
    if drawing.label:
        return label.length + 2 * measures.padding + (LOGO_SIZE + LOGO_GAP if drawing.logo else 0)
    if drawing.logo and drawing.logo_has_block:
        return LOGO_SIZE + 2 * measures.logo_x
    return 0


def escape(content: str) -> str:
    """A text as XML holds it, also between double quotes."""
    for sign, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&#34;")):
        content = content.replace(sign, entity)
    return content


def number(pixels: float) -> str:
    """The shortest form of a length, to a hundredth of a pixel."""
    return f"{pixels:.2f}".rstrip("0").rstrip(".")


def write(line: Line, attributes: str = "", lower: int = 0) -> str:
    """A text that is drawn to its length whatever the renderer's font is."""
    content = line.text.content
    if not content:
        return ""
    # Space between letters is what gives way; between letters that touch it would tear them apart.
    if text_width.joins(content):
        attributes += ' lengthAdjust="spacingAndGlyphs"'
    place = f'x="{number(line.x)}" y="{number(line.y + lower)}"'
    length = number(line.text.length)
    return f'<text {place} textLength="{length}"{attributes}>{escape(content)}</text>'


def backgrounds(drawing: Drawing, laid: Halves, height: int) -> str:
    """The two halves; without a label there is one."""
    seam, rest = number(laid.seam), number(laid.end - laid.seam)
    label = f'<rect width="{seam}" height="{height}" fill="{drawing.label_color}"/>'
    message = f'<rect x="{seam}" width="{rest}" height="{height}" fill="{drawing.color}"/>'
    return (label if laid.seam else "") + message


def draw_logo(logo: Logo | None, x: int, height: int, background: str) -> str:
    """The logo in its square in the middle of a height, or nothing."""
    if logo is None:
        return ""
    place = f"translate({x} {(height - LOGO_SIZE) // 2})scale({LOGO_SIZE / SIDE:.5f})"
    return f'<path fill="{logo.fill_on(background)}" transform="{place}" d="{logo.path}"/>'
