"""The five styles of an SVG badge, with the measures of badge-maker 6.0 by shields.io.

Lengths are in pixels. Values are named tuples, because a dataclass adds six times as much to a cold
start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from chalicelib.badges import colors, text_width
from chalicelib.badges.logos import VISIBLE, Logo
from chalicelib.badges.text_width import Face

LOGO_SIZE = 14
"""The size of a logo on shields.io."""
LOGO_GAP = 3
"""The gap between a logo and a label."""

VERDANA = (
    'text-anchor="middle" text-rendering="geometricPrecision"'
    ' font-family="Verdana,Geneva,DejaVu Sans,sans-serif"'
)
HELVETICA = (
    'text-anchor="middle" text-rendering="geometricPrecision"'
    ' font-family="Helvetica Neue,Helvetica,Arial,DejaVu Sans Condensed,sans-serif"'
)
"""Many Linux systems have none of the first three, and a sans-serif with much wider digits."""
ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&#34;"})
SPARK_STEPS = {10: 6, 15: 4, 45: 2, 90: 1}
"""The pixels between two days, by the most days: so that a line is 36 to 89 pixels wide."""
SPARK_GAP = 6
"""The pixels between the message and the sparkline."""
SPARK_HEIGHT = 10
WHITE, BLACK = "#ffffff", "#000000"
TEXT_ON_DARK, SHADOW_ON_DARK = "#fff", "#010101"
TEXT_ON_LIGHT, SHADOW_ON_LIGHT = "#333", "#ccc"


Picture: TypeAlias = "tuple[float, int, str]"
"""The width and the height of a drawn badge in pixels, and its content."""


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
        return measure_spark(self.spark) + SPARK_GAP if self.spark else 0


class Line(NamedTuple):
    """A text and its length, the middle of its baseline, and its background."""

    content: str
    length: float
    x: float = 0
    y: float = 0
    background: str = ""


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


NORMAL = Measures(height=20, baseline=14, padding=5, logo_x=5, logo_alone=18, inwards=1)
LOW = Measures(height=18, baseline=13, padding=5, logo_x=5, logo_alone=18, inwards=1, shade=0.2)
HIGH = Measures(height=28, baseline=17.5, padding=12, logo_x=9, logo_alone=20, inwards=0)
LETTER_SPACING = 1.25
"""The letter spacing of `for-the-badge`, in pixels."""
SOCIAL_BUTTON, SOCIAL_BUBBLE, SOCIAL_LINE = "#fcfcfc", "#fafafa", "#d5d5d5"

FLAT_SHINE = (
    '<stop offset="0" stop-color="#bbb" stop-opacity=".1"/><stop offset="1" stop-opacity=".1"/>'
)
PLASTIC_SHINE = (
    '<stop offset="0" stop-color="#fff" stop-opacity=".7"/>'
    '<stop offset=".1" stop-color="#aaa" stop-opacity=".1"/>'
    '<stop offset=".9" stop-opacity=".3"/><stop offset="1" stop-opacity=".5"/>'
)
SOCIAL_SHINE = (
    '<stop offset="0" stop-color="#fcfcfc" stop-opacity="0"/><stop offset="1" stop-opacity=".1"/>'
)


def _draw_rounded(drawing: Drawing, measures: Measures, shine: str, radius: int) -> Picture:
    halves, key = _lay_out_halves(drawing, measures), drawing.key
    size = f'width="{number(halves.end)}" height="{measures.height}"'
    content = (
        f'<filter id="b{key}"><feGaussianBlur stdDeviation="1.6"/></filter>'
        f'<linearGradient id="s{key}" x2="0" y2="100%">{shine}</linearGradient>'
        f'<clipPath id="r{key}"><rect {size} rx="{radius}"/></clipPath>'
        f'<g clip-path="url(#r{key})">{backgrounds(drawing, halves, measures.height)}'
        f'<rect {size} fill="url(#s{key})"/></g>'
        f'<g {VERDANA} font-size="11">{_draw_logo(drawing, halves, measures)}'
        f"{_draw_raised(halves.label, key)}{_draw_raised(halves.message, key)}</g>"
        f"{draw_spark(drawing, halves.end - measures.padding, measures.height)}"
    )
    return halves.end, measures.height, content


def flat_square(drawing: Drawing) -> Picture:
    """Draw a square badge with one colour per half and no shadows."""
    halves = _lay_out_halves(drawing, NORMAL)
    return _draw_square(drawing, halves, NORMAL, 11, _draw_plain(halves.message))


def for_the_badge(drawing: Drawing) -> Picture:
    """Draw a high badge in spaced capitals, with a bold message."""
    label = measure_spaced(drawing.label.upper(), Face.VERDANA)
    message = measure_spaced(drawing.message.upper(), Face.VERDANA_BOLD)
    halves = lay_out(drawing, HIGH, label, message)
    bold = f'<g font-weight="bold">{_draw_plain(halves.message)}</g>'
    return _draw_square(drawing, halves, HIGH, 10, bold)


def _draw_square(
    drawing: Drawing, halves: BadgeLayout, measures: Measures, size: int, message: str
) -> Picture:
    content = (
        f'<g shape-rendering="crispEdges">{backgrounds(drawing, halves, measures.height)}</g>'
        f'<g {VERDANA} font-size="{size}">{_draw_logo(drawing, halves, measures)}'
        f"{_draw_plain(halves.label)}{message}</g>"
        f"{draw_spark(drawing, halves.end - measures.padding, measures.height)}"
    )
    return halves.end, measures.height, content


def social(drawing: Drawing) -> Picture:
    """Draw a grey button, and the message in a bubble that points at it."""
    label = measure_odd(drawing.label[:1].upper() + drawing.label[1:], Face.HELVETICA_BOLD)
    message = measure_odd(drawing.message, Face.HELVETICA_BOLD)
    beside = LOGO_SIZE + (LOGO_GAP if label.content else 0)
    button = label.length + 10 + (beside if drawing.logo else 0)
    bubble = message.length + 8 + drawing.spark_width if message.content else 0
    middle = button + 6 + (bubble - drawing.spark_width) / 2
    lines = (
        label._replace(x=button - 5 - label.length / 2, y=NORMAL.baseline),
        message._replace(x=middle, y=NORMAL.baseline),
    )
    content = (
        f"{_draw_button(button, bubble, drawing.key)}"
        f"{draw_logo(drawing, 5, NORMAL.height, SOCIAL_BUTTON)}"
        f'<g {HELVETICA} font-size="11" font-weight="700">'
        f"{''.join(map(_draw_engraved, lines))}</g>"
        f"{draw_spark(drawing, button + 1 + bubble, NORMAL.height, SOCIAL_BUBBLE)}"
    )
    return button + (7 + bubble if bubble else 1), NORMAL.height, content


STYLES: Mapping[str, Callable[[Drawing], Picture]] = {
    "flat": partial(_draw_rounded, measures=NORMAL, shine=FLAT_SHINE, radius=3),
    "flat-square": flat_square,
    "plastic": partial(_draw_rounded, measures=LOW, shine=PLASTIC_SHINE, radius=4),
    "for-the-badge": for_the_badge,
    "social": social,
}


def measure_odd(content: str, face: Face) -> Line:
    """Measure a text at 11 px. An odd length puts its middle on a pixel, where it is sharpest."""
    return Line(content, int(text_width.width(content, face, 11)) | 1)


def measure_spaced(content: str, face: Face) -> Line:
    """Measure a text at 10 px, with letter spacing unless its letters join."""
    letters = 0 if text_width.joins(content) else len(text_width.advances(content, face))
    return Line(content, int(text_width.width(content, face, 10)) + LETTER_SPACING * letters)


def _lay_out_halves(drawing: Drawing, measures: Measures) -> BadgeLayout:
    texts = (measure_odd(text, Face.VERDANA) for text in (drawing.label, drawing.message))
    return lay_out(drawing, measures, *texts)


def _draw_button(width: float, bubble: float, key: str) -> str:
    """Draw the button and the bubble, shifted by half a pixel so that lines are sharp."""
    shape = f'<rect x=".5" y=".5" width="{number(width)}" height="19" rx="2"'
    return (
        f'<linearGradient id="s{key}" x2="0" y2="100%">{SOCIAL_SHINE}</linearGradient>'
        f'{shape} fill="{SOCIAL_BUTTON}"/><g stroke="{SOCIAL_LINE}">'
        f'{shape} fill="url(#s{key})"/>{_draw_bubble(width + 6.5, bubble) if bubble else ""}</g>'
    )


def _draw_bubble(x: float, width: float) -> str:
    """Draw a rounded rectangle with a point on its left side."""
    top = f"M{number(x + 2)} .5h{number(width - 4)}a2 2 0 0 1 2 2v15a2 2 0 0 1-2 2"
    point = f"h-{number(width - 4)}a2 2 0 0 1-2-2v-4l-3-3v-1l3-3v-4a2 2 0 0 1 2-2z"
    return f'<path d="{top}{point}" fill="{SOCIAL_BUBBLE}"/>'


def _draw_logo(drawing: Drawing, halves: BadgeLayout, measures: Measures) -> str:
    color = drawing.label_color if halves.seam else drawing.color
    background = colors.mix(color, BLACK, measures.shade)
    return draw_logo(drawing, measures.logo_x, measures.height, background)


def _draw_plain(line: Line) -> str:
    light = colors.is_light(line.background)
    return write(line, f' fill="{TEXT_ON_LIGHT if light else TEXT_ON_DARK}"')


def _draw_raised(line: Line, key: str) -> str:
    """Draw a text over a blurred and a sharp shadow, both one pixel lower."""
    if not line.content:
        return ""
    shadow = SHADOW_ON_LIGHT if colors.is_light(line.background) else SHADOW_ON_DARK
    blurred = write(line, f' fill-opacity=".8" filter="url(#b{key})"', lower=1)
    sharp = write(line, ' fill-opacity=".3"', lower=1)
    return f'<g aria-hidden="true" fill="{shadow}">{blurred}{sharp}</g>{_draw_plain(line)}'


def _draw_engraved(line: Line) -> str:
    """Draw a text over a white edge one pixel lower."""
    edge = write(line, ' aria-hidden="true" fill="#fff"', lower=1, scaled=True)
    return edge + write(line, f' fill="{TEXT_ON_LIGHT}"', scaled=True)


def lay_out(drawing: Drawing, measures: Measures, label: Line, message: Line) -> BadgeLayout:
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
        label._replace(x=left, y=measures.baseline, background=drawing.label_color),
        message._replace(x=right, y=measures.baseline, background=drawing.color),
    )


def _find_seam(drawing: Drawing, measures: Measures, label: Line) -> float:
    """Return the width of the label's half, which may have only a logo."""
    if drawing.label:
        return label.length + 2 * measures.padding + (LOGO_SIZE + LOGO_GAP if drawing.logo else 0)
    if drawing.logo and drawing.logo_has_block:
        return LOGO_SIZE + 2 * measures.logo_x
    return 0


