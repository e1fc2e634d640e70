"""The chart of a history is complete, correct and readable for any history."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import combinations
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.badges.colors import contrast
from chalicelib.badges.text_width import Face, width
from chalicelib.history import chart, chart_axes
from chalicelib.history.chart import Look
from chalicelib.history.history import Bucket, History, Interval, Span

TODAY = datetime(2026, 11, 21, tzinfo=UTC)
SVG = "{http://www.w3.org/2000/svg}"
LARGE = 10**15
looks = st.builds(
    Look,
    st.integers(200, 1200),
    st.integers(80, 400),
    st.just("") | st.from_regex("#[0-9a-f]{6}", fullmatch=True),
)
counts = st.lists(st.integers(0, 5) | st.integers(0, LARGE), min_size=1, max_size=400)


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Return any history: of each unit, at any time, with a few views or many."""
    by = draw(st.sampled_from(Interval))
    amount = draw(st.integers(1, by.most))
    end = draw(st.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001
    last = by.start(end)
    starts = [*by.buckets(last - amount * timedelta(hours=1), last)]
    views = draw(st.lists(st.integers(0, 5) | st.integers(0, LARGE), min_size=1, max_size=9))
    buckets = tuple(Bucket(start, views[n % len(views)]) for n, start in enumerate(starts))
    return History(by, len(starts), None, buckets, is_current=draw(st.booleans()))


def of(*views: int, known: bool = True) -> History:
    """Return a history of the views of consecutive days up to today."""
    days = [TODAY - timedelta(days=ago) for ago in reversed(range(len(views)))]
    buckets = tuple(Bucket(start, count) for start, count in zip(days, views, strict=True))
    return History(Interval.DAY, len(views), days[0].date() if known else None, buckets)


def parse(drawn: str) -> ET.Element:
    return ET.fromstring(drawn)  # noqa: S314  our own


def texts(drawn: str) -> list[str]:
    return ["".join(text.itertext()) for text in parse(drawn).iter(f"{SVG}text")]


def attributes(element: ET.Element, *names: str) -> list[float]:
    return [float(element.attrib[name]) for name in names]


def bars(drawn: str) -> list[list[float]]:
    return [attributes(bar, "x", "y", "width", "height") for bar in parse(drawn).iter(f"{SVG}rect")]


def line(drawn: str) -> list[list[float]]:
    """Return x and y of each point of an area's upper edge, which is the last path of its group."""
    (group,) = (part for part in parse(drawn).iter(f"{SVG}g") if part.get("class") == "b")
    *_, edge = group.iter(f"{SVG}path")
    return [[float(part) for part in point.split()] for point in edge.attrib["d"][1:].split("L")]


def edges(text: ET.Element, size: int) -> tuple[float, float]:
    x = float(text.attrib["x"])
    wide = width("".join(text.itertext()), Face.VERDANA, size)
    before = {"end": wide, "middle": wide / 2}.get(text.attrib.get("text-anchor", ""), 0)
    return x - before, x - before + wide


SMALL = """
<svg xmlns="http://www.w3.org/2000/svg" width="300" height="80" viewBox="0 0 300 80" role="img">
<title>4 views in 3 days</title>
<desc>Views a day from 2026-11-19 to 2026-11-21, UTC.
 At most 3, on 2026-11-21. On average 1.3. Today 3 so far.</desc>
<style>.t{color:#656d76}.b{color:#0969da}
@media (prefers-color-scheme:dark){.t{color:#8b949e}.b{color:#4493f8}}</style>
<g font-size="11" font-family="-apple-system,Segoe UI,Helvetica,Arial,sans-serif">
<g class="t" fill="currentColor">
<text x="0" y="13" font-size="13" font-weight="600">4 views in 3 days</text>
<text x="297" y="13" text-anchor="end">
<tspan class="b" fill="currentColor">\u25a1</tspan> 3 today</text></g>
<g class="t" fill="currentColor">
<path d="M13 60.5H260M13 46.5H260M13 32.5H198.14M239.52 32.5H260"
 stroke="currentColor" stroke-opacity=".25"/>
<text x="7" y="63.67" text-anchor="end">0</text>
<text x="7" y="49.67" text-anchor="end">2</text>
<text x="7" y="35.67" text-anchor="end">4</text>
<path d="M54.17 60.5v4M136.5 60.5v4M218.83 60.5v4" stroke="currentColor" stroke-opacity=".5"/>
<text x="54.17" y="75" text-anchor="middle">Nov 19</text>
<text x="136.5" y="75" text-anchor="middle">Nov 20</text>
<text x="218.83" y="75" text-anchor="middle">Nov 21</text></g>
<g class="b" fill="currentColor">
<rect x="30.17" y="53" width="48" height="7"><title>2026-11-19: 1</title></rect>
<rect x="194.83" y="39" width="48" height="21" fill-opacity=".3" stroke="currentColor">
<title>2026-11-21: 3</title></rect></g>
<g class="t" fill="currentColor">
<path d="M13 50.67H263" stroke="currentColor" stroke-dasharray="4 3"/>
<text x="266" y="48">mean</text><text x="266" y="60">1.3</text>
<text x="218.83" y="35" text-anchor="middle">peak 3</text></g></g></svg>
"""


def test_a_chart_reads_like_this() -> None:
    """Three days share 247 px, and 4 views would be 28 px high: 1 is 7 px, 3 are 21 px."""
    assert chart.draw(of(1, 0, 3), Look(300, 80)) == SMALL.replace("\n", "")


@given(views=counts, look=looks, known=st.booleans())
def test_any_history_in_any_look_is_a_whole_picture_that_refers_to_nothing(
    views: list[int], look: Look, *, known: bool
) -> None:
    drawn = chart.draw(of(*views, known=known), look)
    root = parse(drawn)
    assert (root.tag, root.attrib["role"]) == (f"{SVG}svg", "img")
    assert root.attrib["viewBox"] == f"0 0 {look.width} {look.height}"
    assert attributes(root, "width", "height") == [look.width, look.height]
    assert all(not (part.tail or "").strip() for part in root.iter() if part.tag != f"{SVG}tspan")
    assert [part.tag for part in root][:3] == [f"{SVG}title", f"{SVG}desc", f"{SVG}style"]
    inside = drawn.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"script|href|url\(|@import|http|javascript|\son\w+=|<!", inside)


