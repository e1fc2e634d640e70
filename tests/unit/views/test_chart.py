"""The chart of a history is complete, correct and readable for any history."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.badges.text_width import Face, width
from chalicelib.views import chart
from chalicelib.views.chart import Look
from chalicelib.views.history import Bucket, By, History

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


def of(*views: int, known: bool = True) -> History:
    """Return a history of the views of consecutive days up to today."""
    days = [TODAY - timedelta(days=ago) for ago in reversed(range(len(views)))]
    buckets = tuple(Bucket(start, count) for start, count in zip(days, views, strict=True))
    return History(By.DAY, len(views), days[0].date() if known else None, buckets)


def parse(drawn: str) -> ET.Element:
    return ET.fromstring(drawn)  # noqa: S314  our own


def texts(drawn: str) -> list[str]:
    return ["".join(text.itertext()) for text in parse(drawn).iter(f"{SVG}text")]


def attributes(element: ET.Element, *names: str) -> list[float]:
    return [float(element.attrib[name]) for name in names]


def bars(drawn: str) -> list[list[float]]:
    """Return x, y, width and height of each bar."""
    return [attributes(bar, "x", "y", "width", "height") for bar in parse(drawn).iter(f"{SVG}rect")]


def line(drawn: str) -> list[list[float]]:
    """Return x and y of each point of an area's upper edge."""
    _, _, path = (path.attrib["d"] for path in parse(drawn).iter(f"{SVG}path"))
    return [[float(part) for part in point.split()] for point in path[1:].split("L")]


def edges(text: ET.Element, size: int) -> tuple[float, float]:
    """Return bounds for the left and right end of a text."""
    x = float(text.attrib["x"])
    wide = width("".join(text.itertext()), Face.VERDANA, size)
    before = {"end": wide, "middle": wide / 2}.get(text.attrib.get("text-anchor", ""), 0)
    return x - before, x - before + wide


SMALL = """
<svg xmlns="http://www.w3.org/2000/svg" width="300" height="80" viewBox="0 0 300 80" role="img">
<title>4 views in 3 days</title>
<desc>Views a day from 2026-11-19 to 2026-11-21, UTC.
 At most 3, on 2026-11-21. Today 3 so far.</desc>
<style>.t{color:#656d76}.b{color:#0969da}
@media (prefers-color-scheme:dark){.t{color:#8b949e}.b{color:#4493f8}}</style>
<g class="t" fill="currentColor" font-size="11"
 font-family="-apple-system,Segoe UI,Helvetica,Arial,sans-serif">
<text x="0" y="13" font-size="13" font-weight="600">4 views in 3 days</text>
<text x="297" y="13" text-anchor="end">
<tspan class="b" fill="currentColor">\u25a1</tspan> 3 today</text>
<path d="M13 60.5H297M13 44.5H297M13 28.5H297" stroke="currentColor" stroke-opacity=".25"/>
<text x="7" y="63.67" text-anchor="end">0</text>
<text x="7" y="47.67" text-anchor="end">2</text>
<text x="7" y="31.67" text-anchor="end">4</text>
<text x="13" y="75">2026-11-19</text><text x="297" y="75" text-anchor="end">2026-11-21</text></g>
<g class="b" fill="currentColor">
<rect x="36.33" y="52" width="48" height="8"><title>2026-11-19: 1</title></rect>
<rect x="225.67" y="36" width="48" height="24" fill-opacity=".3" stroke="currentColor">
<title>2026-11-21: 3</title></rect></g></svg>
"""


def test_a_chart_reads_like_this() -> None:
    """Three days share 284 px, and 4 views would be 32 px high: 1 is 8 px, 3 are 24 px."""
    assert chart.draw(of(1, 0, 3), Look(300, 80)) == SMALL.replace("\n", "")


@given(views=counts, look=looks, known=st.booleans())
def test_any_history_in_any_look_is_a_whole_picture(
    views: list[int], look: Look, *, known: bool
) -> None:
    drawn = chart.draw(of(*views, known=known), look)
    root = parse(drawn)
    assert root.tag == f"{SVG}svg"
    assert root.attrib["role"] == "img"
    assert root.attrib["viewBox"] == f"0 0 {look.width} {look.height}"
    assert attributes(root, "width", "height") == [look.width, look.height]
    assert all(not (part.tail or "").strip() for part in root.iter() if part.tag != f"{SVG}tspan")
    assert [part.tag for part in root][:3] == [f"{SVG}title", f"{SVG}desc", f"{SVG}style"]


@given(counts, looks)
def test_a_picture_refers_to_nothing_outside_of_it_and_does_nothing(
    views: list[int], look: Look
) -> None:
    drawn = chart.draw(of(*views), look).replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"script|href|url\(|@import|http|javascript|\son\w+=|<!", drawn)


