"""A history as a chart for a README: an SVG that reads well on a light and on a dark page.

Pure text out of plain values, transparent, with nothing that refers to anything outside of it. Its
colours follow `prefers-color-scheme`; our own stand out from both of GitHub's pages in either
scheme, for a page may be dark where the browser's scheme is light.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from chalicelib.badges.options import short
from chalicelib.badges.svg_markup import escape, number
from chalicelib.badges.text_width import Face
from chalicelib.badges.text_width import width as text_width
from chalicelib.views.history import Bucket, By, History

LIGHT_PAGE, DARK_PAGE = "#ffffff", "#0d1117"
"""GitHub's."""
GREY = ("#656d76", "#8b949e")
BLUE = ("#0969da", "#4493f8")
RED = ("#cf222e", "#f85149")
"""Each in the light scheme and in the dark one."""
STANDS_OUT = 3.0
"""The least contrast of a graphic to its page. Source: W3C, WCAG 2.2, 1.4.11."""

TITLE, BOLD, LABEL, LINE = 13, 15, 11, 15
"""Sizes of text, the room that the bold title takes, and from one line to the next."""
TOP, BOTTOM, RIGHT, GAP = 28, 20, 3, 6
"""Pixels above the days, below them, right of them, and between things."""
THINNEST, WIDEST = 4, 48
"""Pixels of a bar and the space beside it; with less room for a day, an area is drawn."""
ROOM_FOR_FOUR = 60
"""A plot of so many pixels has room for four ticks; a lower one gets three."""
FONT = (
    f'fill="currentColor" font-size="{LABEL}"'
    ' font-family="-apple-system,Segoe UI,Helvetica,Arial,sans-serif"'
)


@dataclass(frozen=True, slots=True)
class Look:
    """Pixels, and what colour the bars have: `#rrggbb`, or empty for GitHub's blue."""

    width: int = 600
    height: int = 150
    color: str = ""


@dataclass(frozen=True, slots=True)
class Plot:
    """Where the days are drawn, in pixels from the left and from the top.

    `ticks` are numbers of views from 0 up; the last is at the upper edge.
    """

    left: float
    right: float
    bottom: float
    days: int
    ticks: Sequence[int]

    @property
    def slot(self) -> float:
        """The room for a day."""
        return (self.right - self.left) / self.days

    @property
    def has_bars(self) -> bool:
        return self.slot >= THINNEST

    def x(self, place: int) -> float:
        """The middle of a day."""
        return self.left + (place + 0.5) * self.slot

    def y(self, views: int) -> float:
        return self.bottom - views / (self.ticks[-1] or 1) * (self.bottom - TOP)


def draw(history: History, look: Look) -> str:
    """The chart of a history by day."""
    plot = _plot(history, look)
    shape = _bars if plot.has_bars else _area
    scale = _scale(plot) if history.total else _nothing(history, plot)
    texts = "".join([*_title_line(history, plot), *_lines(plot), *scale, *_dates(history, plot)])
    drawn = "".join(shape(history.buckets, plot)) if history.total else ""
    return _document(
        look,
        title=_headline(history),
        description=_description(history),
        content=f'<g class="t" {FONT}>{texts}</g><g class="b" fill="currentColor">{drawn}</g>',
        accent=readable(look.color) if look.color else BLUE,
    )


def draw_error(reason: str, look: Look) -> str:
    """What is wrong, in a frame of the chart's size."""
    reason = "".join(sign for sign in reason if sign.isprintable())
    lines = textwrap.wrap(reason, width=int((look.width - 2 * GAP) / _width("0", LABEL)))
    middle, above = look.width / 2, (look.height - LINE * len(lines)) / 2 + LABEL
    texts = [
        _text(line, middle, above + LINE * place, ' text-anchor="middle"')
        for place, line in enumerate(lines)
    ]
    frame = f'<rect x=".5" y=".5" width="{look.width - 1}" height="{look.height - 1}" rx="6"'
    frame += ' fill="none" stroke="currentColor"/>'
    content = f'<g class="b" {FONT}>{frame}{"".join(texts)}</g>'
    return _document(look, title=reason, description="", content=content, accent=RED)


