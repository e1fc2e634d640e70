"""The buckets of a history are consecutive, and have every requested day."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.history.buckets import Interval, Span
from chalicelib.http.errors import BadRequestError

NOW = datetime(2026, 11, 21, 8, 30, tzinfo=UTC)
"""A Saturday."""
times = st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
dates = st.dates(date(1970, 1, 1), date(2100, 1, 1))
bys = st.sampled_from(Interval)
HOUR, DAY, WEEK, MONTH = Interval


@pytest.mark.parametrize(
    ("by", "label", "following"),
    [
        (HOUR, "2026-11-21T08:00Z", "2026-11-21T09:00Z"),
        (DAY, "2026-11-21", "2026-11-22"),
        (WEEK, "2026-11-16", "2026-11-23"),
        (MONTH, "2026-11", "2026-12"),
    ],
)
def test_a_time_is_in_one_bucket_of_each_unit(by: Interval, label: str, following: str) -> None:
    assert by.label(by.start(NOW)) == label
    assert by.label(by.following(by.start(NOW))) == following


@given(times, bys)
def test_every_time_is_in_the_bucket_that_begins_before_it(moment: datetime, by: Interval) -> None:
    start = by.start(moment)
    assert start <= moment < by.following(start)
    assert by.start(start) == by.start(by.following(start) - timedelta(seconds=1)) == start


@given(times, st.integers(1, 9_999), st.none() | dates, st.none() | dates, st.none() | bys)
def test_a_span_has_every_requested_day_and_whole_buckets(
    now: datetime, days: int, first: date | None, last: date | None, by: Interval | None
) -> None:
    """They end with the bucket of the last day, or with the present one, or at the limit."""
    end = min(last or now.date(), now.date())
    try:
        chosen = Span(days, first, last, by=by).resolve(now, None)
    except BadRequestError:
        assert first
        assert first > end
        return
    by, starts = chosen.by, chosen.starts
    assert 1 <= len(starts) <= by.most
    assert all(by.following(one) == other for one, other in pairwise(starts))
    assert starts[-1] <= now
    assert chosen.is_current == (by.following(starts[-1]) > now)
    if first:
        assert starts[0].date() <= first < by.following(starts[0]).date() or by is HOUR
    if chosen.following:
        assert len(starts) == by.most
        assert chosen.following == by.following(starts[-1]).date() <= end
    else:
        assert by.following(starts[-1]).date() > end or starts[-1] == by.start(now)


@pytest.mark.parametrize(
    ("span", "by", "first", "last", "days"),
    [
        (Span(), DAY, "2026-10-23", "2026-11-21", 30),
        (Span(1), DAY, "2026-11-21", "2026-11-21", 1),
        (Span(1, by=HOUR), HOUR, "2026-11-20T09:00Z", "2026-11-21T08:00Z", 1),
        (Span(31, by=HOUR), HOUR, "2026-10-21T09:00Z", "2026-11-21T08:00Z", 31),
        (
            Span(2, last=date(2026, 11, 19), by=HOUR),
            HOUR,
            "2026-11-18T00:00Z",
            "2026-11-19T23:00Z",
            2,
        ),
        (
            Span(first=date(2026, 11, 20), by=HOUR),
            HOUR,
            "2026-11-20T00:00Z",
            "2026-11-21T08:00Z",
            2,
        ),
        (Span(7, by=WEEK), WEEK, "2026-11-09", "2026-11-16", 13),
        (Span(1, last=date(2024, 2, 28), by=MONTH), MONTH, "2024-02", "2024-02", 29),
        (Span(1, last=date(2026, 11, 4), by=MONTH), MONTH, "2026-11", "2026-11", 21),
        (Span(400), DAY, "2025-10-18", "2026-11-21", 400),
        (Span(401), WEEK, "2025-10-13", "2026-11-16", 405),
        (Span(9_999), MONTH, "1999-07", "2026-11", 10_006),
        (Span(is_whole=True), DAY, "2026-11-02", "2026-11-21", 20),
        (Span(is_whole=True, last=date(2026, 11, 3)), DAY, "2026-11-02", "2026-11-03", 2),
        (Span(is_whole=True, last=date(2026, 11, 1)), DAY, "2026-11-01", "2026-11-01", 1),
    ],
)
def test_a_span_begins_and_ends_like_this(
    span: Span, by: Interval, first: str, last: str, days: int
) -> None:
    chosen = span.resolve(NOW, date(2026, 11, 2))
    assert (chosen.by, chosen.days) == (by, days)
    assert (by.label(chosen.starts[0]), by.label(chosen.starts[-1])) == (first, last)


def test_a_span_without_days_is_refused() -> None:
    with pytest.raises(BadRequestError, match="2026-11-22 is after the last day, 2026-11-21"):
        Span(first=date(2026, 11, 22)).resolve(NOW, None)
