"""The layout and the markup that all styles of an SVG badge share. Lengths are in pixels.

Values are named tuples, because a dataclass adds six times as much to a cold start.
"""

from __future__ import annotations

from typing import NamedTuple

from chalicelib.badges import spark, text_width
from chalicelib.badges.logos import Logo

LOGO_SIZE = 14
"""The size of a logo on shields.io."""
LOGO_GAP = 3
"""The gap between a logo and a label."""


class Drawing(NamedTuple):
    """The input of a style: texts that XML allows, and colours as `#rrggbb`."""

    label: str
    message: str
    color: str
    label_color: str
    logo: Logo | None
    logo_color: str
    """The colour of the logo, or empty for one that is visible on its background."""
    logo_has_block: bool
    """True if a logo without a label has the label's background instead of the message's."""
    key: str
    """A suffix that makes the ids in the document unique."""
    spark: tuple[int, ...] = ()
    """The views of the last days, of which the message half has a line."""

    @property
    def spark_width(self) -> int:
        """Return the width that the sparkline adds to the message half."""
        return spark.measure(self.spark) + spark.GAP if self.spark else 0


class Text(NamedTuple):
    """A text and its length."""

    content: str
    length: float


class Line(NamedTuple):
    """A text, the middle of its baseline, and its background."""

    text: Text
    x: float
    y: float
    background: str


class Measures(NamedTuple):
    """The layout of a style with two halves."""

    height: int
    baseline: float
    padding: int
    """The space to the left and to the right of a text."""
    logo_x: int
    logo_alone: int
    """The width that a logo without a label adds to the message's half."""
    inwards: int
    """The distance of a text from the middle of its half, towards the seam."""
    shade: float = 0
    """The share by which a shine darkens the background of the logo."""


class BadgeLayout(NamedTuple):
    """The positions where the halves meet and end, and their texts."""

    seam: float
    end: float
    label: Line
    message: Line


def halves(drawing: Drawing, measures: Measures, label: Text, message: Text) -> BadgeLayout:
    """Lay out two halves for texts of these lengths."""
    seam = _find_seam(drawing, measures, label)
    alone = measures.logo_alone if drawing.logo and not seam else 0
    end = seam + alone + message.length + drawing.spark_width + 2 * measures.padding
    left = seam - measures.padding - label.length / 2 + measures.inwards
    right = end - drawing.spark_width - measures.padding - message.length / 2
    right -= measures.inwards if seam else 0
    return BadgeLayout(
        seam,
        end,
        Line(label, left, measures.baseline, drawing.label_color),
        Line(message, right, measures.baseline, drawing.color),
    )


def _find_seam(drawing: Drawing, measures: Measures, label: Text) -> float:
    """Return the width of the label's half, which may have only a logo."""
    if drawing.label:
        return label.length + 2 * measures.padding + (LOGO_SIZE + LOGO_GAP if drawing.logo else 0)
    if drawing.logo and drawing.logo_has_block:
        return LOGO_SIZE + 2 * measures.logo_x
    return 0


def escape(content: str) -> str:
    """Escape a text for XML, also between double quotes."""
    for char, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&#34;")):
        content = content.replace(char, entity)
    return content


def number(pixels: float) -> str:
    """Format a length in its shortest form, to a hundredth of a pixel."""
    return f"{pixels:.2f}".rstrip("0").rstrip(".")


def write(line: Line, attributes: str = "", lower: int = 0, *, scaled: bool = False) -> str:
    """Write a text that has its length in every font of a renderer.

    Scaled letters become narrower in a wider font; otherwise only the space between them does.
    """
    content = line.text.content
    if not content:
        return ""
    # Space would separate letters that join.
    if scaled or text_width.joins(content):
        attributes += ' lengthAdjust="spacingAndGlyphs"'
    place = f'x="{number(line.x)}" y="{number(line.y + lower)}"'
    length = number(line.text.length)
    return f'<text {place} textLength="{length}"{attributes}>{escape(content)}</text>'


def backgrounds(drawing: Drawing, laid: BadgeLayout, height: int) -> str:
    """Write the two halves, or one if there is no label."""
    seam, rest = number(laid.seam), number(laid.end - laid.seam)
    label = f'<rect width="{seam}" height="{height}" fill="{drawing.label_color}"/>'
    message = f'<rect x="{seam}" width="{rest}" height="{height}" fill="{drawing.color}"/>'
    return (label if laid.seam else "") + message


def draw_spark(drawing: Drawing, end: float, height: int, background: str) -> str:
    """Write the sparkline so that it ends at a place, or nothing."""
    if not drawing.spark:
        return ""
    x, bottom = end - spark.measure(drawing.spark), height // 2 + spark.HEIGHT // 2
    return spark.draw(drawing.spark, x, bottom, background)


def draw_logo(drawing: Drawing, x: int, height: int, background: str) -> str:
    """Write the logo in the middle of a height, or nothing.

    The nested `svg` clips the logo, so that no logo covers the texts.
    """
    if drawing.logo is None:
        return ""
    place = f'x="{x}" y="{(height - LOGO_SIZE) // 2}" width="{LOGO_SIZE}" height="{LOGO_SIZE}"'
    fill = drawing.logo_color or drawing.logo.fill_on(background)
    return f"<svg {place} {drawing.logo.attributes(fill)}>{drawing.logo.shapes}</svg>"
