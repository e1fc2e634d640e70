"""The five styles of an SVG badge, with the measures of badge-maker 6.0, shields.io's own."""

from __future__ import annotations

from typing import NamedTuple

from chalicelib.badges import colors, svg_markup, text_width
from chalicelib.badges.svg_markup import (
    LOGO_GAP,
    LOGO_SIZE,
    Drawing,
    Halves,
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
    ' font-family="Helvetica Neue,Helvetica,Arial,sans-serif"'
)
TEXT_ON_DARK, SHADOW_ON_DARK = "#fff", "#010101"
TEXT_ON_LIGHT, SHADOW_ON_LIGHT = "#333", "#ccc"

LOW = Measures(height=20, baseline=14, padding=5, logo_x=5, logo_alone=18, inwards=1)
LOWER = Measures(height=18, baseline=13, padding=5, logo_x=5, logo_alone=18, inwards=1)
HIGH = Measures(height=28, baseline=17.5, padding=12, logo_x=9, logo_alone=20, inwards=0)
LETTER_SPACING = 1.25
"""Of `for-the-badge`, in pixels."""
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
    """Rounded, with a slight shine."""
    return _rounded(drawing, LOW, FLAT_SHINE, radius=3)


def plastic(drawing: Drawing) -> Picture:
    """Rounder, lower, with much shine."""
    return _rounded(drawing, LOWER, PLASTIC_SHINE, radius=4)


def flat_square(drawing: Drawing) -> Picture:
    """Corners, one colour a half, no shadows."""
    laid = _odd_halves(drawing, LOW)
    content = (
        f'{_square(drawing, laid, LOW.height)}<g {VERDANA} font-size="11">'
        f"{_logo(drawing, laid, LOW)}{_plain(laid.label)}{_plain(laid.message)}</g>"
    )
    return Picture(laid.end, LOW.height, content)


def for_the_badge(drawing: Drawing) -> Picture:
    """High, in capitals set apart, the message bold."""
    label = spaced(drawing.label.upper(), Face.VERDANA)
    message = spaced(drawing.message.upper(), Face.VERDANA_BOLD)
    laid = svg_markup.halves(drawing, HIGH, label, message)
    content = (
        f'{_square(drawing, laid, HIGH.height)}<g {VERDANA} font-size="10">'
        f"{_logo(drawing, laid, HIGH)}{_plain(laid.label)}"
        f'<g font-weight="bold">{_plain(laid.message)}</g></g>'
    )
    return Picture(laid.end, HIGH.height, content)


def social(drawing: Drawing) -> Picture:
    """A grey button, and the message in a bubble that points at it."""
    label = odd(drawing.label[:1].upper() + drawing.label[1:], Face.HELVETICA_BOLD)
    message = odd(drawing.message, Face.HELVETICA_BOLD)
    beside = LOGO_SIZE + (LOGO_GAP if label.content else 0)
    button = label.length + 10 + (beside if drawing.logo else 0)
    bubble = message.length + 8 if message.content else 0
    content = (
        f"{_button(button, bubble, drawing.key)}"
        f"{svg_markup.draw_logo(drawing.logo, 5, LOW.height, SOCIAL_BUTTON)}"
        f'<g {HELVETICA} font-size="11" font-weight="700">'
        f"{_engraved(Line(label, button - 5 - label.length / 2, LOW.baseline, SOCIAL_BUTTON))}"
        f"{_engraved(Line(message, button + 6 + bubble / 2, LOW.baseline, SOCIAL_BUBBLE))}</g>"
    )
    return Picture(button + (7 + bubble if bubble else 1), LOW.height, content)


STYLES = {
    "flat": flat,
    "flat-square": flat_square,
    "plastic": plastic,
    "for-the-badge": for_the_badge,
    "social": social,
}


def odd(content: str, face: Face) -> Text:
    """A text at 11 px. Of odd length its middle is that of a pixel, where it is sharpest."""
    return Text(content, int(text_width.width(content, face, 11)) | 1)