@given(histories(), looks)
def test_every_text_is_within_the_picture_and_none_overlap(history: History, look: Look) -> None:
    boxes = []
    for text in parse(chart.draw(history, look)).iter(f"{SVG}text"):
        y, size = float(text.attrib["y"]), int(text.attrib.get("font-size", 11))
        left, right = edges(text, size)
        assert left > -1
        assert right < look.width + 1
        assert size * 0.7 <= y <= look.height
        boxes.append((left, right, y - size * 0.75, y))
    for one, other in combinations(boxes, 2):
        beside = one[1] < other[0] or other[1] < one[0]
        assert beside or one[3] <= other[2] or other[3] <= one[2]


@given(st.lists(st.integers(0, 5) | st.integers(0, LARGE), min_size=1, max_size=40), looks)
def test_bars_are_as_high_as_their_days_have_views(views: list[int], look: Look) -> None:
    """The upper edge is the last tick, and a day with views has at least one pixel."""
    drawn = chart.draw(of(*views), look)
    plot = look.height - 20 - 32
    top = chart_axes.choose_scale(max(views), plot, is_log=False).ticks[-1]
    expected = [max(1.0, plot * count / top) for count in views if count]
    assert [high for *_, high in bars(drawn)] == pytest.approx(expected, abs=0.006)
    assert all(
        y + high == pytest.approx(look.height - 20, abs=0.011) for _, y, _, high in bars(drawn)
    )


@pytest.mark.parametrize(
    ("views", "hollow"), [((1, 2, 3), [False, False, True]), ((1, 2, 0), [False, False])]
)
def test_today_which_is_not_over_is_hollow(views: Sequence[int], hollow: list[bool]) -> None:
    drawn = parse(chart.draw(of(*views), Look()))
    assert ["fill-opacity" in bar.attrib for bar in drawn.iter(f"{SVG}rect")] == hollow


