"""The axes of a chart and its plot: numbers that read well, and times with labels that fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count, pairwise
from math import log1p
from typing import NamedTuple

from chalicelib.badges.options import THOUSANDS, short
from chalicelib.badges.svg_styles import escape, number
from chalicelib.badges.text_width import Face
from chalicelib.badges.text_width import width as text_width
from chalicelib.counting.summary import HOURS_OF_DAY
from chalicelib.history.history import MONTHS, History, Interval

LABEL, LINE = 11, 15
"""The size of a label, and the height of its line."""
TOP, BOTTOM, RIGHT, GAP = 32, 20, 3, 6
"""Pixels above, below and right of the bars, and between other parts."""
MIN_SLOT = 4
"""The minimum slot of a bar, below which an area is drawn."""
MARK = 4
"""The length of a mark on the axis of time."""
MIDDLE, END = ' text-anchor="middle"', ' text-anchor="end"'
STEPS = range(2, 9)
"""The numbers of steps of the axis of views."""
STEP_HEIGHT = 18
"""The minimum height of a step in pixels."""
LEAST_STEP = 0.9
"""The minimum step of a logarithmic axis, as a share of an even step."""
LABEL_GAP = 8
"""The minimum gap between two labels of the axis of time, in pixels."""
MONTH_NAMES = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
HOURS = (1, 3, 6, 12)
DAYS = (1, 7, 14)
MONTH_COUNTS = (1, 3, 6, *(MONTHS * years for years in (1, 2, 5, 10, 20)))
"""The hours, days and months between two labels of the axis of time."""


# ---- views


@dataclass(frozen=True, slots=True)
class Scale:
    """The axis of views. The ticks start at 0, and the last is at the upper edge."""

    ticks: Sequence[int]
    is_log: bool = False

    def share(self, views: float) -> float:
        """Return the height of a number of views, 0 to 1.

        A logarithmic axis shows the logarithm of 1 + views, so that 0 is at its lower edge.
        """
        top = self.ticks[-1] or 1
        return log1p(views) / log1p(top) if self.is_log else views / top


def choose_scale(most: int, height: float, *, is_log: bool) -> Scale:
    """Return the axis for up to `most` views, `height` pixels high."""
    steps = max(STEPS[0], min(STEPS[-1], int(height / STEP_HEIGHT)))
    return Scale(powers(most, steps) if is_log else ticks(most, steps), is_log)


def ticks(most: int, steps: int) -> list[int]:
    """Return 0 and at most `steps` equal steps, the last of them at or just above `most`.

    A step is 1, 2, 2.5 or 5 times a power of ten. Of axes with the same end, the one with the
    fewest steps is the best, but one step is too few.
    """
    axes = []
    for step in _nice((1, 2, 2.5, 5)):
        number = -(-most // step)
        if number <= steps:
            axes.append((number * step, number < STEPS[0], number, step))
        if step >= most:
            break
    *_, number, step = min(axes)
    return [place * step for place in range(number + 1)]


def powers(most: int, steps: int) -> list[int]:
    """Return 0, powers of ten, and the last tick: 1, 2 or 5 times one, at or above `most`.

    No two ticks are closer than `LEAST_STEP` of an even step.
    """
    if not most:
        return [0]
    top = next(step for step in _nice((1, 2, 5)) if step >= most)
    share, room = Scale([0, top], is_log=True).share, LEAST_STEP / steps
    kept = [0]
    for power in range(len(str(top))):
        tick = 10**power
        if share(kept[-1]) + room <= share(tick) <= 1 - room:
            kept.append(tick)
    return [*kept, top]


def write_tick(views: int) -> str:
    """Write a tick in short, but exactly: 12.5k."""
    power = min((len(str(views)) - 1) // 3, len(THOUSANDS) - 1)
    return f"{views / 1000**power:.15g}{THOUSANDS[power]}"


def _nice(digits: Sequence[float]) -> Iterator[int]:
    """Yield the whole numbers that are one of the digits times a power of ten."""
    for power in count():
        for digit in digits:
            if digit == int(digit) or power:
                yield int(digit * 10) * 10**power // 10


# ---- time


class TimeLabel(NamedTuple):
    """A label of the axis of time: the number of its bucket, its text, and its middle."""

    bucket: int
    text: str
    x: float


class Rule(NamedTuple):
    """A distance of labels: every so many hours, days or months, which `number` counts."""

    number: Callable[[datetime], int]
    every: int
    write: Callable[[datetime], str]

    def group(self, start: datetime) -> int:
        """Return the group of a bucket. The first bucket of each group has a label."""
        return self.number(start) // self.every


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """The axis of time: the place of each bucket in pixels, and the length of a text."""

    by: Interval
    starts: Sequence[datetime]
    x: Callable[[int], float]
    measure: Callable[[str], float]
    width: float
    has_year: bool

    def labels(self) -> list[TimeLabel]:
        """Return as many labels as fit side by side, at even distances."""
        least = min(2, len(self.starts))
        for rule in _rules(self.by):
            labels = self._fit(self._find(rule), rule)
            if len(labels) >= least:
                return labels
        rule = EVERY_MONTH if self.by is Interval.MONTH else EVERY_DAY
        ends = [0, len(self.starts) - 1]
        return self._fit(ends, rule) or self._fit(ends[1:], rule)

    def _find(self, rule: Rule) -> Iterator[int]:
        before = self.by.start(self.starts[0] - timedelta(hours=1))
        groups = pairwise(map(rule.group, [before, *self.starts]))
        return (index for index, (one, other) in enumerate(groups) if one != other)

    def _fit(self, indexes: Iterator[int] | Sequence[int], rule: Rule) -> list[TimeLabel]:
        """Return the labels of buckets, or none if two would be too close."""
        labels: list[TimeLabel] = []
        end = -float(LABEL_GAP)
        for index in indexes:
            text = self._write(index, rule, is_first=not labels)
            half = self.measure(text) / 2
            x = min(max(self.x(index), half), self.width - half)
            if x - half - LABEL_GAP < end:
                return []
            labels.append(TimeLabel(index, text, x))
            end = x + half
        return labels

    def _write(self, index: int, rule: Rule, *, is_first: bool) -> str:
        text, year = rule.write(self.starts[index]), str(self.starts[index].year)
        if not (is_first and self.has_year) or text == year:
            return text
        return f"{text}, {year}" if text[-1].isdigit() else f"{text} {year}"


def _rules(by: Interval) -> Iterator[Rule]:
    if by is Interval.HOUR:
        yield from (Rule(_count_hours, hours, _write_hour) for hours in HOURS)
    if by is not Interval.MONTH:
        yield from (Rule(_count_days, days, _write_day) for days in DAYS)
    yield from (Rule(_count_months, months, _write_month) for months in MONTH_COUNTS)


def _count_hours(start: datetime) -> int:
    return _count_days(start) * HOURS_OF_DAY + start.hour


def _count_days(start: datetime) -> int:
    """Return the number of days since a Monday."""
    return start.toordinal() - 1


def _count_months(start: datetime) -> int:
    return start.year * MONTHS + start.month - 1


def _write_hour(start: datetime) -> str:
    return f"{start.hour:02}:00" if start.hour else _write_day(start)


def _write_day(start: datetime) -> str:
    return f"{MONTH_NAMES[start.month - 1]} {start.day}"


def _write_month(start: datetime) -> str:
    return MONTH_NAMES[start.month - 1] if start.month > 1 else str(start.year)


EVERY_DAY, EVERY_MONTH = Rule(_count_days, 1, _write_day), Rule(_count_months, 1, _write_month)


# ---- the plot


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


def write_text(content: str, x: float, y: float, attributes: str = "", before: str = "") -> str:
    """Write a text at a position."""
    place = f'x="{number(x)}" y="{number(y)}"'
    return f"<text {place}{attributes}>{before}{escape(content)}</text>"


def measure(text: str, size: int = LABEL) -> float:
    """Return an upper bound of a width: no font in `FONT` is wider than Verdana."""
    return text_width(text, Face.VERDANA, size)