def escape(content: str) -> str:
    """Escape a text for XML, also between double quotes."""
    return content.translate(ENTITIES)


def number(pixels: float) -> str:
    """Format a length in its shortest form, to a hundredth of a pixel."""
    return f"{pixels:.2f}".rstrip("0").rstrip(".")


def write(line: Line, attributes: str = "", lower: int = 0, *, scaled: bool = False) -> str:
    """Write a text that has its length in every font of a renderer.

    Scaled letters become narrower in a wider font; otherwise only the space between them does.
    """
    if not line.content:
        return ""
    # Space would separate letters that join.
    if scaled or text_width.joins(line.content):
        attributes += ' lengthAdjust="spacingAndGlyphs"'
    place = f'x="{number(line.x)}" y="{number(line.y + lower)}"'
    place += f' textLength="{number(line.length)}"{attributes}'
    return f"<text {place}>{escape(line.content)}</text>"


def backgrounds(drawing: Drawing, laid: BadgeLayout, height: int) -> str:
    """Write the two halves, or one if there is no label."""
    seam, rest = number(laid.seam), number(laid.end - laid.seam)
    label = f'<rect width="{seam}" height="{height}" fill="{drawing.label_color}"/>'
    message = f'<rect x="{seam}" width="{rest}" height="{height}" fill="{drawing.color}"/>'
    return (label if laid.seam else "") + message