@pytest.mark.parametrize(
    ("days", "wide", "has_bars"),
    [(90, 600, True), (400, 600, False), (60, 200, False), (30, 200, True)],
)
def test_an_area_replaces_bars_that_would_be_too_thin(
    days: int, wide: int, *, has_bars: bool
) -> None:
    drawn = chart.draw(of(*[3] * days), Look(wide))
    assert len(bars(drawn)) == (days if has_bars else 0)
    assert len(list(parse(drawn).iter(f"{SVG}circle"))) == int(not has_bars)
    assert any(text.startswith("\u25a1" if has_bars else "\u25cb") for text in texts(drawn)) == (
        wide == 600
    )


@given(st.lists(st.integers(0, 10_000), min_size=60, max_size=80).filter(any))
def test_an_area_is_as_high_as_its_days_have_views(repeated: list[int]) -> None:
    views = repeated * 5
    points = line(chart.draw(of(*views), Look()))
    top = chart_axes.ticks(max(views), 5)[-1]
    assert [y for _, y in points] == pytest.approx(
        [130 - 98 * count / top for count in views], abs=0.051
    )
    assert [x for x, _ in points] == sorted({x for x, _ in points})


def of_unit(by: Interval, amount: int, *, is_current: bool = True) -> History:
    """Return a history of one view in each of so many units."""
    _, starts = Span(first=TODAY.date() - timedelta(days=400), by=by).resolve(TODAY, None)
    buckets = tuple(Bucket(start, 1) for start in starts[:amount])
    return History(by, 1, None, buckets, is_current=is_current)


@pytest.mark.parametrize(
    ("history", "wide", "title"),
    [
        (of(*[0] * 29, 42), 600, "42 views in 30 days"),
        (of(0, 1), 600, "1 view in 2 days"),
        (of(1), 600, "1 view today"),
        (of(1_234_567, 0), 600, "1,234,567 views in 2 days"),
        (of(*[0] * 399, 1_234_567), 200, "1.2M views in 400 days"),
        (of_unit(Interval.HOUR, 24), 600, "24 views in 24 hours"),
        (of_unit(Interval.HOUR, 1), 600, "1 view this hour"),
        (of_unit(Interval.WEEK, 3), 600, "3 views in 3 weeks"),
        (of_unit(Interval.WEEK, 1), 600, "1 view this week"),
        (of_unit(Interval.MONTH, 12), 600, "12 views in 12 months"),
        (of_unit(Interval.MONTH, 1), 600, "1 view this month"),
        (of_unit(Interval.DAY, 1, is_current=False), 600, "1 view on 2025-10-17"),
        (of_unit(Interval.WEEK, 1, is_current=False), 600, "1 view in the week of 2025-10-13"),
        (of_unit(Interval.MONTH, 1, is_current=False), 600, "1 view in 2025-10"),
    ],
)
def test_the_title_has_the_unit_and_the_total_in_full_or_where_it_is_too_long_in_short(
    history: History, wide: int, title: str
) -> None:
    assert texts(chart.draw(history, Look(wide)))[0] == title


def test_the_views_of_today_are_beside_the_title_if_there_is_room() -> None:
    history = of(*[0] * 29, 42)
    assert texts(chart.draw(history, Look()))[1] == "\u25a1 42 today"
    assert "today" not in "".join(texts(chart.draw(history, Look(200))))
    assert "today" not in "".join(texts(chart.draw(of(7), Look()))[1:])


@pytest.mark.parametrize(("known", "says"), [(False, "no views yet"), (True, "no views")])
def test_a_chart_without_views_says_so(*, known: bool, says: str) -> None:
    drawn = chart.draw(of(*[0] * 30, known=known), Look())
    assert texts(drawn)[2:] == [says, "Oct 26", "Nov 2", "Nov 9", "Nov 16"]
    assert bars(drawn) == []
    (said,) = (text for text in parse(drawn).iter(f"{SVG}text") if text.text == says)
    assert attributes(said, "x", "y") == [(13 + 597) / 2, (32 + 130 + 11) / 2]
    assert list(parse(chart.draw(of(*[0] * 400), Look())).iter(f"{SVG}circle")) == []