@given(counts, looks)
def test_every_text_is_within_the_picture_and_none_overlap(views: list[int], look: Look) -> None:
    rows: dict[float, list[tuple[float, float]]] = {}
    for text in parse(chart.draw(of(*views), look)).iter(f"{SVG}text"):
        y = float(text.attrib["y"])
        size = int(text.attrib.get("font-size", 11))
        assert size * 0.7 <= y <= look.height
        rows.setdefault(y, []).append(edges(text, size))
    for row in rows.values():
        assert all(left > -1 and right < look.width + 1 for left, right in row)
        assert all(one[1] + 4 < other[0] for one, other in pairwise(sorted(row)))


@given(counts, looks)
def test_every_shape_is_within_the_picture(views: list[int], look: Look) -> None:
    drawn = chart.draw(of(*views), look)
    for x, y, wide, high in bars(drawn):
        assert 0 <= x <= x + wide <= look.width - 0.5
        assert 28 - 0.01 <= y <= y + high <= look.height - 20 + 0.01
    for circle in parse(drawn).iter(f"{SVG}circle"):
        x, y, radius = attributes(circle, "cx", "cy", "r")
        assert x + radius + 0.5 <= look.width
        assert 28 - 0.1 <= y <= look.height - 20


@given(st.lists(st.integers(0, 5) | st.integers(0, LARGE), min_size=1, max_size=40), looks)
def test_bars_are_as_high_as_their_days_have_views(views: list[int], look: Look) -> None:
    """The upper edge is the last tick, and a day with views has at least one pixel."""
    drawn = chart.draw(of(*views), look)
    top = chart.ticks(max(views), 3 if look.height - 48 >= 60 else 2)[-1]
    plot = look.height - 20 - 28
    expected = [max(1.0, plot * count / top) for count in views if count]
    assert [high for *_, high in bars(drawn)] == pytest.approx(expected, abs=0.006)
    assert all(
        y + high == pytest.approx(look.height - 20, abs=0.011) for _, y, _, high in bars(drawn)
    )


@given(st.integers(1, 40), looks)
def test_bars_stand_side_by_side_and_are_alike(days: int, look: Look) -> None:
    drawn = bars(chart.draw(of(*[1] * days), look))
    assert len(drawn) == days
    assert len({wide for _, _, wide, _ in drawn}) == 1
    for (x, _, wide, _), (following, *_) in pairwise(drawn):
        assert x + wide + 0.99 <= following
        assert wide <= 48


@pytest.mark.parametrize(("days", "between"), [(30, 584 / 30 / 5), (120, 1), (140, 1)])
def test_between_bars_is_a_fifth_of_their_room_and_a_pixel_at_least(
    days: int, between: float
) -> None:
    """The days have 600 px, without 13 px of the scale and 3 px at the right: 584 px."""
    drawn = bars(chart.draw(of(*[1] * days), Look()))
    for (x, _, wide, _), (following, *_) in pairwise(drawn):
        assert following - x - wide == pytest.approx(between, abs=0.016)


def test_a_day_without_views_has_no_bar() -> None:
    assert len(bars(chart.draw(of(1, 0, 0, 2, 0), Look()))) == 2


@pytest.mark.parametrize(
    ("views", "hollow"), [((1, 2, 3), [False, False, True]), ((1, 2, 0), [False, False])]
)
def test_today_which_is_not_over_is_hollow(views: Sequence[int], hollow: list[bool]) -> None:
    drawn = parse(chart.draw(of(*views), Look()))
    assert ["fill-opacity" in bar.attrib for bar in drawn.iter(f"{SVG}rect")] == hollow


def test_a_bar_has_its_day_and_its_views() -> None:
    drawn = parse(chart.draw(of(1234, 0, 1), Look()))
    assert [bar.findtext(f"{SVG}title") for bar in drawn.iter(f"{SVG}rect")] == [
        "2026-11-19: 1,234",
        "2026-11-21: 1",
    ]


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


@given(st.lists(st.integers(0, 10_000), min_size=300, max_size=400).filter(any))
def test_an_area_is_as_high_as_its_days_have_views(views: list[int]) -> None:
    points = line(chart.draw(of(*views), Look()))
    top = chart.ticks(max(views), 3)[-1]
    assert [y for _, y in points] == pytest.approx(
        [130 - 102 * count / top for count in views], abs=0.051
    )
    assert [x for x, _ in points] == sorted({x for x, _ in points})