def spaced(content: str, face: Face) -> Text:
    """A text at 10 px with its letters set apart, where they don't touch."""
    letters = 0 if text_width.joins(content) else len(text_width.advances(content, face))
    return Text(content, int(text_width.width(content, face, 10)) + LETTER_SPACING * letters)


def _odd_halves(drawing: Drawing, measures: Measures) -> Halves:
    label, message = odd(drawing.label, Face.VERDANA), odd(drawing.message, Face.VERDANA)
    return svg_markup.halves(drawing, measures, label, message)


def _rounded(drawing: Drawing, measures: Measures, shine: str, radius: int) -> Picture:
    laid, key = _odd_halves(drawing, measures), drawing.key
    size = f'width="{number(laid.end)}" height="{measures.height}"'
    content = (
        f'<filter id="b{key}"><feGaussianBlur stdDeviation="1.6"/></filter>'
        f'<linearGradient id="s{key}" x2="0" y2="100%">{shine}</linearGradient>'
        f'<clipPath id="r{key}"><rect {size} rx="{radius}"/></clipPath>'
        f'<g clip-path="url(#r{key})">{svg_markup.backgrounds(drawing, laid, measures.height)}'
        f'<rect {size} fill="url(#s{key})"/></g>'
        f'<g {VERDANA} font-size="11">{_logo(drawing, laid, measures)}'
        f"{_raised(laid.label, key)}{_raised(laid.message, key)}</g>"
    )
    return Picture(laid.end, measures.height, content)


def _square(drawing: Drawing, laid: Halves, height: int) -> str:
    drawn = svg_markup.backgrounds(drawing, laid, height)
    return f'<g shape-rendering="crispEdges">{drawn}</g>'


def _button(width: float, bubble: float, key: str) -> str:
    """The button and, if it has a width, the bubble: half a pixel in, so that lines are sharp."""
    shape = f'<rect x=".5" y=".5" width="{number(width)}" height="19" rx="2"'
    return (
        f'<linearGradient id="s{key}" x2="0" y2="100%">{SOCIAL_SHINE}</linearGradient>'
        f'{shape} fill="{SOCIAL_BUTTON}"/><g stroke="{SOCIAL_LINE}">'
        f'{shape} fill="url(#s{key})"/>{_bubble(width + 6.5, bubble) if bubble else ""}</g>'
    )


def _bubble(x: float, width: float) -> str:
    """A rounded rectangle whose left side has a point."""
    top = f"M{number(x + 2)} .5h{number(width - 4)}a2 2 0 0 1 2 2v15a2 2 0 0 1-2 2"
    point = f"h-{number(width - 4)}a2 2 0 0 1-2-2v-4l-3-3v-1l3-3v-4a2 2 0 0 1 2-2z"
    return f'<path d="{top}{point}" fill="{SOCIAL_BUBBLE}"/>'


def _logo(drawing: Drawing, laid: Halves, measures: Measures) -> str:
    background = drawing.label_color if laid.seam else drawing.color
    return svg_markup.draw_logo(drawing.logo, measures.logo_x, measures.height, background)


def _plain(line: Line) -> str:
    light = colors.is_light(line.background)
    return write(line, f' fill="{TEXT_ON_LIGHT if light else TEXT_ON_DARK}"')


def _raised(line: Line, key: str) -> str:
    """A text over its shadow, blurred and sharp, a pixel lower."""
    if not line.text.content:
        return ""
    shadow = SHADOW_ON_LIGHT if colors.is_light(line.background) else SHADOW_ON_DARK
    blurred = write(line, f' fill-opacity=".8" filter="url(#b{key})"', lower=1)
    sharp = write(line, ' fill-opacity=".3"', lower=1)
    return f'<g aria-hidden="true" fill="{shadow}">{blurred}{sharp}</g>{_plain(line)}'


def _engraved(line: Line) -> str:
    """A text over a white edge, a pixel lower."""
    edge = write(line, ' aria-hidden="true" fill="#fff"', lower=1)
    return edge + write(line, f' fill="{TEXT_ON_LIGHT}"')
