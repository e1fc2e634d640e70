"""The history of a badge has each view once, in consecutive buckets that have every day."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chalicelib.counting import badge_count, keys
from chalicelib.counting.badge_count import MAX_LIVE
from chalicelib.history import history
from chalicelib.history.history import History, Interval, Span
from chalicelib.http.errors import BadRequestError
from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Put
from simulation.storage import FaultyTable, MemoryTable, once
from simulation.views import BADGE, fold, put_summary, put_views, store, view
from tests.unit.history.stored_days import MeteredTable, milliseconds, put_days

NOW = datetime(2026, 11, 21, 8, 30, tzinfo=UTC)
"""A Saturday."""
TODAY = datetime(2026, 11, 21, tzinfo=UTC)


def read(
    table: Table,
    days: int = 3,
    by: Interval = Interval.DAY,
    now: datetime = NOW,
    badge_id: str = "octocat",
) -> History:
    return history.read(table, badge_id, Span(days, by=by), now.timestamp())


def views(read: History) -> list[int]:
    return [bucket.views for bucket in read.buckets]


def labels(read: History) -> list[str]:
    return [read.by.label(bucket.start) for bucket in read.buckets]


def put_live(table: Table, *taken: datetime) -> None:
    put_views(table, *map(milliseconds, taken))


@pytest.mark.parametrize("reads_before", [1, 2, 3])
def test_a_fold_into_a_finished_day_between_the_reads_counts_no_view_twice(
    table: Table, reads_before: int
) -> None:
    put_summary(table, count=1, today={"day": "2026-11-21", "h00": 1}, version=1)
    put_live(table, TODAY - timedelta(seconds=1))
    now = TODAY + timedelta(hours=1)
    folding = once(lambda: fold(table, now.timestamp()), after=reads_before)
    found = read(FaultyTable(table, before_read=folding), now=now)
    assert (found.total, views(found)) == (2, [0, 1, 1])


def test_a_history_that_every_read_finds_changed_is_an_error(table: Table) -> None:
    put_days(table, {"2026-11-20": {"h00": 2}, "2026-11-21": {"h08": 3}})
    table.write(Put(keys.day(BADGE, "2026-11-20").item(views=2, version=1)))
    with pytest.raises(UnavailableError, match="try again"):
        read(table)


def test_hours_end_with_the_present_one_and_a_day_has_24(table: Table) -> None:
    put_days(table, {"2026-11-20": {"h08": 3, "h09": 4}, "2026-11-21": {"h00": 1, "h08": 2}})
    put_live(table, NOW, NOW - timedelta(hours=1))
    found = read(table, days=1, by=Interval.HOUR)
    # From 09:00 yesterday to 08:00 today: yesterday's 3 of 08:00 are too old.
    assert labels(found)[0] == "2026-11-20T09:00Z"
    assert labels(found)[15:] == [f"2026-11-21T{hour:02}:00Z" for hour in range(9)]
    assert views(found) == [4] + [0] * 14 + [1] + [0] * 6 + [1, 2 + 1]


@pytest.mark.parametrize("of_reset", [{}, {"2026-11-20": {"h15": 2}}], ids=["later", "its day"])
def test_days_of_an_earlier_life_are_not_shown(
    table: Table, of_reset: dict[str, dict[str, int]]
) -> None:
    """A reset may leave them: days before it, and the day of the reset itself."""
    reset = milliseconds(TODAY - timedelta(hours=10))
    put_days(table, {"2026-11-19": {"h01": 100}, "2026-11-20": {"h01": 50}, "2026-11-21": {}})
    put_days(table, {**of_reset, "2026-11-21": {"h01": 2}}, reset=reset)
    put_live(table, TODAY - timedelta(hours=10), NOW)
    found = read(table)
    assert views(found) == [0, 2 * len(of_reset), 2 + 1]
    assert found.since == date(2026, 11, 20 if of_reset else 21)
    assert read(table, days=3, by=Interval.HOUR).total == found.total


def test_another_name_of_a_badge_has_the_history_of_the_badge(table: Table) -> None:
    put_summary(table, "new", alias=BADGE, today={"day": "2026-11-21", "h01": 70})
    put_days(table, {"2026-11-19": {"h01": 8}, "2026-11-20": {"h01": 4}})
    put_live(table, NOW)
    assert views(read(table, badge_id="new")) == [8, 4, 1]


@pytest.mark.parametrize(("put", "seen"), [(7_999, 7_999), (8_000, 8_000), (8_100, 8_000)])
def test_8000_live_views_are_read_and_no_more(table: Table, put: int, seen: int) -> None:
    assert MAX_LIVE == 8_000
    yesterday = milliseconds(NOW - timedelta(days=1))
    put_views(table, *([yesterday] * 3_000), *([milliseconds(NOW)] * (put - 3_000)))
    assert read(table).total == seen


@pytest.mark.parametrize("by", [Interval.HOUR, Interval.DAY])
def test_many_live_views_are_counted_by_ranges_of_keys(by: Interval) -> None:
    """A query that reads each of them takes a tenth of a second, in which no visitor is served."""
    table = MeteredTable()
    bounds = TODAY - timedelta(milliseconds=1), TODAY, TODAY + timedelta(hours=1)
    put_views(table, *(milliseconds(at) for at in bounds for _ in range(500)))

    found = read(table, by=by)

    by_hour = {"2026-11-20T23:00Z": 500, "2026-11-21T00:00Z": 500, "2026-11-21T01:00Z": 500}
    by_day = {"2026-11-20": 500, "2026-11-21": 1_000}
    counted = {by.label(bucket.start): bucket.views for bucket in found.buckets if bucket.views}
    assert counted == (by_hour if by is Interval.HOUR else by_day)
    assert (found.total, found.since) == (1_500, date(2026, 11, 20))
    assert table.queried < 400


@pytest.mark.parametrize("at", range(1, 6))
def test_a_fold_between_two_reads_changes_nothing(table: Table, at: int) -> None:
    """It enters a new day, and comes before one of the 4 reads, or never."""
    put_days(table, {"2026-11-19": {"h00": 1}, "2026-11-20": {"h00": 2}})
    put_live(table, NOW, NOW, NOW)
    reads = iter(range(1, 9))

    def fold_it(_: str) -> None:
        if next(reads) == at:
            assert fold(table, NOW.timestamp() + 900) == 3

    assert views(read(FaultyTable(table, before_read=fold_it))) == [1, 2, 3]
    assert next(reads) == 5
    assert views(read(table)) == [1, 2, 3]


seconds = st.integers(0, 400 * 86_400 - 1)
"""Times before the end of the present day, so that 400 days include them all."""
taken_views = st.lists(seconds, max_size=20)
LAST = datetime(2026, 11, 21, 23, 59, 59, tzinfo=UTC)


def fill(table: Table, taken: Sequence[datetime], folds: int) -> None:
    """Take views in their order, with a fold before each of the first; the last ones stay live."""
    for place, at in enumerate(sorted(taken)):
        if place < folds:
            fold(table, at.timestamp())
        assert store(table, view(milliseconds(at), place), now=at.timestamp()) == {}


@settings(max_examples=25)
@given(taken_views, st.integers(0, 20))
def test_a_history_of_400_days_adds_up_to_the_count(ago: list[int], folds: int) -> None:
    """Each view is in the day it was taken, once, whether folded or live."""
    taken = [LAST - timedelta(seconds=since) for since in ago]
    table = MemoryTable()
    fill(table, taken, folds)
    found = read(table, days=400)
    count = badge_count.read(table, BADGE)
    days = Counter(f"{at:%Y-%m-%d}" for at in taken)
    assert found.total == count.summary.count + count.live == len(taken)
    assert len(set(labels(found))) == 400
    assert views(found) == [days[label] for label in labels(found)]
    assert found.since == min((at.date() for at in taken), default=None)


def test_days_after_the_last_requested_one_are_not_read() -> None:
    table = MeteredTable()
    ago = [TODAY - timedelta(days=days) for days in range(402)]
    put_days(table, {Interval.DAY.label(start): {"h00": 1} for start in ago})
    span = Span(10, last=date(2026, 3, 10))
    found = history.read(table, BADGE, span, NOW.timestamp())
    assert (labels(found)[0], labels(found)[-1]) == ("2026-03-01", "2026-03-10")
    assert views(found) == [1] * 10
    # The 10 days, 2 to find the first one, and the summary in the place of the live views.
    assert table.queried <= 10 + 2 + 1


def test_ten_years_of_days_are_all_read(table: Table) -> None:
    ago = [TODAY - timedelta(days=days) for days in range(3_653)]
    put_days(table, {Interval.DAY.label(start): {"h08": 1} for start in ago})
    found = history.read(table, BADGE, Span(is_whole=True), NOW.timestamp())
    assert (found.by, len(found.buckets), found.total) == (Interval.MONTH, 121, 3_653)
    assert found.since == date(2016, 11, 21)


# ---- the buckets of a span

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
        chosen, starts = Span(days, first, last, by=by).resolve(now, None)
    except BadRequestError:
        assert first
        assert first > end
        return
    by = chosen.by
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


def november(day: int) -> date:
    return date(2026, 11, day)


@pytest.mark.parametrize(
    ("span", "by", "first", "last", "days"),
    [
        (Span(), DAY, "2026-10-23", "2026-11-21", 30),
        (Span(1), DAY, "2026-11-21", "2026-11-21", 1),
        (Span(1, by=HOUR), HOUR, "2026-11-20T09:00Z", "2026-11-21T08:00Z", 1),
        (Span(31, by=HOUR), HOUR, "2026-10-21T09:00Z", "2026-11-21T08:00Z", 31),
        (Span(2, last=november(19), by=HOUR), HOUR, "2026-11-18T00:00Z", "2026-11-19T23:00Z", 2),
        (Span(first=november(20), by=HOUR), HOUR, "2026-11-20T00:00Z", "2026-11-21T08:00Z", 2),
        (Span(7, by=WEEK), WEEK, "2026-11-09", "2026-11-16", 13),
        (Span(1, last=date(2024, 2, 28), by=MONTH), MONTH, "2024-02", "2024-02", 29),
        (Span(1, last=november(4), by=MONTH), MONTH, "2026-11", "2026-11", 21),
        (Span(400), DAY, "2025-10-18", "2026-11-21", 400),
        (Span(401), WEEK, "2025-10-13", "2026-11-16", 405),
        (Span(9_999), MONTH, "1999-07", "2026-11", 10_006),
        (Span(is_whole=True), DAY, "2026-11-02", "2026-11-21", 20),
        (Span(is_whole=True, last=november(3)), DAY, "2026-11-02", "2026-11-03", 2),
        (Span(is_whole=True, last=november(1)), DAY, "2026-11-01", "2026-11-01", 1),
    ],
)
def test_a_span_begins_and_ends_like_this(
    span: Span, by: Interval, first: str, last: str, days: int
) -> None:
    chosen, starts = span.resolve(NOW, november(2))
    assert (chosen.by, chosen.days) == (by, days)
    assert (by.label(starts[0]), by.label(starts[-1])) == (first, last)


def test_a_span_without_days_is_refused() -> None:
    with pytest.raises(BadRequestError, match="2026-11-22 is after the last day, 2026-11-21"):
        Span(first=november(22)).resolve(NOW, None)
