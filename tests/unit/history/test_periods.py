"""The numbers of a badge by period: exact, never down within a period, never over the total."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chalicelib.history import periods
from chalicelib.history.periods import BadgeNumbers, Period, Show
from chalicelib.pages.badge_routes import BadgeOptions
from chalicelib.storage.items import Value
from chalicelib.storage.ports import Table
from simulation.storage import FaultyTable, MemoryTable, once
from simulation.views import BADGE, fold, put_summary, put_views, store, view
from tests.unit.history.stored_days import MeteredTable, milliseconds, put_days

NOW = datetime(2026, 11, 21, 8, 30, tzinfo=UTC)
"""A Saturday."""
PERIODS = (Show.TODAY, Show.WEEK, Show.MONTH, Show.YEAR)
EAST, WEST = timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))


def read(table: Table, wanted: Period, now: datetime = NOW, badge_id: str = BADGE) -> BadgeNumbers:
    return periods.read(table, badge_id, wanted, now.timestamp)


def of_period(table: Table, show: Show, zone: timezone = UTC, now: datetime = NOW) -> int:
    return read(table, Period(show, zone), now).of_period


@pytest.fixture
def table() -> Table:
    """Return a table with 1 view in 2025, 2 in this year, 4 this month, 8 this week, 16 today."""
    table = MemoryTable()
    days = {"2025-12-31": 1, "2026-01-01": 2, "2026-11-01": 4, "2026-11-16": 8, "2026-11-21": 16}
    put_days(table, {day: {"h23" if day < "2026-11-21" else "h00": n} for day, n in days.items()})
    return table


# ---- the start of a period


@pytest.mark.parametrize("zone", [UTC, EAST, WEST])
def test_a_period_starts_at_midnight_in_its_zone(table: Table, zone: timezone) -> None:
    start = read(table, Period(Show.YEAR, zone)).start
    assert start == datetime(2026, 1, 1, tzinfo=zone)
    assert start.utcoffset() == zone.utcoffset(None)


# ---- the numbers


def test_a_period_has_the_views_since_its_start(table: Table) -> None:
    assert [of_period(table, show) for show in PERIODS] == [16, 24, 28, 30]
    assert read(table, Period()).total.views == 31


def test_a_fold_into_a_finished_day_between_the_reads_counts_no_view_twice(table: Table) -> None:
    put_views(table, milliseconds(NOW.replace(hour=0, minute=0)) - 1)
    folding = once(lambda: fold(table, NOW.timestamp()), after=1)
    found = read(FaultyTable(table, before_read=folding), Period(Show.WEEK, days=7))
    assert (found.total.views, found.of_period, sum(found.days)) == (32, 25, 25)


def test_a_new_period_has_no_views_until_one_comes(table: Table) -> None:
    new_year = datetime(2027, 1, 1, tzinfo=UTC)
    assert [of_period(table, show, now=new_year) for show in PERIODS] == [0] * 4
    put_views(table, milliseconds(new_year) - 1, milliseconds(new_year))
    assert [of_period(table, show, now=new_year) for show in PERIODS] == [1, 2, 1, 1]


def test_an_offset_moves_the_border_of_a_day(table: Table) -> None:
    put_days(table, {"2026-11-20": {"h05": 1, "h22": 2, "h23": 4}, "2026-11-21": {"h00": 8}})
    at = {hours: timezone(timedelta(hours=hours)) for hours in (2, 1, -3, -9)}
    today = {hours: of_period(table, Show.TODAY, zone) for hours, zone in at.items()}
    assert today == {2: 14, 1: 12, -3: 0, -9: 14}
    assert of_period(table, Show.TODAY, WEST) == 14


def test_a_base_counts_only_as_a_part_of_all_views(table: Table) -> None:
    put_summary(table, "based", base=1_000, count=3, today={"day": "2026-11-21", "h01": 3})
    said = []
    for show in Show:
        given = {"id": "based", "base": "500", "format": "comma", "show": show}
        options = BadgeOptions({name: [value] for name, value in given.items()})
        said.append(periods.write(read(table, Period(show), badge_id="based"), options))
    assert said == ["1,503", "3", "3", "3", "3", "3 today · 1,503", *["no numbers yet"] * 2]
    labels = ["views", "views today", "views this week", "views this month", "views this year"]
    assert [show.label for show in Show] == [*labels, "views", "visitors", "clones"]


def test_days_of_an_earlier_life_do_not_count(table: Table) -> None:
    reset = milliseconds(NOW) - 3_600_000
    put_summary(table, count=3, reset=reset, watermark=reset, today={"day": "2026-11-21", "h08": 3})
    assert [of_period(table, show) for show in PERIODS] == [3] * 4


def test_a_view_that_is_later_than_the_clock_begins_the_next_period(table: Table) -> None:
    """Another clock is ahead: all that saw the view's day must see it."""
    put_views(table, milliseconds(NOW + timedelta(days=1)))
    assert of_period(table, Show.TODAY) == 1
    fold(table, (NOW + timedelta(days=1, hours=1)).timestamp())
    assert of_period(table, Show.TODAY) == 1
    assert of_period(table, Show.TODAY, timezone(timedelta(hours=-9))) == 1


def test_a_folded_view_that_is_later_than_the_clock_keeps_its_period() -> None:
    """At 23:00 UTC it is the next day two hours east."""
    table, east = MemoryTable(), timezone(timedelta(hours=2))
    put_days(table, {"2026-11-21": {"h20": 5, "h23": 1}})
    assert of_period(table, Show.TODAY, east, NOW.replace(hour=21)) == 1


