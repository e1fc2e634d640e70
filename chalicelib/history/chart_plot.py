"""The plot of a chart: its bars or its area, its lines, and the labels of its peak and its mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chalicelib.badges.options import short
from chalicelib.badges.svg_styles import escape, number
from chalicelib.badges.text_width import Face
from chalicelib.badges.text_width import width as text_width
from chalicelib.history.chart_axes import Scale, TimeLabel, write_tick
from chalicelib.history.history import History

LABEL, LINE, NOTE_LINE = 11, 15, 12
"""The size of a label, and the heights of its line and of a line of the mean's label."""
TOP, BOTTOM, RIGHT, GAP = 32, 20, 3, 6
"""Pixels above, below and right of the bars, and between other parts."""
MIN_SLOT, MAX_BAR = 4, 48
"""The minimum slot of a bar, below which an area is drawn, and the maximum width of a bar."""
MARK = 4
"""The length of a mark on the axis of time."""
MEAN = "mean"
WHOLE_MEAN = 10
"""The mean from which on it is shown as a whole number."""
HOLLOW = ' fill-opacity=".3" stroke="currentColor"'
STROKE = 'fill="none" stroke="currentColor" stroke-linecap="round"'
MIDDLE, END = ' text-anchor="middle"', ' text-anchor="end"'


@dataclass(frozen=True, slots=True)
class Plot:
    """The position of the buckets, in pixels from the left and from the top."""

    left: float
    right: float
    bottom: float
    amount: int
    scale: Scale
    top: float = TOP

    @property
    def slot(self) -> float:
        return (self.right - self.left) / self.amount

    @property
    def has_bars(self) -> bool:
        return self.slot >= MIN_SLOT

    def x(self, index: int) -> float:
        return self.left + (index + 0.5) * self.slot

    def y(self, views: float) -> float:
        return self.bottom - self.scale.share(views) * (self.bottom - self.top)


@dataclass(frozen=True, slots=True)
class Peak:
    """The label above the first bucket with the most views."""

    text: str
    x: float
    y: float

    @classmethod
    def of(cls, history: History, plot: Plot) -> Peak:
        """Return the label, within the plot."""
        bucket = history.peak
        text, room = f"peak {bucket.views:,}", plot.right - plot.left
        if measure(text) > room / 2:
            text = f"peak {short(bucket.views)}"
        half = measure(text) / 2
        x = plot.x(history.buckets.index(bucket))
        return cls(text, min(max(x, plot.left + half), plot.right - half), plot.y(bucket.views) - 4)

    def interrupt(self, y: float) -> tuple[float, float] | None:
        """Return where the label interrupts a horizontal line."""
        half = measure(self.text) / 2 + 2
        return (self.x - half, self.x + half) if self.y - LABEL < y < self.y + 3 else None


def has_mean(history: History) -> bool:
    """Return whether the mean has a line: one bucket is its own mean."""
    return len(history.buckets) > 1 and history.total > 0


def write_mean(mean: float) -> str:
    """Write the mean with at most one decimal place."""
    if mean >= WHOLE_MEAN:
        return short(round(mean))
    written = f"{mean:.1f}"
    return "<0.1" if written == "0.0" else written.removesuffix(".0")


def draw_mean(history: History, plot: Plot) -> str:
    """Draw a dashed line at the mean, and its label right of the plot."""
    y, x = plot.y(history.mean), plot.right + GAP
    upper = min(max(y - 1, plot.top + LABEL - 3), plot.bottom - NOTE_LINE)
    line = f"M{number(plot.left)} {number(y)}H{number(plot.right + GAP / 2)}"
    return (
        f'<path d="{line}" stroke="currentColor" stroke-dasharray="4 3"/>'
        f"{write_text(MEAN, x, upper)}"
        f"{write_text(write_mean(history.mean), x, upper + NOTE_LINE)}"
    )


def draw_lines(plot: Plot, peak: Peak | None) -> str:
    """Write one line for each tick, just below its height, with a gap at the peak's label."""
    path = ""
    for tick in plot.scale.ticks:
        y = round(plot.y(tick)) + 0.5
        gap = peak.interrupt(y) if peak else None
        begin, end = f"M{number(plot.left)} {y}", f"H{number(plot.right)}"
        if gap and gap[0] > plot.left:
            begin += f"H{number(gap[0])}"
        if gap:
            end = f"M{number(gap[1])} {y}{end}" if gap[1] < plot.right else ""
        path += begin + end
    return f'<path d="{path}" stroke="currentColor" stroke-opacity=".25"/>'