@pytest.mark.parametrize(("days", "size"), [(30, 8_192), (296, 40_960), (744, 40_960)])
@pytest.mark.parametrize("wide", [200, 600, 1200])
def test_a_picture_is_small(days: int, size: int, wide: int) -> None:
    views = [LARGE + 7**place % LARGE for place in range(days)]
    assert len(chart.draw(of(*views), Look(wide, 400, "#123456")).encode()) < size


def colors(drawn: str) -> list[str]:
    light, dark = drawn.split("@media (prefers-color-scheme:dark)")
    return re.findall("#[0-9a-f]{6}", light) + re.findall("#[0-9a-f]{6}", dark)


@pytest.mark.parametrize("drawn", [chart.draw(of(1), Look()), chart.draw_error("no", Look())])
def test_our_own_colours_can_be_seen_on_both_pages_in_both_schemes(drawn: str) -> None:
    for color in colors(drawn):
        assert contrast(color, "#ffffff") >= 3
        assert contrast(color, "#0d1117") >= 3
    light, _, dark, _ = colors(drawn)
    assert contrast(light, "#ffffff") >= 4.5
    assert contrast(dark, "#0d1117") >= 4.5
    for color, page in zip(chart.ORANGE, chart.PAGES, strict=True):
        assert contrast(color, page) >= chart.MIN_CONTRAST


@pytest.mark.parametrize(
    ("color", "light", "dark"),
    [("#000000", "#000000", "#666666"), ("#ffffff", "#8c8c8c", "#ffffff"), ("#dd4343",) * 3],
)
def test_the_bars_have_the_requested_colour(color: str, light: str, dark: str) -> None:
    assert colors(chart.draw(of(1), Look(color=color)))[1::2] == [light, dark]


@pytest.mark.parametrize("wide", [200, 600])
def test_an_error_is_drawn_as_text_in_a_frame(wide: int) -> None:
    reason = "days: give a whole number from 1 to 400, not '<script>&\"\x00'"
    drawn = chart.draw_error(reason, Look(wide, 80))
    root = parse(drawn)
    assert " ".join(texts(drawn)) == reason.replace("\x00", "")
    assert root.findtext(f"{SVG}title") == reason.replace("\x00", "")
    assert bars(drawn) == [[0.5, 0.5, wide - 1, 79]]
    assert colors(drawn)[1::2] == [*chart.RED]
    for text in root.iter(f"{SVG}text"):
        left, right = edges(text, 11)
        assert 0 < left < right < wide
        assert 11 <= float(text.attrib["y"]) <= 76


@pytest.mark.parametrize(
    ("views", "mean"),
    [
        ((0, 1), "0.5"),
        ((3, 3), "3"),
        ((1, *[0] * 29), "<0.1"),
        ((10, 11), "10"),
        ((1_250, 1_250), "1.2k"),
    ],
)
def test_a_mean_has_at_most_one_decimal_place(views: Sequence[int], mean: str) -> None:
    assert chart.write_mean(of(*views).mean) == mean
    for one in (of(7), of(0, 0)):
        assert "mean" not in texts(chart.draw(one, Look()))


def test_a_peak_in_a_narrow_chart_is_short() -> None:
    assert "peak 1,234" in texts(chart.draw(of(5, 1_234, 20), Look()))
    assert "peak 1.2M" in texts(chart.draw(of(1_234_567, 3), Look(200)))


def test_the_mean_is_that_of_the_buckets() -> None:
    weeks = [Interval.WEEK.start(TODAY) - timedelta(weeks=ago) for ago in (1, 0)]
    history = History(Interval.WEEK, 13, None, (Bucket(weeks[0], 30), Bucket(weeks[1], 10)))
    assert "Views a week from 2026-11-09 to 2026-11-16" in chart.draw(history, Look())
    assert "On average 20.0. This week 10 so far." in chart.draw(history, Look())