def test_an_area_is_tinted_down_to_the_ground_and_has_a_ring_at_today() -> None:
    drawn = parse(chart.draw(of(*[0] * 399, 7), Look()))
    _, tint, edge = drawn.iter(f"{SVG}path")
    (ring,) = drawn.iter(f"{SVG}circle")
    (first, *_, last), ground = edge.attrib["d"][1:].split("L"), 130
    assert tint.attrib == {
        "d": f"M{first.split()[0]} {ground}L{edge.attrib['d'][1:]}L{last.split()[0]} {ground}z",
        "fill-opacity": ".3",
    }
    assert f"{ring.attrib['cx']} {ring.attrib['cy']}" == last
    for outline in (edge, ring):
        assert (outline.attrib["fill"], outline.attrib["stroke"]) == ("none", "currentColor")


@pytest.mark.parametrize(
    ("most", "steps", "expected"),
    [
        (0, 3, [0]),
        (1, 3, [0, 1]),
        (2, 3, [0, 1, 2]),
        (3, 3, [0, 1, 2, 3]),
        (4, 3, [0, 2, 4]),
        (7, 3, [0, 5, 10]),
        (7, 2, [0, 5, 10]),
        (11, 2, [0, 10, 20]),
        (11, 3, [0, 5, 10, 15]),
        (42, 3, [0, 20, 40, 60]),
        (61, 3, [0, 50, 100]),
        (100, 2, [0, 50, 100]),
        (1_234_567, 3, [0, 500_000, 1_000_000, 1_500_000]),
    ],
)
def test_ticks_are_numbers_that_read_well(most: int, steps: int, expected: list[int]) -> None:
    assert chart.ticks(most, steps) == expected


@given(st.integers(1, 10**30), st.sampled_from([2, 3]))
def test_ticks_reach_the_maximum_and_no_further_step(most: int, steps: int) -> None:
    marks = chart.ticks(most, steps)
    assert 2 <= len(marks) <= steps + 1
    assert marks[-2] < most <= marks[-1]
    assert {two - one for one, two in pairwise(marks)} == {marks[1]}
    assert re.fullmatch("[125]0*", str(marks[1]))


@pytest.mark.parametrize(
    ("most", "labels"),
    [
        (3, ["0", "1", "2", "3"]),
        (1_250, ["0", "500", "1k", "1.5k"]),
        (1_234_567, ["0", "500k", "1M", "1.5M"]),
        (2_900_000_000, ["0", "1B", "2B", "3B"]),
    ],
)
def test_large_ticks_are_short(most: int, labels: list[str]) -> None:
    assert texts(chart.draw(of(most, 1), Look()))[2:6] == labels


def test_a_low_chart_has_fewer_ticks() -> None:
    assert texts(chart.draw(of(3, 1), Look(height=80)))[2:5] == ["0", "2", "4"]


@pytest.mark.parametrize(
    ("history", "wide", "title"),
    [
        (of(*[0] * 29, 42), 600, "42 views in 30 days"),
        (of(0, 1), 600, "1 view in 2 days"),
        (of(0, 0), 600, "0 views in 2 days"),
        (of(5), 600, "5 views today"),
        (of(1), 600, "1 view today"),
        (of(1_234_567, 0), 600, "1,234,567 views in 2 days"),
        (of(*[0] * 399, 1_234_567), 200, "1.2M views in 400 days"),
        (of(*[0] * 399, 1_234), 200, "1,234 views in 400 days"),
    ],
)
def test_the_title_has_the_total_in_full_or_where_it_is_too_long_in_short(
    history: History, wide: int, title: str
) -> None:
    assert texts(chart.draw(history, Look(wide)))[0] == title


def test_the_views_of_today_are_beside_the_title_if_there_is_room() -> None:
    history = of(*[0] * 29, 42)
    assert texts(chart.draw(history, Look()))[1] == "\u25a1 42 today"
    assert "today" not in "".join(texts(chart.draw(history, Look(200))))
    assert "today" not in "".join(texts(chart.draw(of(7), Look()))[1:])


def test_the_first_and_the_last_day_are_below_the_chart() -> None:
    assert texts(chart.draw(of(1, 2, 3), Look()))[-2:] == ["2026-11-19", "2026-11-21"]
    assert texts(chart.draw(of(1), Look())).count("2026-11-21") == 1


@pytest.mark.parametrize(("known", "says"), [(False, "no views yet"), (True, "no views")])
def test_a_chart_without_views_says_so(*, known: bool, says: str) -> None:
    drawn = chart.draw(of(*[0] * 30, known=known), Look())
    assert texts(drawn)[2:] == [says, "2026-10-23", "2026-11-21"]
    assert bars(drawn) == []
    (said,) = (text for text in parse(drawn).iter(f"{SVG}text") if text.text == says)
    assert attributes(said, "x", "y") == [(13 + 597) / 2, (28 + 130 + 11) / 2]
    assert list(parse(chart.draw(of(*[0] * 400), Look())).iter(f"{SVG}circle")) == []