def write_scale(plot: Plot) -> str:
    """Write the numbers of views at the left of the plot."""
    return "".join(
        write_text(write_tick(tick), plot.left - GAP, plot.y(tick) + LABEL / 3, END)
        for tick in plot.scale.ticks
    )


def write_times(labels: Sequence[TimeLabel], plot: Plot) -> str:
    """Write the times below the plot, and a mark at the bucket of each."""
    ground = number(plot.bottom + 0.5)
    marks = "".join(f"M{number(plot.x(label.bucket))} {ground}v{MARK}" for label in labels)
    texts = (write_text(label.text, label.x, plot.bottom + LINE, MIDDLE) for label in labels)
    return f'<path d="{marks}" stroke="currentColor" stroke-opacity=".5"/>{"".join(texts)}'


def write_no_views(history: History, plot: Plot) -> str:
    """Write that there are no views in the middle of the plot."""
    message = "no views" if history.since else "no views yet"
    middle = (plot.left + plot.right) / 2, (plot.top + plot.bottom + LABEL) / 2
    return write_text(message, *middle, MIDDLE)


def draw_bars(history: History, plot: Plot) -> Iterator[str]:
    """Draw a bar for each bucket with views; the current one is hollow: it is not over."""
    last = len(history.buckets) - 1
    width = number(min(plot.slot - max(1, plot.slot / 5), MAX_BAR))
    for index, bucket in enumerate(history.buckets):
        if bucket.views:
            hollow = index == last and history.is_current
            height = max(1, plot.bottom - plot.y(bucket.views))
            yield (
                f'<rect x="{number(plot.x(index) - float(width) / 2)}"'
                f' y="{number(plot.bottom - height)}" width="{width}" height="{number(height)}"'
                f"{HOLLOW if hollow else ''}>"
                f"<title>{history.by.label(bucket.start)}: {bucket.views:,}</title></rect>"
            )


def draw_area(history: History, plot: Plot) -> Iterator[str]:
    """Draw a line over the buckets with a tinted area under it, and a ring at the current one."""
    points = [
        (f"{plot.x(index):.1f}", f"{plot.y(bucket.views):.1f}")
        for index, bucket in enumerate(history.buckets)
    ]
    line, ground = "L".join(f"{x} {y}" for x, y in points), number(plot.bottom)
    (first, _), (last, height) = points[0], points[-1]
    yield f'<path d="M{first} {ground}L{line}L{last} {ground}z" fill-opacity=".3"/>'
    outline = 'fill="none" stroke="currentColor"'
    yield f'<path d="M{line}" {outline} stroke-linejoin="round"/>'
    if history.is_current:
        yield f'<circle cx="{last}" cy="{height}" r="2.5" {outline}/>'


def draw_visitors(history: History, visitors: Sequence[int | None], plot: Plot) -> str:
    """Draw a line over the known numbers, interrupted where a day is unknown.

    Over bars it has an edge in the colour of the page, so that it is seen on any colour of theirs.
    """
    path, dots, is_drawn = "", "", False
    for index, number_known in enumerate(visitors):
        if number_known is not None:
            x, y = f"{plot.x(index):.1f}", f"{plot.y(number_known):.1f}"
            path += f"{'L' if is_drawn else 'M'}{x} {y}{'' if is_drawn else 'h0'}"
            title = f"{history.buckets[index].start:%Y-%m-%d}: {number_known:,} unique visitors"
            dots += f'<circle cx="{x}" cy="{y}" r="2.5"><title>{title}</title></circle>'
        is_drawn = number_known is not None
    if not (path and plot.has_bars):
        return f'<path d="{path}" {STROKE} stroke-width="1.25"/>' if path else ""
    edge = f'<path class="p" d="{path}" {STROKE} stroke-width="5"/>'
    return f'{edge}<path d="{path}" {STROKE} stroke-width="2"/>{dots}'


def write_text(content: str, x: float, y: float, attributes: str = "", before: str = "") -> str:
    """Write a text at a position."""
    place = f'x="{number(x)}" y="{number(y)}"'
    return f"<text {place}{attributes}>{before}{escape(content)}</text>"


def measure(text: str, size: int = LABEL) -> float:
    """Return an upper bound of a width: no font in `FONT` is wider than Verdana."""
    return text_width(text, Face.VERDANA, size)
