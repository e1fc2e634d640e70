"""The chart of a history for a README: an SVG that is readable on a light and on a dark page.

The image is transparent and refers to nothing outside itself. Its colours are those of a theme, or
follow `prefers-color-scheme`. Then the default colours contrast with both pages of GitHub in either
scheme, because a page may be dark while the browser's scheme is light.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from datetime import datetime

from chalicelib.badges import colors
from chalicelib.badges.options import short
from chalicelib.badges.svg_styles import escape, number
from chalicelib.history import chart_axes, chart_plot
from chalicelib.history.buckets import Interval
from chalicelib.history.chart_axes import TimeAxis
from chalicelib.history.chart_plot import (
    END,
    GAP,
    LABEL,
    LINE,
    MEAN,
    MIDDLE,
    STROKE,
    Peak,
    Plot,
    measure,
    write_text,
)
from chalicelib.history.history import History

FONT = f'font-size="{LABEL}" font-family="-apple-system,Segoe UI,Helvetica,Arial,sans-serif"'
THEMES, SCALES = ("auto", "light", "dark"), chart_axes.SCALES
TITLE, BOLD = 13, 15
"""The size of the title, and the size that bounds its width, because it is bold."""
LIGHT_PAGE, DARK_PAGE = "#ffffff", "#0d1117"
PAGES = (LIGHT_PAGE, DARK_PAGE)
"""The backgrounds of GitHub's pages."""
CURRENT = {
    Interval.HOUR: "this hour",
    Interval.DAY: "today",
    Interval.WEEK: "this week",
    Interval.MONTH: "this month",
}
PREPOSITIONS = {
    Interval.HOUR: "at",
    Interval.DAY: "on",
    Interval.WEEK: "in the week of",
    Interval.MONTH: "in",
}
GREY = ("#656d76", "#8b949e")
BLUE = ("#0969da", "#4493f8")
ORANGE = ("#bc4c00", "#f0883e")
RED = ("#cf222e", "#f85149")
"""Each colour in the light and in the dark scheme."""
MIN_CONTRAST = 3.0
"""The minimum contrast of a graphic with its page. Source: W3C, WCAG 2.2, 1.4.11."""


@dataclass(frozen=True, slots=True)
class Look:
    """The size of a chart in pixels, its colours, and its scale.

    `color` is that of the bars: `#rrggbb`, or empty for GitHub's blue. A line over them shows
    GitHub's unique visitors if it `has_visitors`.
    """

    width: int = 600
    height: int = 150
    color: str = ""
    theme: str = THEMES[0]
    scale: str = SCALES[0]
    has_visitors: bool = False

    @property
    def is_log(self) -> bool:
        return self.scale == "log"


def draw(history: History, look: Look) -> str:
    """Draw the chart of a history."""
    plot = _make_plot(history, look)
    legend = _write_legend(history, look) if look.has_visitors else ""
    return _write_document(
        look,
        title=write_headline(history),
        description=describe(history, look),
        content=_write_title(history, look, plot) + legend + _draw_content(history, look, plot),
        accent=readable(look.color) if look.color else BLUE,
    )


def write_headline(history: History, *, is_short: bool = False) -> str:
    """Write the number of views and the length of the history."""
    total = short(history.total) if is_short else f"{history.total:,}"
    views = "view" if history.total == 1 else "views"
    by, amount = history.by, len(history.buckets)
    if amount == 1:
        start = history.buckets[0].start
        return f"{total} {views} {CURRENT[by] if history.is_current else _write_when(by, start)}"
    if by is Interval.HOUR and history.days > 1:
        return f"{total} {views} in {history.days} days"
    return f"{total} {views} in {amount} {by}s"


def describe(history: History, look: Look) -> str:
    """Describe the bars, and the line of GitHub's unique visitors, in words."""
    by, last, peak = history.by, history.buckets[-1], history.peak
    first = by.label(history.buckets[0].start)
    unit = "an hour" if by is Interval.HOUR else f"a {by}"
    text = f"Views {unit} from {first} to {by.label(last.start)}, UTC."
    text += f" At most {peak.views:,}, {_write_when(by, peak.start)}."
    text += f" On average {history.mean:,.1f}."
    if history.is_current:
        text += f" {CURRENT[by].capitalize()} {last.views:,} so far."
    text += " The scale is logarithmic." if look.is_log else ""
    return text + (_describe_visitors(history) if look.has_visitors else "")


def _describe_visitors(history: History) -> str:
    known = [one for one in history.visitors if one is not None]
    if not known:
        return " GitHub's unique visitors a day are not known."
    days = f"{len(known)} of {len(history.buckets)}"
    return f" GitHub's unique visitors a day: at most {max(known):,}. Known days: {days}."


def _write_when(by: Interval, start: datetime) -> str:
    return f"{PREPOSITIONS[by]} {by.label(start)}"


def draw_error(reason: str, look: Look) -> str:
    """Draw an error message in a frame of the chart's size."""
    reason = "".join(character for character in reason if character.isprintable())
    lines = textwrap.wrap(reason, width=int((look.width - 2 * GAP) / measure("0")))
    middle, above = look.width / 2, (look.height - LINE * len(lines)) / 2 + LABEL
    texts = [
        write_text(line, middle, above + LINE * index, MIDDLE) for index, line in enumerate(lines)
    ]
    frame = f'<rect x=".5" y=".5" width="{look.width - 1}" height="{look.height - 1}" rx="6"'
    frame += ' fill="none" stroke="currentColor"/>'
    content = _group("b", frame + "".join(texts))
    return _write_document(look, title=reason, description="", content=content, accent=RED)