def test_a_finished_history_has_no_current_bar() -> None:
    drawn = chart.draw(replace(of(5, 100, 20), is_current=False), Look())
    assert "fill-opacity" not in drawn
    assert "today" not in drawn
    assert "so far" not in drawn
    labels = [text for text in texts(drawn) if text.startswith("Nov")]
    assert labels == ["Nov 19, 2026", "Nov 20", "Nov 21"]


def test_a_logarithmic_scale_shows_small_numbers_beside_a_large_one() -> None:
    drawn = chart.draw(of(1, 1_000_000, 0, 50), Look(is_log=True))
    low, high, middle = (high for *_, high in bars(drawn))
    assert (high, round(low), round(middle)) == (98, 5, 28)
    assert texts(drawn)[1] == "\u25a1 50 today \u00b7 log scale"
    assert texts(drawn)[2:6] == ["0", "100", "10k", "1M"]
    assert "The scale is logarithmic." in drawn
    assert "log" not in chart.draw(of(1, 1_000_000, 0, 50), Look())


def test_a_theme_has_only_its_colours() -> None:
    assert colors(chart.draw(of(1, 2), Look()))[::2] == ["#656d76", "#8b949e"]
    for theme, grey, blue in (("light", "#656d76", "#0969da"), ("dark", "#8b949e", "#4493f8")):
        drawn = chart.draw(of(1, 2), Look(theme=theme))
        assert re.findall("#[0-9a-f]{6}", drawn) == [grey, blue]
        assert "@media" not in drawn


@given(st.from_regex("#[0-9a-f]{6}", fullmatch=True))
def test_a_colour_changes_only_if_its_contrast_is_too_low(color: str) -> None:
    for seen, page in zip(chart.readable(color), ["#ffffff", "#0d1117"], strict=True):
        assert contrast(seen, page) >= 3
        assert (seen == color) == (contrast(color, page) >= 3)


def with_visitors(*visitors: int | None) -> History:
    """Return a history of two views a day, with GitHub's unique visitors of its days."""
    history = of(*[2] * len(visitors))
    starts = (f"{bucket.start:%Y-%m-%d}" for bucket in history.buckets)
    known = zip(starts, visitors, strict=True)
    days = {day: {} if number is None else {"visitors": number} for day, number in known}
    return replace(history, github=days)


def test_visitors_are_a_line_that_is_interrupted_where_they_are_unknown() -> None:
    drawn = parse(chart.draw(with_visitors(4, 8, None, 0, None), Look(has_visitors=True)))
    (legend, group) = (one for one in drawn.iter(f"{SVG}g") if one.get("class") == "v")
    assert len(list(legend)) == 1
    _, line = group.iter(f"{SVG}path")
    parts = [part.split("L") for part in line.attrib["d"][1:].split("M")]
    assert [len(part) for part in parts] == [2, 1]
    heights = [float(point.removesuffix("h0").split()[1]) for part in parts for point in part]
    ground, top = 130, 47
    assert heights == [ground - (ground - top) * share / 8 for share in (4, 8, 0)]
    titles = [one.text for one in group.iter(f"{SVG}title")]
    assert titles[0] == "2026-11-17: 4 unique visitors"
    assert len(titles) == 3


@pytest.mark.parametrize("wide", [200, 600])
def test_a_chart_with_visitors_has_a_legend(wide: int) -> None:
    drawn = chart.draw(with_visitors(1, None), Look(wide, has_visitors=True))
    names = {600: "GitHub's unique visitors a day", 200: "visitors"}
    place = texts(drawn).index("\u25a0")
    assert texts(drawn)[place + 1 : place + 3] == ["views", names[wide]]
    unknown = chart.draw(with_visitors(None), Look(has_visitors=True))
    assert "GitHub's unique visitors a day: no numbers yet" in texts(unknown)
    assert "visitors" not in chart.draw(with_visitors(1), Look())
