"""The chart of a history for a README: an SVG that is readable on a light and on a dark page.

The image is transparent and refers to nothing outside itself. Its colours are those of a theme, or
follow `prefers-color-scheme`. Then the default colours contrast with both pages of GitHub in either
scheme, because a page may be dark while the browser's scheme is light.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from chalicelib.badges import colors
from chalicelib.badges.options import short
from chalicelib.badges.svg_styles import escape, number
from chalicelib.history import chart_axes
from chalicelib.history.chart_axes import GAP, LABEL, LINE, Plot, measure, write_text
from chalicelib.history.history import History, Interval

MAX_BAR = 48
"""The maximum width of a bar."""
NOTE_LINE = 12
"""The height of a line of the mean's label."""
MEAN = "mean"
WHOLE_MEAN = 10
"""The mean from which on it is shown as a whole number."""
HOLLOW = ' fill-opacity=".3" stroke="currentColor"'
STROKE = 'fill="none" stroke="currentColor" stroke-linecap="round"'
FONT = f'font-size="{LABEL}" font-family="-apple-system,Segoe UI,Helvetica,Arial,sans-serif"'
THEMES = ("auto", "light", "dark")
TITLE, BOLD = 13, 15
"""The size of the title, and the size that bounds its width, because it is bold."""
LIGHT_PAGE, DARK_PAGE = "#ffffff", "#0d1117"
PAGES = (LIGHT_PAGE, DARK_PAGE)
"""The backgrounds of GitHub's pages."""
WORDS = {
    Interval.HOUR: ("this hour", "at"),
    Interval.DAY: ("today", "on"),
    Interval.WEEK: ("this week", "in the week of"),
    Interval.MONTH: ("this month", "in"),
}
"""The current bucket of each unit, and the preposition before the start of another one."""
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
    is_log: bool = False
    has_visitors: bool = False


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
        return f"{total} {views} {WORDS[by][0] if history.is_current else _write_when(by, start)}"
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
        text += f" {WORDS[by][0].capitalize()} {last.views:,} so far."
    text += " The scale is logarithmic." if look.is_log else ""
    return text + (_describe_visitors(history) if look.has_visitors else "")


def _describe_visitors(history: History) -> str:
    known = [one for one in history.visitors if one is not None]
    if not known:
        return " GitHub's unique visitors a day are not known."
    days = f"{len(known)} of {len(history.buckets)}"
    return f" GitHub's unique visitors a day: at most {max(known):,}. Known days: {days}."


def _write_when(by: Interval, start: datetime) -> str:
    return f"{WORDS[by][1]} {by.label(start)}"


def draw_error(reason: str, look: Look) -> str:
    """Draw an error message in a frame of the chart's size."""
    reason = "".join(character for character in reason if character.isprintable())
    lines = textwrap.wrap(reason, width=int((look.width - 2 * GAP) / measure("0")))
    middle, above = look.width / 2, (look.height - LINE * len(lines)) / 2 + LABEL
    texts = [
        write_text(line, middle, above + LINE * index, chart_axes.MIDDLE)
        for index, line in enumerate(lines)
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
    bottom, top = look.height - chart_axes.BOTTOM, chart_axes.TOP + LINE * look.has_visitors
    visitors = [one or 0 for one in history.visitors] if look.has_visitors else []
    most = max([history.peak.views, *visitors])
    scale = chart_axes.choose_scale(most, bottom - top, is_log=look.is_log)
    left = round(max(measure(chart_axes.write_tick(tick)) for tick in scale.ticks)) + GAP
    right = look.width - chart_axes.RIGHT
    if has_mean(history):
        texts = MEAN, write_mean(history.mean)
        right -= round(max(map(measure, texts)) + GAP)
    return Plot(left, right, bottom, len(history.buckets), scale, top)


def _write_title(history: History, look: Look, plot: Plot) -> str:
    """Write the number of views and, if there is room, the views now and a note on the right."""
    end = look.width - chart_axes.RIGHT
    title = write_headline(history)
    if measure(title, BOLD) > end:
        title = write_headline(history, is_short=True)
    written = write_text(title, 0, TITLE, f' font-size="{TITLE}" font-weight="600"')
    has_current = plot.amount > 1 and history.is_current
    current = f"{history.buckets[-1].views:,} {WORDS[history.by][0]}"
    note = " \u00b7 ".join([current] * has_current + ["log scale"] * look.is_log)
    if note and end - measure(title, BOLD) - measure(note) > 4 * GAP:
        # The shape that the current bucket has in the plot.
        shape = "\u25a1" if plot.has_bars else "\u25cb"
        mark = f'<tspan class="b" fill="currentColor">{shape}</tspan> '
        written += write_text(note, end, TITLE, chart_axes.END, mark if has_current else "")
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
    size, has_year = (plot.x, measure, look.width), not history.is_current
    axis = chart_axes.TimeAxis(history.by, history.starts, *size, has_year=has_year)
    times = chart_axes.write_times(axis.labels(), plot)
    visitors = history.visitors if look.has_visitors else ()
    line = _group("v", draw_visitors(history, visitors, plot)) if visitors else ""
    peak = chart_axes.Peak.of(history, plot) if history.total else None
    is_empty = not peak and not any(visitors)
    scale = write_no_views(history, plot) if is_empty else chart_axes.write_scale(plot)
    axes = _group("t", chart_axes.draw_lines(plot, peak) + scale + times)
    if not peak:
        return axes + line
    mean = draw_mean(history, plot) if has_mean(history) else ""
    draw_views = draw_bars if plot.has_bars else draw_area
    views = "".join(draw_views(history, plot))
    label = write_text(peak.text, peak.x, peak.y, chart_axes.MIDDLE)
    return axes + _group("b", views) + line + _group("t", mean + label)


def readable(color: str) -> tuple[str, str]:
    """Return a colour for the light and the dark page, darkened or lightened if necessary."""
    return _adapt(color, LIGHT_PAGE, "#000000"), _adapt(color, DARK_PAGE, "#ffffff")


def _adapt(color: str, page: str, toward: str) -> str:
    """Mix a colour with `toward` in twentieths until it contrasts with the page."""
    mixtures = (colors.mix(color, toward, part / 20) for part in range(21))
    return next(mixture for mixture in mixtures if colors.contrast(mixture, page) >= MIN_CONTRAST)


def write_style(accent: tuple[str, str], theme: str, *, has_visitors: bool = False) -> str:
    """Return the style sheet: of one theme, or of the scheme of the reader's system."""
    light, dark = (
        f".t{{color:{grey}}}.b{{color:{color}}}"
        + f".v{{color:{orange}}}.p{{color:{page}}}" * has_visitors
        for grey, color, orange, page in zip(GREY, accent, ORANGE, PAGES, strict=True)
    )
    automatic = f"{light}@media (prefers-color-scheme:dark){{{dark}}}"
    return {"light": light, "dark": dark}.get(theme, automatic)


# ---- the plot


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


def write_no_views(history: History, plot: Plot) -> str:
    """Write that there are no views in the middle of the plot."""
    message = "no views" if history.since else "no views yet"
    middle = (plot.left + plot.right) / 2, (plot.top + plot.bottom + LABEL) / 2
    return write_text(message, *middle, chart_axes.MIDDLE)


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