def test_the_days_of_a_sparkline_end_today(table: Table) -> None:
    put_views(table, milliseconds(NOW))
    assert read(table, Period(days=7)).days == (0, 8, 0, 0, 0, 0, 17)
    assert read(table, Period(Show.YEAR, WEST, 7)).days == (0, 0, 8, 0, 0, 0, 17)
    assert read(table, Period(days=30)).of_period == 17
    assert len(read(table, Period(days=90)).days) == 90


# ---- reads


@pytest.mark.parametrize(
    ("wanted", "reads"),
    [
        (Period(), 1),
        (Period(Show.TODAY), 1),
        (Period(Show.TODAY, EAST), 2),
        (Period(Show.YEAR), 2),
        (Period(Show.TODAY_TOTAL, days=90), 2),
    ],
)
def test_a_period_needs_one_more_query_and_today_in_utc_none(wanted: Period, reads: int) -> None:
    table = MeteredTable()
    put_days(table, {"2026-11-19": {"h23": 8}, "2026-11-21": {"h00": 16}})
    put_views(table, milliseconds(NOW))
    table.reads = 0
    read(table, wanted)
    assert table.reads == reads


def test_many_live_views_of_today_need_no_query_more_than_the_total() -> None:
    table = MeteredTable()
    day: dict[str, Value] = {"day": "2026-11-21", "h00": 16}
    put_summary(table, count=16, today=day, watermark=milliseconds(NOW) - 1)
    put_views(table, *[milliseconds(NOW)] * 300)
    assert read(table, Period(Show.TODAY, days=7)).days[-1] == 316
    queries, table.reads = table.reads, 0
    assert (read(table, Period()).total.views, table.reads) == (316, queries - 1)


@pytest.mark.parametrize(("show", "live"), [(Show.TODAY, 200), (Show.WEEK, 500)])
@pytest.mark.parametrize("folded", [True, False])
def test_more_live_views_than_a_page_are_all_counted(
    show: Show, live: int, *, folded: bool
) -> None:
    """After midnight, some of them are of the day before."""
    table, midnight = MemoryTable(), datetime(2026, 11, 21, tzinfo=UTC)
    put_views(table, *[milliseconds(midnight) - 1] * 300)
    if folded:
        fold(table, NOW.timestamp())
    put_views(table, *([milliseconds(midnight) - 1] * 300 + [milliseconds(midnight)] * 200))
    assert of_period(table, show) == live


def test_a_view_between_two_reads_does_not_make_a_period_more_than_the_total() -> None:
    table, midnight = MemoryTable(), datetime(2026, 11, 21, tzinfo=UTC)
    put_views(table, *[milliseconds(midnight)] * 100)
    reads = iter(range(9))

    def view_comes(_: str) -> None:
        if next(reads) == 2:
            put_views(table, *[milliseconds(midnight)] * 105)

    found = read(FaultyTable(table, before_read=view_comes), Period(Show.TODAY))
    assert next(reads) > 2
    assert found.of_period == found.total.views == 100


@pytest.mark.parametrize("at", range(1, 4))
@pytest.mark.parametrize("show", PERIODS)
def test_a_fold_between_two_reads_changes_nothing(at: int, show: Show) -> None:
    table = MemoryTable()
    put_days(table, {"2026-11-19": {"h00": 1}, "2026-11-20": {"h00": 2}})
    put_views(table, *[milliseconds(NOW)] * 3)
    reads = iter(range(1, 9))

    def fold_it(_: str) -> None:
        if next(reads) == at:
            assert fold(table, NOW.timestamp() + 900) == 3

    expected = 3 if show is Show.TODAY else 6
    assert of_period(FaultyTable(table, before_read=fold_it), show) == expected
    assert of_period(table, show) == expected


# ---- laws

zones = st.integers(-12, 14).map(lambda hours: timezone(timedelta(hours=hours)))
steps = st.lists(
    st.tuples(
        st.sampled_from(["view", "late", "at once", "fold"]), st.integers(0, 60 * 3_600), zones
    ),
    max_size=25,
)


@settings(max_examples=30)
@given(steps)
def test_a_period_never_falls_and_is_never_more_than_the_total(
    days: list[tuple[str, int, timezone]],
) -> None:
    """Views come, are folded, and are counted at once, some late, over days, weeks and months."""
    table, now = MemoryTable(), datetime(2026, 12, 20, 21, tzinfo=UTC)
    seen: dict[datetime, int] = {}
    for place, (kind, seconds, zone) in enumerate(days):
        now += timedelta(seconds=seconds)
        take(table, kind, now, place)
        for show in PERIODS:
            found = read(table, Period(show, zone, 7), now)
            assert found.start is not None
            assert seen.get(found.start, 0) <= found.of_period <= found.total.views
            assert sum(found.days) <= found.total.views
            seen[found.start] = found.of_period
    everything = read(table, Period(Show.YEAR), now.replace(year=now.year))
    if now.year == 2026:
        assert everything.of_period == everything.total.views


def take(table: Table, kind: str, now: datetime, place: int) -> None:
    if kind == "view":
        assert store(table, view(milliseconds(now), place), now=now.timestamp()) == {}
    if kind in {"late", "at once"}:
        late = timedelta(hours=30) if kind == "late" else timedelta()
        store(table, view(milliseconds(now - late), place, hot=True), now=now.timestamp())
    if kind == "fold":
        fold(table, now.timestamp())
