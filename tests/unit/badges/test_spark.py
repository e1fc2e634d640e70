"""The sparkline of a badge: its place, its height, its colour and its size in bytes."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.badges import colors, svg_styles
from chalicelib.badges.options import SPARK_DAYS, Badge
from chalicelib.badges.svg import MAX_BYTES, draw
from chalicelib.badges.svg_styles import STYLES

SVG = "{http://www.w3.org/2000/svg}"
BADGE = Badge("views", "1,234")
MONTH = tuple(range(30))
all_days = st.lists(st.integers(0, 10**9), min_size=SPARK_DAYS[0], max_size=SPARK_DAYS[-1])
styles = pytest.mark.parametrize("style", STYLES)


def parse(badge: Badge) -> ET.Element:
    return ET.fromstring(draw(badge))  # noqa: S314  our own


def width(badge: Badge) -> float:
    return float(parse(badge).attrib["width"])


def points(days: tuple[int, ...], x: float = 0, bottom: int = 15) -> list[tuple[float, float]]:
    """Return the points of the line, which is the last path."""
    path = re.findall(r' d="M([^"]*)"', svg_styles.draw_line(days, x, bottom, "#007ec6"))[-1]
    first, _, rest = path.partition("l")
    numbers = [float(one) for one in re.findall(r"-?[\d.]+", rest)]
    at_x, at_y = map(float, first.split())
    found = [(at_x, at_y)]
    for right, down in zip(numbers[::2], numbers[1::2], strict=True):
        at_x, at_y = at_x + right, at_y + down
        found.append((at_x, at_y))
    return found


def test_a_line_has_a_point_for_each_day_and_its_peak_is_the_most() -> None:
    days = (0, 1, 5, 10, 0, 10, 2)
    assert points(days, x=83) == [
        (83, 15), (89, 13), (95, 9.5), (101, 5), (107, 15), (113, 5), (119, 12),
    ]  # fmt: skip
    assert svg_styles.measure_spark(days) == 119 - 83


@pytest.mark.parametrize("days", [(0,) * 30, (5,) * 30, (0,) * 29 + (1,), (10**12,) + (1,) * 29])
def test_a_day_without_views_is_on_the_ground_and_one_with_some_is_not(
    days: tuple[int, ...],
) -> None:
    heights = [15 - y for _, y in points(days)]
    assert [height > 0 for height in heights] == [views > 0 for views in days]
    assert max(heights) == (svg_styles.SPARK_HEIGHT if any(days) else 0)


@given(all_days)
def test_a_higher_day_is_never_drawn_lower(days: list[int]) -> None:
    heights = [y for _, y in points(tuple(days))]
    drawn = sorted(zip(days, heights, strict=True))
    assert [y for _, y in drawn] == sorted(heights, reverse=True)
    assert all(15 - svg_styles.SPARK_HEIGHT <= y <= 15 for y in heights)


@pytest.mark.parametrize(
    ("days", "pixels"), [(7, 36), (10, 54), (15, 56), (30, 58), (45, 88), (46, 45), (90, 89)]
)
def test_a_line_is_no_wider_than_the_number_of_its_days_demands(days: int, pixels: int) -> None:
    assert svg_styles.measure_spark((1,) * days) == pixels


@styles
def test_a_badge_is_wider_by_its_line(style: str) -> None:
    plain = BADGE._replace(style=style)
    assert width(plain._replace(spark=MONTH)) == width(plain) + 58 + svg_styles.SPARK_GAP


@styles
def test_the_line_is_after_the_message_and_inside_the_badge(style: str) -> None:
    badge = BADGE._replace(style=style, spark=MONTH)
    root = parse(badge)
    path = root.findall(f"{SVG}path")[-1].attrib["d"]
    text = root.findall(f".//{SVG}text")[-1].attrib
    x = float(path.removeprefix("M").split(" ")[0])
    message_end = float(text["x"]) + float(text["textLength"]) / 2
    assert message_end + 4 <= x <= width(badge) - 58 - 3
    height = int(root.attrib["height"])
    assert {y for _, y in points(MONTH, bottom=height // 2 + 5)} <= {
        y / 2 for y in range(2 * height)
    }


@pytest.mark.parametrize(
    "color", ["blue", "yellow", "brightgreen", "white", "black", "orange", "grey", "#888", "f0f"]
)
def test_a_line_is_seen_on_any_background(color: str) -> None:
    """It has the colour of the text if that is seen."""
    background = colors.parse(color)
    [stroke] = re.findall(r'stroke="(#\w+)"', svg_styles.draw_line(MONTH, 0, 15, background))
    assert colors.contrast(colors.parse(stroke), background) >= 3
    assert stroke == {"blue": "#fff", "white": "#333"}.get(color, stroke)


def test_a_line_is_described_in_words() -> None:
    name = "views: 1,234; last 30 days: 435, at most 29 a day"
    root = parse(BADGE._replace(spark=MONTH))
    assert root.findtext(f"{SVG}title") == root.attrib["aria-label"] == name


@styles
@given(all_days, st.sampled_from(["", "github"]))
def test_a_usual_badge_has_room_for_any_line(style: str, days: list[int], logo: str) -> None:
    label, message = "views this month", "1,234,567 today · 1,234,567,890"
    drawn = draw(Badge(label, message, style=style, logo=logo, spark=tuple(days)))
    assert "Without" not in drawn
    assert len(drawn.encode()) <= MAX_BYTES


@styles
@pytest.mark.parametrize("logo", ["", "github"])
def test_the_logo_and_then_the_line_are_left_out_if_there_is_no_room(style: str, logo: str) -> None:
    """Longer and longer labels leave less and less room."""
    days = tuple(place * 7919 % 1_000 for place in range(90))
    texts = [Badge("&" * length, "1", style=style, logo=logo) for length in range(0, 300, 4)]
    drawn = [draw(badge._replace(spark=days)) for badge in texts]
    has_line = ['stroke-width="1.2"' in one for one in drawn]
    has_logo = ["<svg x=" in one for one in drawn]
    assert sorted(has_line, reverse=True) == has_line
    assert 12 < sum(has_line) < 75
    assert has_logo[0] == bool(logo)
    assert not all(has_logo[: sum(has_line)])
    assert all(len(one.encode()) <= MAX_BYTES for one in drawn[: sum(has_line) + 1])
    reason = "Without the sparkline: the badge would have more than 4096 bytes."
    assert [reason in one for one in drawn] == [not line for line in has_line]