def ticks(most: int, steps: int) -> list[int]:
    """0 and at most so many equal steps up, the last at or above `most`.

    A step is 1, 2 or 5 times a power of ten.
    """
    nice = (digit * 10**power for power in count() for digit in (1, 2, 5))
    step = next(step for step in nice if step * steps >= most)
    return [place * step for place in range(-(-most // step) + 1)]


def readable(color: str) -> tuple[str, str]:
    """A colour `#rrggbb` for the light and the dark page: darker or lighter where it must be."""
    return _away(color, LIGHT_PAGE, "#000000"), _away(color, DARK_PAGE, "#ffffff")


def contrast(one: str, other: str) -> float:
    """From 1 to 21. Source: W3C, WCAG 2.2, "contrast ratio"."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _away(color: str, page: str, toward: str) -> str:
    """The least mixture with `toward`, by twentieths, that stands out from the page."""
    mixtures = (_mixed(color, toward, part / 20) for part in range(21))
    return next(mixture for mixture in mixtures if contrast(mixture, page) >= STANDS_OUT)


def _mixed(color: str, other: str, part: float) -> str:
    pairs = zip(bytes.fromhex(color[1:]), bytes.fromhex(other[1:]), strict=True)
    return "#" + bytes(round(a + (b - a) * part) for a, b in pairs).hex()


def _luminance(color: str) -> float:
    """From 0 to 1. Source: W3C, WCAG 2.2, "relative luminance"."""
    red, green, blue = (_linear(value / 255) for value in bytes.fromhex(color[1:]))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(part: float) -> float:
    dim = 0.04045
    return float(part / 12.92 if part <= dim else ((part + 0.055) / 1.055) ** 2.4)


def _document(
    look: Look, *, title: str, description: str, content: str, accent: tuple[str, str]
) -> str:
    size = f'width="{look.width}" height="{look.height}" viewBox="0 0 {look.width} {look.height}"'
    light, dark = (
        f".t{{color:{grey}}}.b{{color:{color}}}" for grey, color in zip(GREY, accent, strict=True)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc>"
        f"<style>{light}@media (prefers-color-scheme:dark){{{dark}}}</style>{content}</svg>"
    )


def _plot(history: History, look: Look) -> Plot:
    bottom = look.height - BOTTOM
    most = max(bucket.views for bucket in history.buckets)
    marks = ticks(most, steps=3 if bottom - TOP >= ROOM_FOR_FOUR else 2)
    left = round(max(_width(short(mark), LABEL) for mark in marks)) + GAP
    return Plot(left, look.width - RIGHT, bottom, len(history.buckets), marks)


def _headline(history: History, total: str = "") -> str:
    views = "view" if history.total == 1 else "views"
    span = "today" if history.days == 1 else f"in {history.days} days"
    return f"{total or format(history.total, ',')} {views} {span}"


def _description(history: History) -> str:
    """What the bars show, in words."""
    first, last = history.buckets[0], history.buckets[-1]
    most = max(history.buckets, key=lambda bucket: bucket.views)
    return (
        f"Views a day from {_date(first)} to {_date(last)}, UTC."
        f" At most {most.views:,}, on {_date(most)}. Today {last.views:,} so far."
    )


def _date(bucket: Bucket) -> str:
    return By.DAY.label(bucket.start)


def _title_line(history: History, plot: Plot) -> Iterator[str]:
    """How many views there are, and at the right how many of today, where both have room."""
    title = _headline(history)
    if _width(title, BOLD) > plot.right:
        title = _headline(history, short(history.total))
    yield _text(title, 0, TITLE, f' font-size="{TITLE}" font-weight="600"')
    today = f"{history.buckets[-1].views:,} today"
    room = plot.right - _width(title, BOLD) - _width(today, LABEL)
    if history.days > 1 and room > 4 * GAP:
        sign = "\u25a1" if plot.has_bars else "\u25cb"
        mark = f'<tspan class="b" fill="currentColor">{sign}</tspan> '
        yield _text(today, plot.right, TITLE, ' text-anchor="end"', mark)


def _lines(plot: Plot) -> Iterator[str]:
    """One for each tick, just below its height."""
    lines = (f"M{number(plot.left)} {round(plot.y(t)) + 0.5}H{plot.right}" for t in plot.ticks)
    yield f'<path d="{"".join(lines)}" stroke="currentColor" stroke-opacity=".25"/>'


def _scale(plot: Plot) -> Iterator[str]:
    for tick in plot.ticks:
        yield _text(short(tick), plot.left - GAP, plot.y(tick) + LABEL / 3, ' text-anchor="end"')


def _nothing(history: History, plot: Plot) -> Iterator[str]:
    said = "no views" if history.since else "no views yet"
    middle = (plot.left + plot.right) / 2, (TOP + plot.bottom + LABEL) / 2
    yield _text(said, *middle, ' text-anchor="middle"')


def _dates(history: History, plot: Plot) -> Iterator[str]:
    y = plot.bottom + LINE
    first, last = _date(history.buckets[0]), _date(history.buckets[-1])
    if history.days == 1:
        yield _text(last, plot.x(0), y, ' text-anchor="middle"')
    else:
        yield _text(first, plot.left, y)
        yield _text(last, plot.right, y, ' text-anchor="end"')


def _bars(buckets: Sequence[Bucket], plot: Plot) -> Iterator[str]:
    """A bar for each day with views; today's, which is not over, is hollow."""
    *past, today = enumerate(buckets)
    for place, bucket in past:
        if bucket.views:
            yield _bar(place, bucket, plot)
    if today[1].views:
        yield _bar(*today, plot, ' fill-opacity=".3" stroke="currentColor"')


def _bar(place: int, bucket: Bucket, plot: Plot, attributes: str = "") -> str:
    """At least a pixel high, so that no view goes unseen."""
    width = min(plot.slot - max(1, plot.slot / 5), WIDEST)
    height = max(1, plot.bottom - plot.y(bucket.views))
    return (
        f'<rect x="{number(plot.x(place) - width / 2)}" y="{number(plot.bottom - height)}"'
        f' width="{number(width)}" height="{number(height)}"{attributes}>'
        f"<title>{_date(bucket)}: {bucket.views:,}</title></rect>"
    )


def _area(buckets: Sequence[Bucket], plot: Plot) -> Iterator[str]:
    """A line over the days, what is under it tinted, with a ring at today."""
    points = [(f"{plot.x(n):.1f}", f"{plot.y(day.views):.1f}") for n, day in enumerate(buckets)]
    line, ground = "L".join(f"{x} {y}" for x, y in points), number(plot.bottom)
    (first, _), (last, height) = points[0], points[-1]
    yield f'<path d="M{first} {ground}L{line}L{last} {ground}z" fill-opacity=".3"/>'
    outline = 'fill="none" stroke="currentColor"'
    yield f'<path d="M{line}" {outline} stroke-linejoin="round"/>'
    yield f'<circle cx="{last}" cy="{height}" r="2.5" {outline}/>'


def _text(content: str, x: float, y: float, attributes: str = "", before: str = "") -> str:
    place = f'x="{number(x)}" y="{number(y)}"'
    return f"<text {place}{attributes}>{before}{escape(content)}</text>"


def _width(text: str, size: int) -> float:
    """An upper bound: Verdana is as wide as any font that `FONT` comes to."""
    return text_width(text, Face.VERDANA, size)
