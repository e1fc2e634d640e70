"""The five styles of an SVG badge, with the measures of badge-maker 6.0 by shields.io."""

from __future__ import annotations

from typing import NamedTuple

from chalicelib.badges import colors, svg_markup, text_width
from chalicelib.badges.svg_markup import (
    LOGO_GAP,
    LOGO_SIZE,
    BadgeLayout,
    Drawing,
    Line,
    Measures,
    Text,
    number,
    write,
)
from chalicelib.badges.text_width import Face

VERDANA = (
    'text-anchor="middle" text-rendering="geometricPrecision"'
    ' font-family="Verdana,Geneva,DejaVu Sans,sans-serif"'
)
HELVETICA = (
    'text-anchor="middle" text-rendering="geometricPrecision"'
    ' font-family="Helvetica Neue,Helvetica,Arial,DejaVu Sans Condensed,sans-serif"'
)
"""Many Linux systems have none of the first three, and a sans-serif with much wider digits."""
TEXT_ON_DARK, SHADOW_ON_DARK = "#fff", "#010101"
TEXT_ON_LIGHT, SHADOW_ON_LIGHT = "#333", "#ccc"

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


class Picture(NamedTuple):
    """A drawn badge and its size in pixels."""

    width: float
    height: int
    content: str


def flat(drawing: Drawing) -> Picture:
    """Draw a rounded badge with a slight shine."""
    return _draw_rounded(drawing, NORMAL, FLAT_SHINE, radius=3)


def plastic(drawing: Drawing) -> Picture:
    """Draw a rounder, lower badge with a strong shine."""
    return _draw_rounded(drawing, LOW, PLASTIC_SHINE, radius=4)


def flat_square(drawing: Drawing) -> Picture:
    """Draw a square badge with one colour per half and no shadows."""
    halves = _lay_out_halves(drawing, NORMAL)
    content = (
        f'{_draw_square(drawing, halves, NORMAL.height)}<g {VERDANA} font-size="11">'
        f"{_draw_logo(drawing, halves, NORMAL)}"
        f"{_draw_plain(halves.label)}{_draw_plain(halves.message)}</g>"
        f"{_draw_spark(drawing, halves, NORMAL)}"
    )
    return Picture(halves.end, NORMAL.height, content)


def for_the_badge(drawing: Drawing) -> Picture:
    """Draw a high badge in spaced capitals, with a bold message."""
    label = measure_spaced(drawing.label.upper(), Face.VERDANA)
    message = measure_spaced(drawing.message.upper(), Face.VERDANA_BOLD)
    halves = svg_markup.halves(drawing, HIGH, label, message)
    content = (
        f'{_draw_square(drawing, halves, HIGH.height)}<g {VERDANA} font-size="10">'
        f"{_draw_logo(drawing, halves, HIGH)}{_draw_plain(halves.label)}"
        f'<g font-weight="bold">{_draw_plain(halves.message)}</g></g>'
        f"{_draw_spark(drawing, halves, HIGH)}"
    )
    return Picture(halves.end, HIGH.height, content)


def social(drawing: Drawing) -> Picture:
    """Draw a grey button, and the message in a bubble that points at it."""
    label = measure_odd(drawing.label[:1].upper() + drawing.label[1:], Face.HELVETICA_BOLD)
    message = measure_odd(drawing.message, Face.HELVETICA_BOLD)
    beside = LOGO_SIZE + (LOGO_GAP if label.content else 0)
    button = label.length + 10 + (beside if drawing.logo else 0)
    bubble = message.length + 8 + drawing.spark_width if message.content else 0
    label_line = Line(label, button - 5 - label.length / 2, NORMAL.baseline, SOCIAL_BUTTON)
    middle = button + 6 + (bubble - drawing.spark_width) / 2
    message_line = Line(message, middle, NORMAL.baseline, SOCIAL_BUBBLE)
    content = (
        f"{_draw_button(button, bubble, drawing.key)}"
        f"{svg_markup.draw_logo(drawing, 5, NORMAL.height, SOCIAL_BUTTON)}"
        f'<g {HELVETICA} font-size="11" font-weight="700">'
        f"{_draw_engraved(label_line)}{_draw_engraved(message_line)}</g>"
        f"{svg_markup.draw_spark(drawing, button + 1 + bubble, NORMAL.height, SOCIAL_BUBBLE)}"
    )
    return Picture(button + (7 + bubble if bubble else 1), NORMAL.height, content)


