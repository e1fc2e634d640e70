"""The chart of a history for a README: an SVG that is readable on a light and on a dark page.

The image is transparent and refers to nothing outside itself. Its colours follow
`prefers-color-scheme`. The default colours contrast with both pages of GitHub in either scheme,
because a page may be dark while the browser's scheme is light.
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
"""The backgrounds of GitHub's pages."""
GREY = ("#656d76", "#8b949e")
BLUE = ("#0969da", "#4493f8")
RED = ("#cf222e", "#f85149")
"""Each colour in the light and in the dark scheme."""
MIN_CONTRAST = 3.0
"""The minimum contrast of a graphic with its page. Source: W3C, WCAG 2.2, 1.4.11."""

TITLE, BOLD, LABEL, LINE = 13, 15, 11, 15
"""The sizes of text, the size that bounds the bold title, and the height of a line."""
TOP, BOTTOM, RIGHT, GAP = 28, 20, 3, 6
"""Pixels above, below and right of the days, and between other parts."""
MIN_SLOT, MAX_BAR = 4, 48
"""The minimum slot of a bar, below which an area is drawn, and the maximum width of a bar."""
FOUR_TICKS_HEIGHT = 60
"""The height in pixels from which a plot gets four ticks instead of three."""
FONT = (
    f'fill="currentColor" font-size="{LABEL}"'
    ' font-family="-apple-system,Segoe UI,Helvetica,Arial,sans-serif"'
)


@dataclass(frozen=True, slots=True)
class Look:
    """The size in pixels, and the colour of the bars: `#rrggbb`, or empty for GitHub's blue."""

    width: int = 600
    height: int = 150
    color: str = ""


@dataclass(frozen=True, slots=True)
class Plot:
    """The position of the days, in pixels from the left and from the top.

    `ticks` are numbers of views, starting at 0; the last is at the upper edge.
    """

    left: float
    right: float
    bottom: float
    days: int
    ticks: Sequence[int]

    @property
    def slot(self) -> float:
        """Return the width of a day."""
        return (self.right - self.left) / self.days

    @property
    def has_bars(self) -> bool:
        return self.slot >= MIN_SLOT

    def x(self, index: int) -> float:
        """Return the middle of a day."""
        return self.left + (index + 0.5) * self.slot

    def y(self, views: int) -> float:
        return self.bottom - views / (self.ticks[-1] or 1) * (self.bottom - TOP)


def draw(history: History, look: Look) -> str:
    """Draw the chart of a history by day."""
    plot = _make_plot(history, look)
    shape = _draw_bars if plot.has_bars else _draw_area
    scale = _write_scale(plot) if history.total else _write_no_views(history, plot)
    texts = "".join(
        [*_write_title(history, plot), *_draw_lines(plot), *scale, *_write_dates(history, plot)]
    )
    drawn = "".join(shape(history.buckets, plot)) if history.total else ""
    return _write_document(
        look,
        title=_write_headline(history),
        description=_describe(history),
        content=f'<g class="t" {FONT}>{texts}</g><g class="b" fill="currentColor">{drawn}</g>',
        accent=readable(look.color) if look.color else BLUE,
    )


def draw_error(reason: str, look: Look) -> str:
    """Draw an error message in a frame of the chart's size."""
    reason = "".join(character for character in reason if character.isprintable())
    lines = textwrap.wrap(reason, width=int((look.width - 2 * GAP) / _measure("0", LABEL)))
    middle, above = look.width / 2, (look.height - LINE * len(lines)) / 2 + LABEL
    texts = [
        _write_text(line, middle, above + LINE * index, ' text-anchor="middle"')
        for index, line in enumerate(lines)
    ]
    frame = f'<rect x=".5" y=".5" width="{look.width - 1}" height="{look.height - 1}" rx="6"'
    frame += ' fill="none" stroke="currentColor"/>'
    content = f'<g class="b" {FONT}>{frame}{"".join(texts)}</g>'
    return _write_document(look, title=reason, description="", content=content, accent=RED)