def test_screen_readers_get_the_numbers() -> None:
    root = parse(chart.draw(of(3, 1_200, 0, 4), Look()))
    assert root.findtext(f"{SVG}title") == "1,207 views in 4 days"
    assert root.findtext(f"{SVG}desc") == (
        "Views a day from 2026-11-18 to 2026-11-21, UTC. At most 1,200, on 2026-11-19."
        " Today 4 so far."
    )


@pytest.mark.parametrize(("days", "size"), [(30, 8_192), (400, 40_960)])
@pytest.mark.parametrize("wide", [200, 600, 1200])
def test_a_picture_is_small(days: int, size: int, wide: int) -> None:
    views = [LARGE + 7**place % LARGE for place in range(days)]
    assert len(chart.draw(of(*views), Look(wide, 400, "#123456")).encode()) < size


def colors(drawn: str) -> list[str]:
    """Return the colours of texts and bars in the light and in the dark scheme."""
    light, dark = drawn.split("@media (prefers-color-scheme:dark)")
    return re.findall("#[0-9a-f]{6}", light) + re.findall("#[0-9a-f]{6}", dark)


@pytest.mark.parametrize("drawn", [chart.draw(of(1), Look()), chart.draw_error("no", Look())])
def test_our_own_colours_can_be_seen_on_both_pages_in_both_schemes(drawn: str) -> None:
    for color in colors(drawn):
        assert chart.contrast(color, "#ffffff") >= 3
        assert chart.contrast(color, "#0d1117") >= 3
    light, _, dark, _ = colors(drawn)
    assert chart.contrast(light, "#ffffff") >= 4.5
    assert chart.contrast(dark, "#0d1117") >= 4.5


def test_contrast_is_that_of_wcag() -> None:
    assert chart.contrast("#ffffff", "#000000") == pytest.approx(21)
    assert chart.contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)
    assert chart.contrast("#0a0a0a", "#000000") == pytest.approx(1.0607, abs=0.0005)


@given(st.from_regex("#[0-9a-f]{6}", fullmatch=True))
def test_a_colour_changes_only_if_its_contrast_is_too_low(color: str) -> None:
    for seen, page in zip(chart.readable(color), ["#ffffff", "#0d1117"], strict=True):
        assert chart.contrast(seen, page) >= 3
        assert (seen == color) == (chart.contrast(color, page) >= 3)


@pytest.mark.parametrize(
    ("color", "light", "dark"),
    [("#000000", "#000000", "#666666"), ("#ffffff", "#8c8c8c", "#ffffff"), ("#dd4343",) * 3],
)
def test_the_bars_have_the_requested_colour(color: str, light: str, dark: str) -> None:
    assert colors(chart.draw(of(1), Look(color=color)))[1::2] == [light, dark]


def test_an_error_reads_like_this() -> None:
    drawn = chart.draw_error("no", Look(200, 80))
    assert drawn == (
        '<svg xmlns="http://www.w3.org/2000/svg" width="200" height="80" viewBox="0 0 200 80"'
        ' role="img"><title>no</title><desc></desc><style>.t{color:#656d76}.b{color:#cf222e}'
        "@media (prefers-color-scheme:dark){.t{color:#8b949e}.b{color:#f85149}}</style>"
        '<g class="b" fill="currentColor" font-size="11"'
        ' font-family="-apple-system,Segoe UI,Helvetica,Arial,sans-serif">'
        '<rect x=".5" y=".5" width="199" height="79" rx="6" fill="none" stroke="currentColor"/>'
        '<text x="100" y="43.5" text-anchor="middle">no</text></g></svg>'
    )


@given(st.text(), looks)
def test_any_error_is_a_whole_picture(reason: str, look: Look) -> None:
    root = parse(chart.draw_error(reason, look))
    assert attributes(root, "width", "height") == [look.width, look.height]


@pytest.mark.parametrize("wide", [200, 600])
def test_an_error_is_drawn_as_text_in_a_frame(wide: int) -> None:
    reason = "days: give a whole number from 1 to 400, not '<script>&\"\x00'"
    drawn = chart.draw_error(reason, Look(wide, 80))
    root = parse(drawn)
    assert " ".join(texts(drawn)) == reason.replace("\x00", "")
    assert root.findtext(f"{SVG}title") == reason.replace("\x00", "")
    assert bars(drawn) == [[0.5, 0.5, wide - 1, 79]]
    for text in root.iter(f"{SVG}text"):
        left, right = edges(text, 11)
        assert 0 < left < right < wide
        assert 11 <= float(text.attrib["y"]) <= 76