def draw_spark(drawing: Drawing, end: float, height: int, background: str = "") -> str:
    """Write the sparkline so that it ends at a place, or nothing."""
    if not drawing.spark:
        return ""
    x, bottom = end - measure_spark(drawing.spark), height // 2 + SPARK_HEIGHT // 2
    return draw_line(drawing.spark, x, bottom, background or drawing.color)


def measure_spark(days: Sequence[int]) -> int:
    """Return the width of the sparkline of some days."""
    return (len(days) - 1) * _find_step(days)


def draw_line(days: Sequence[int], x: float, bottom: int, background: str) -> str:
    """Write the line and the area below it; their highest point is the day with most views."""
    step, most = _find_step(days), max(days)
    # In half pixels: 0 for no views, and at least 1 for some.
    heights = [
        1 + round(2 * (SPARK_HEIGHT - 1) * views / most) / 2 if views else 0 for views in days
    ]
    rises = " ".join(_move(step, before - after) for before, after in pairwise(heights))
    line = f"M{x:g} {bottom - heights[0]:g}l{rises}"
    color = _choose_color(background)
    return (
        f'<path d="{line}V{bottom}H{x:g}z" fill="{color}" fill-opacity=".3"/>'
        f'<path d="{line}" fill="none" stroke="{color}" stroke-width="1.2"'
        ' stroke-linejoin="round"/>'
    )


def _find_step(days: Sequence[int]) -> int:
    return next(step for most, step in SPARK_STEPS.items() if len(days) <= most)


def _move(right: float, down: float) -> str:
    """Write a step of a line without a separator that it does not need."""
    return f"{right:g}{'' if down < 0 else ' '}{down:g}"


def _choose_color(background: str) -> str:
    """Return the colour of text on a background, or black or white if it could not be seen."""
    usual = TEXT_ON_LIGHT if colors.is_light(background) else TEXT_ON_DARK
    if colors.contrast(colors.parse(usual), background) >= VISIBLE:
        return usual
    return max((WHITE, BLACK), key=lambda color: colors.contrast(color, background))


def draw_logo(drawing: Drawing, x: int, height: int, background: str) -> str:
    """Write the logo in the middle of a height, or nothing.

    The nested `svg` clips the logo, so that no logo covers the texts.
    """
    if drawing.logo is None:
        return ""
    place = f'x="{x}" y="{(height - LOGO_SIZE) // 2}" width="{LOGO_SIZE}" height="{LOGO_SIZE}"'
    fill = drawing.logo_color or drawing.logo.fill_on(background)
    return f"<svg {place} {drawing.logo.attributes(fill)}>{drawing.logo.shapes}</svg>"