def ticks(most: int, steps: int) -> list[int]:
    """Return 0 and at most `steps` equal steps, the last of them at or above `most`.

    A step is 1, 2 or 5 times a power of ten.
    """
    nice = (digit * 10**power for power in count() for digit in (1, 2, 5))
    step = next(step for step in nice if step * steps >= most)
    return [index * step for index in range(-(-most // step) + 1)]


def readable(color: str) -> tuple[str, str]:
    """Return a colour for the light and the dark page, darkened or lightened if necessary."""
    return _adapt_color(color, LIGHT_PAGE, "#000000"), _adapt_color(color, DARK_PAGE, "#ffffff")


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, 1 to 21. Source: W3C, WCAG 2.2, "contrast ratio"."""
    darker, lighter = sorted((_compute_luminance(one), _compute_luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _adapt_color(color: str, page: str, toward: str) -> str:
    """Mix a colour with `toward` in twentieths until it contrasts with the page."""
    mixtures = (_mix(color, toward, part / 20) for part in range(21))
    return next(mixture for mixture in mixtures if contrast(mixture, page) >= MIN_CONTRAST)


def _mix(color: str, other: str, part: float) -> str:
    pairs = zip(bytes.fromhex(color[1:]), bytes.fromhex(other[1:]), strict=True)
    return "#" + bytes(round(a + (b - a) * part) for a, b in pairs).hex()


def _compute_luminance(color: str) -> float:
    """Return the luminance of a colour, 0 to 1. Source: W3C, WCAG 2.2, "relative luminance"."""
    red, green, blue = (_linearize(value / 255) for value in bytes.fromhex(color[1:]))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linearize(part: float) -> float:
    dim = 0.04045
    return float(part / 12.92 if part <= dim else ((part + 0.055) / 1.055) ** 2.4)


def _write_document(
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


def _make_plot(history: History, look: Look) -> Plot:
    bottom = look.height - BOTTOM
    most = max(bucket.views for bucket in history.buckets)
    marks = ticks(most, steps=3 if bottom - TOP >= FOUR_TICKS_HEIGHT else 2)
    left = round(max(_measure(short(mark), LABEL) for mark in marks)) + GAP
    return Plot(left, look.width - RIGHT, bottom, len(history.buckets), marks)


def _write_headline(history: History, total: str = "") -> str:
    views = "view" if history.total == 1 else "views"
    span = "today" if history.days == 1 else f"in {history.days} days"
    return f"{total or format(history.total, ',')} {views} {span}"


def _describe(history: History) -> str:
    """Describe the bars in words."""
    first, last = history.buckets[0], history.buckets[-1]
    most = max(history.buckets, key=lambda bucket: bucket.views)
    return (
        f"Views a day from {_format_date(first)} to {_format_date(last)}, UTC."
        f" At most {most.views:,}, on {_format_date(most)}. Today {last.views:,} so far."
    )


def _format_date(bucket: Bucket) -> str:
    return By.DAY.label(bucket.start)


def _write_title(history: History, plot: Plot) -> Iterator[str]:
    """Write the total number of views and, if there is room, the number of today on the right."""
    title = _write_headline(history)
    if _measure(title, BOLD) > plot.right:
        title = _write_headline(history, short(history.total))
    yield _write_text(title, 0, TITLE, f' font-size="{TITLE}" font-weight="600"')
    today = f"{history.buckets[-1].views:,} today"
    room = plot.right - _measure(title, BOLD) - _measure(today, LABEL)
    if history.days > 1 and room > 4 * GAP:
        character = "\u25a1" if plot.has_bars else "\u25cb"
        mark = f'<tspan class="b" fill="currentColor">{character}</tspan> '
        yield _write_text(today, plot.right, TITLE, ' text-anchor="end"', mark)


def _draw_lines(plot: Plot) -> Iterator[str]:
    """Write one line for each tick, just below its height."""
    lines = (f"M{number(plot.left)} {round(plot.y(t)) + 0.5}H{plot.right}" for t in plot.ticks)
    yield f'<path d="{"".join(lines)}" stroke="currentColor" stroke-opacity=".25"/>'


def _write_scale(plot: Plot) -> Iterator[str]:
    for tick in plot.ticks:
        yield _write_text(
            short(tick), plot.left - GAP, plot.y(tick) + LABEL / 3, ' text-anchor="end"'
        )


def _write_no_views(history: History, plot: Plot) -> Iterator[str]:
    message = "no views" if history.since else "no views yet"
    middle = (plot.left + plot.right) / 2, (TOP + plot.bottom + LABEL) / 2
    yield _write_text(message, *middle, ' text-anchor="middle"')


def _write_dates(history: History, plot: Plot) -> Iterator[str]:
    y = plot.bottom + LINE
    first, last = _format_date(history.buckets[0]), _format_date(history.buckets[-1])
    if history.days == 1:
        yield _write_text(last, plot.x(0), y, ' text-anchor="middle"')
    else:
        yield _write_text(first, plot.left, y)
        yield _write_text(last, plot.right, y, ' text-anchor="end"')


def _draw_bars(buckets: Sequence[Bucket], plot: Plot) -> Iterator[str]:
    """Draw a bar for each day with views; that of today is hollow, because it is unfinished."""
    *past, today = enumerate(buckets)
    for index, bucket in past:
        if bucket.views:
            yield _draw_bar(index, bucket, plot)
    if today[1].views:
        yield _draw_bar(*today, plot, ' fill-opacity=".3" stroke="currentColor"')


def _draw_bar(index: int, bucket: Bucket, plot: Plot, attributes: str = "") -> str:
    """Draw a bar at least one pixel high, so that every view is visible."""
    width = min(plot.slot - max(1, plot.slot / 5), MAX_BAR)
    height = max(1, plot.bottom - plot.y(bucket.views))
    return (
        f'<rect x="{number(plot.x(index) - width / 2)}" y="{number(plot.bottom - height)}"'
        f' width="{number(width)}" height="{number(height)}"{attributes}>'
        f"<title>{_format_date(bucket)}: {bucket.views:,}</title></rect>"
    )


def _draw_area(buckets: Sequence[Bucket], plot: Plot) -> Iterator[str]:
    """Draw a line over the days with a tinted area under it and a ring at today."""
    points = [(f"{plot.x(n):.1f}", f"{plot.y(day.views):.1f}") for n, day in enumerate(buckets)]
    line, ground = "L".join(f"{x} {y}" for x, y in points), number(plot.bottom)
    (first, _), (last, height) = points[0], points[-1]
    yield f'<path d="M{first} {ground}L{line}L{last} {ground}z" fill-opacity=".3"/>'
    outline = 'fill="none" stroke="currentColor"'
    yield f'<path d="M{line}" {outline} stroke-linejoin="round"/>'
    yield f'<circle cx="{last}" cy="{height}" r="2.5" {outline}/>'


def _write_text(content: str, x: float, y: float, attributes: str = "", before: str = "") -> str:
    index = f'x="{number(x)}" y="{number(y)}"'
    return f"<text {index}{attributes}>{before}{escape(content)}</text>"


def _measure(text: str, size: int) -> float:
    """Return an upper bound of a width: no font in `FONT` is wider than Verdana."""
    return text_width(text, Face.VERDANA, size)