def _write_document(
    look: Look, *, title: str, description: str, content: str, accent: tuple[str, str]
) -> str:
    size = f'width="{look.width}" height="{look.height}" viewBox="0 0 {look.width} {look.height}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc>"
        f"<style>{write_style(accent, look.theme, has_visitors=look.has_visitors)}</style>"
        f"<g {FONT}>{content}</g></svg>"
    )


def _group(name: str, content: str) -> str:
    return f'<g class="{name}" fill="currentColor">{content}</g>'


def _make_plot(history: History, look: Look) -> Plot:
    bottom, top = look.height - chart_plot.BOTTOM, chart_plot.TOP + LINE * look.has_visitors
    visitors = [one or 0 for one in history.visitors] if look.has_visitors else []
    most = max([history.peak.views, *visitors])
    scale = chart_axes.choose_scale(most, bottom - top, is_log=look.is_log)
    left = round(max(measure(chart_axes.write_tick(tick)) for tick in scale.ticks)) + GAP
    right = look.width - chart_plot.RIGHT
    if chart_plot.has_mean(history):
        texts = MEAN, chart_plot.write_mean(history.mean)
        right -= round(max(map(measure, texts)) + GAP)
    return Plot(left, right, bottom, len(history.buckets), scale, top)


def _write_title(history: History, look: Look, plot: Plot) -> str:
    """Write the number of views and, if there is room, the views now and a note on the right."""
    end = look.width - chart_plot.RIGHT
    title = write_headline(history)
    if measure(title, BOLD) > end:
        title = write_headline(history, is_short=True)
    written = write_text(title, 0, TITLE, f' font-size="{TITLE}" font-weight="600"')
    has_current = plot.amount > 1 and history.is_current
    current = f"{history.buckets[-1].views:,} {CURRENT[history.by]}"
    notes = [current] if has_current else []
    note = " \u00b7 ".join([*notes, *(["log scale"] if look.is_log else [])])
    if note and end - measure(title, BOLD) - measure(note) > 4 * GAP:
        # The shape that the current bucket has in the plot.
        shape = "\u25a1" if plot.has_bars else "\u25cb"
        mark = f'<tspan class="b" fill="currentColor">{shape}</tspan> '
        written += write_text(note, end, TITLE, END, mark if has_current else "")
    return _group("t", written)


def _write_legend(history: History, look: Look) -> str:
    is_known = any(one is not None for one in history.visitors)
    names = [f"GitHub's unique visitors a day{'' if is_known else ': no numbers yet'}", "visitors"]
    start, y = 2 * GAP + round(measure("\u25a0 views")), TITLE + LINE
    room = look.width - start - 3 * GAP
    name = next((name for name in names if measure(name) <= room), names[-1])
    path = f"M{number(start)} {number(y - 4)}H{number(start + 2 * GAP)}"
    line = f'<path d="{path}" {STROKE} stroke-width="2"/>'
    views, visitors = write_text("\u25a0", 0, y), write_text(name, start + 3 * GAP, y)
    texts = write_text("views", 2 * GAP, y) + visitors
    return _group("b", views) + _group("v", line) + _group("t", texts)


def _draw_content(history: History, look: Look, plot: Plot) -> str:
    starts = [bucket.start for bucket in history.buckets]
    axis = TimeAxis(
        history.by, starts, plot.x, measure, look.width, has_year=not history.is_current
    )
    times = chart_plot.write_times(axis.labels(), plot)
    visitors = history.visitors if look.has_visitors else ()
    line = _group("v", chart_plot.draw_visitors(history, visitors, plot)) if visitors else ""
    peak = Peak.of(history, plot) if history.total else None
    is_empty = not peak and not any(visitors)
    scale = chart_plot.write_no_views(history, plot) if is_empty else chart_plot.write_scale(plot)
    axes = _group("t", chart_plot.draw_lines(plot, peak) + scale + times)
    if not peak:
        return axes + line
    mean = chart_plot.draw_mean(history, plot) if chart_plot.has_mean(history) else ""
    draw_views = chart_plot.draw_bars if plot.has_bars else chart_plot.draw_area
    views = "".join(draw_views(history, plot))
    label = write_text(peak.text, peak.x, peak.y, MIDDLE)
    return axes + _group("b", views) + line + _group("t", mean + label)


def write_style(accent: tuple[str, str], theme: str, *, has_visitors: bool = False) -> str:
    """Return the style sheet: of one theme, or of the scheme of the reader's system."""
    light, dark = (
        f".t{{color:{grey}}}.b{{color:{color}}}"
        + f".v{{color:{orange}}}.p{{color:{page}}}" * has_visitors
        for grey, color, orange, page in zip(GREY, accent, ORANGE, PAGES, strict=True)
    )
    automatic = f"{light}@media (prefers-color-scheme:dark){{{dark}}}"
    return {"light": light, "dark": dark}.get(theme, automatic)


def readable(color: str) -> tuple[str, str]:
    """Return a colour for the light and the dark page, darkened or lightened if necessary."""
    return _adapt(color, LIGHT_PAGE, "#000000"), _adapt(color, DARK_PAGE, "#ffffff")


def _adapt(color: str, page: str, toward: str) -> str:
    """Mix a colour with `toward` in twentieths until it contrasts with the page."""
    mixtures = (_mix(color, toward, part / 20) for part in range(21))
    return next(mixture for mixture in mixtures if colors.contrast(mixture, page) >= MIN_CONTRAST)


def _mix(color: str, other: str, part: float) -> str:
    pairs = zip(bytes.fromhex(color[1:]), bytes.fromhex(other[1:]), strict=True)
    return "#" + bytes(round(a + (b - a) * part) for a, b in pairs).hex()
