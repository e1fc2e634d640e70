"""The axes of a chart: ticks that read well, near the maximum, and labels that fit."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.history import chart_axes
from chalicelib.history.chart_axes import TimeAxis
from chalicelib.history.history import Interval, Span

NOW = datetime(2026, 11, 21, 8, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("most", "steps", "expected"),
    [
        (0, 3, [0]),
        (1, 3, [0, 1]),
        (4, 3, [0, 2, 4]),
        (7, 3, [0, 5, 10]),
        (7, 5, [0, 2, 4, 6, 8]),
        (21, 2, [0, 25]),
        (21, 5, [0, 5, 10, 15, 20, 25]),
        (1_234_567, 5, [0, 250_000, 500_000, 750_000, 1_000_000, 1_250_000]),
    ],
)
def test_ticks_are_numbers_that_read_well(most: int, steps: int, expected: list[int]) -> None:
    assert chart_axes.ticks(most, steps) == expected


@given(st.integers(1, 10**30), st.sampled_from([2, 3, 4, 5]))
def test_the_axis_ends_near_the_maximum(most: int, steps: int) -> None:
    """With 5 steps it is never more than half as high again, from 3 views on."""
    marks = chart_axes.ticks(most, steps)
    assert 2 <= len(marks) <= steps + 1
    assert marks[-2] < most <= marks[-1]
    assert {two - one for one, two in pairwise(marks)} == {marks[1]}
    assert re.fullmatch("([125]|25)0*", str(marks[1]))
    assert marks[-1] <= most * (1.5 if steps == 5 else 2)


@pytest.mark.parametrize(
    ("most", "steps", "expected"),
    [
        (0, 5, [0]),
        (1, 5, [0, 1]),
        (3, 5, [0, 1, 5]),
        (60, 5, [0, 10, 100]),
        (1_000_000, 5, [0, 100, 10_000, 1_000_000]),
        (1_200_000, 2, [0, 1_000, 2_000_000]),
    ],
)
def test_ticks_of_a_logarithmic_scale_are_powers_of_ten(
    most: int, steps: int, expected: list[int]
) -> None:
    assert chart_axes.powers(most, steps) == expected


@given(st.integers(1, 10**30), st.sampled_from([2, 3, 4, 5]))
def test_a_logarithmic_scale_has_room_for_each_tick(most: int, steps: int) -> None:
    scale = chart_axes.Scale(chart_axes.powers(most, steps), is_log=True)
    shares = [scale.share(tick) for tick in scale.ticks]
    assert shares[0] == 0
    assert shares[-1] == 1
    assert all(two - one >= 0.9 / steps for one, two in pairwise(shares))
    assert scale.share(most) <= 1
    assert len(shares) <= steps + 1


@pytest.mark.parametrize(("views", "text"), [(0, "0"), (12_500, "12.5k"), (10**15, "1000T")])
def test_a_tick_is_written_exactly(views: int, text: str) -> None:
    assert chart_axes.write_tick(views) == text


def axis(span: Span, width: float = 545, *, has_year: bool = False) -> TimeAxis:
    """Return an axis of this width, for letters of 6 px."""
    chosen, starts = span.resolve(NOW, None)
    slot = width / len(starts)
    return TimeAxis(
        chosen.by,
        starts,
        lambda index: (index + 0.5) * slot,
        lambda text: 6 * len(text),
        width,
        has_year=has_year,
    )


@pytest.mark.parametrize(
    ("span", "width", "labels"),
    [
        (Span(1), 545, "Nov 21"),
        (Span(7), 545, "Nov 15, Nov 16, Nov 17, Nov 18, Nov 19, Nov 20, Nov 21"),
        (Span(7), 140, "Nov 15, Nov 21"),
        (Span(30), 545, "Oct 26, Nov 2, Nov 9, Nov 16"),
        (Span(90), 545, "Aug 31, Sep 14, Sep 28, Oct 12, Oct 26, Nov 9"),
        (Span(400), 545, "Nov, Dec, 2026, Feb, Mar, Apr, May, Jun, Jul, Aug, Sep, Oct, Nov"),
        (Span(400), 140, "2026, Apr, Jul, Oct"),
        (Span(1, by=Interval.HOUR), 140, "12:00, Nov 21"),
        (
            Span(2, by=Interval.HOUR),
            545,
            "12:00, 18:00, Nov 20, 06:00, 12:00, 18:00, Nov 21, 06:00",
        ),
        (Span(7, by=Interval.HOUR), 140, "Nov 14, Nov 21"),
        (Span(365, by=Interval.WEEK), 140, "2026, Apr, Jul, Oct"),
        (Span(first=date(2016, 12, 1)), 300, "2018, 2020, 2022, 2024, 2026"),
        (Span(first=date(2016, 12, 1)), 140, "2020, 2025"),
    ],
)
def test_labels_are_at_weeks_or_months_or_years(span: Span, width: float, labels: str) -> None:
    assert [label.text for label in axis(span, width).labels()] == labels.split(", ")


@pytest.mark.parametrize(
    ("span", "label"),
    [
        (Span(7, last=date(2024, 3, 9)), "Mar 3, 2024"),
        (Span(200, last=date(2024, 12, 9)), "Jun 2024"),
        (Span(first=date(2019, 6, 1), last=date(2020, 2, 3), by=Interval.MONTH), "Jun 2019"),
        (Span(first=date(2010, 6, 1), last=date(2023, 2, 3), by=Interval.MONTH), "2012"),
    ],
)
def test_the_first_label_of_the_past_has_its_year(span: Span, label: str) -> None:
    first, *others = (label.text for label in axis(span, 400, has_year=True).labels())
    assert first == label
    assert others


@given(st.integers(1, 9_999), st.sampled_from([None, *Interval]), st.floats(140, 1200))
def test_labels_never_overlap_and_are_at_their_buckets(
    days: int, by: Interval | None, width: float
) -> None:
    days = min(days, 31) if by is Interval.HOUR else days
    drawn = axis(Span(days, by=by), width)
    labels = drawn.labels()
    assert len(labels) >= min(2, len(drawn.starts))
    edges = [(label.x - 3 * len(label.text), label.x + 3 * len(label.text)) for label in labels]
    assert all(-0.01 <= left < right <= width + 0.01 for left, right in edges)
    assert all(one[1] + 7.99 <= other[0] for one, other in pairwise(edges))
    for label, (left, right) in zip(labels, edges, strict=True):
        assert left - 0.01 <= drawn.x(label.bucket) <= right + 0.01