STYLES = {
    "flat": flat,
    "flat-square": flat_square,
    "plastic": plastic,
    "for-the-badge": for_the_badge,
    "social": social,
}


def measure_odd(content: str, face: Face) -> Text:
    """Measure a text at 11 px. An odd length puts its middle on a pixel, where it is sharpest."""
    return Text(content, int(text_width.width(content, face, 11)) | 1)


def measure_spaced(content: str, face: Face) -> Text:
    """Measure a text at 10 px, with letter spacing unless its letters join."""
    letters = 0 if text_width.joins(content) else len(text_width.advances(content, face))
    return Text(content, int(text_width.width(content, face, 10)) + LETTER_SPACING * letters)


def _lay_out_halves(drawing: Drawing, measures: Measures) -> BadgeLayout:
    label, message = (
        measure_odd(drawing.label, Face.VERDANA),
        measure_odd(drawing.message, Face.VERDANA),
    )
    return svg_markup.halves(drawing, measures, label, message)


def _draw_rounded(drawing: Drawing, measures: Measures, shine: str, radius: int) -> Picture:
    halves, key = _lay_out_halves(drawing, measures), drawing.key
    size = f'width="{number(halves.end)}" height="{measures.height}"'
    content = (
        f'<filter id="b{key}"><feGaussianBlur stdDeviation="1.6"/></filter>'
        f'<linearGradient id="s{key}" x2="0" y2="100%">{shine}</linearGradient>'
        f'<clipPath id="r{key}"><rect {size} rx="{radius}"/></clipPath>'
        f'<g clip-path="url(#r{key})">{svg_markup.backgrounds(drawing, halves, measures.height)}'
        f'<rect {size} fill="url(#s{key})"/></g>'
        f'<g {VERDANA} font-size="11">{_draw_logo(drawing, halves, measures)}'
        f"{_draw_raised(halves.label, key)}{_draw_raised(halves.message, key)}</g>"
        f"{_draw_spark(drawing, halves, measures)}"
    )
    return Picture(halves.end, measures.height, content)


def _draw_square(drawing: Drawing, halves: BadgeLayout, height: int) -> str:
    drawn = svg_markup.backgrounds(drawing, halves, height)
    return f'<g shape-rendering="crispEdges">{drawn}</g>'


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
    background = colors.darken(color, measures.shade)
    return svg_markup.draw_logo(drawing, measures.logo_x, measures.height, background)


def _draw_spark(drawing: Drawing, halves: BadgeLayout, measures: Measures) -> str:
    end = halves.end - measures.padding
    return svg_markup.draw_spark(drawing, end, measures.height, drawing.color)


def _draw_plain(line: Line) -> str:
    light = colors.is_light(line.background)
    return write(line, f' fill="{TEXT_ON_LIGHT if light else TEXT_ON_DARK}"')


def _draw_raised(line: Line, key: str) -> str:
    """Draw a text over a blurred and a sharp shadow, both one pixel lower."""
    if not line.text.content:
        return ""
    shadow = SHADOW_ON_LIGHT if colors.is_light(line.background) else SHADOW_ON_DARK
    blurred = write(line, f' fill-opacity=".8" filter="url(#b{key})"', lower=1)
    sharp = write(line, ' fill-opacity=".3"', lower=1)
    return f'<g aria-hidden="true" fill="{shadow}">{blurred}{sharp}</g>{_draw_plain(line)}'


def _draw_engraved(line: Line) -> str:
    """Draw a text over a white edge one pixel lower."""
    edge = write(line, ' aria-hidden="true" fill="#fff"', lower=1, scaled=True)
    return edge + write(line, f' fill="{TEXT_ON_LIGHT}"', scaled=True)
