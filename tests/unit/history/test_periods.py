"""The numbers of a badge by period: exact, never down within a period, never over the total."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chalicelib.badges.options import Options
from chalicelib.counting import keys
from chalicelib.counting.count_at_once import AtOnceCounter
from chalicelib.history import periods
from chalicelib.history.periods import Show, Views, Wanted
from chalicelib.http.errors import BadRequestError
from chalicelib.storage.items import Value
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Put
from simulation.memory_table import MemoryTable
from simulation.tables import FaultyTable, once
from simulation.views import BADGE, WINDOWS, fold, put_summary, put_views, store, view

NOW = datetime(2026, 11, 21, 8, 30, tzinfo=UTC)
"""A Saturday."""
PERIODS = (Show.TODAY, Show.WEEK, Show.MONTH, Show.YEAR)
EAST, WEST = timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))


def milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def read(table: Table, wanted: Wanted, now: datetime = NOW, badge_id: str = BADGE) -> Views:
    return periods.read(table, badge_id, wanted, now.timestamp())


def of_period(table: Table, show: Show, zone: timezone = UTC, now: datetime = NOW) -> int:
    return read(table, Wanted(show, zone), now).of_period


def counted(table: Table, days: Mapping[str, Mapping[str, int]]) -> None:
    """Store days with their hours as folds leave them: the last one in the summary."""
    *finished, last = sorted(days)
    for label in finished:
        place, hours = keys.day(BADGE, label), days[label]
        table.write(Put({"PK": place.pk, "SK": place.sk, "views": sum(hours.values()), **hours}))
    count = sum(sum(hours.values()) for hours in days.values())
    put_summary(table, count=count, today={"day": last, **days[last]})


@pytest.fixture
def table() -> Table:
    """Return a table with 1 view in 2025, 2 in this year, 4 this month, 8 this week, 16 today."""
    table = MemoryTable()
    days = {"2025-12-31": 1, "2026-01-01": 2, "2026-11-01": 4, "2026-11-16": 8, "2026-11-21": 16}
    counted(table, {day: {"h23" if day < "2026-11-21" else "h00": n} for day, n in days.items()})
    return table


# ---- options


def parse(name: str, given_text: str) -> Wanted:
    return periods.parse({name: [given_text]})


def test_without_options_a_badge_shows_all_views() -> None:
    assert periods.parse({}) == Wanted() == Wanted(Show.TOTAL, UTC, 0)


@pytest.mark.parametrize("show", Show)
def test_a_period_is_named(show: Show) -> None:
    assert parse("show", show.value).show is show


@pytest.mark.parametrize(
    ("given_text", "hours"),
    [
        ("0", 0),
        ("00:00", 0),
        ("2", 2),
        ("02", 2),
        ("+2", 2),
        (" 2", 2),
        (" 02:00", 2),
        ("-5", -5),
        ("-05:00", -5),
        ("14", 14),
        ("-12:00", -12),
        ("-0", 0),
    ],
)
def test_an_offset_is_in_whole_hours(given_text: str, hours: int) -> None:
    assert parse("tz", given_text).zone == timezone(timedelta(hours=hours))


@pytest.mark.parametrize("days", [7, 30, 90])
def test_a_sparkline_has_days(days: int) -> None:
    assert parse("spark", str(days)).days == days


@pytest.mark.parametrize(
    ("name", "wrong", "says"),
    [
        ("show", "day", "give total, today, week, month, year, today-total, not 'day'"),
        ("show", "Today", "give total, today, week, month, year, today-total, not 'Today'"),
        ("tz", "05:30", "give whole hours from UTC, as -5 or 02:00, not '05:30'"),
        ("tz", "15", "give whole hours from UTC, as -5 or 02:00, not '15'"),
        ("tz", "-13", "give whole hours from UTC, as -5 or 02:00, not '-13'"),
        ("tz", "Europe/Berlin", "give whole hours from UTC, as -5 or 02:00, not 'Europe/Berlin'"),
        ("tz", "٣", "give whole hours from UTC, as -5 or 02:00, not '٣'"),
        ("spark", "6", "give a whole number from 7 to 90, not '6'"),
        ("spark", "91", "give a whole number from 7 to 90, not '91'"),
    ],
)
def test_a_wrong_option_is_refused_by_name(name: str, wrong: str, says: str) -> None:
    with pytest.raises(BadRequestError, match=f"^{re.escape(f'{name}: {says}')}$"):
        parse(name, wrong)


# ---- the start of a period


@pytest.mark.parametrize(
    ("show", "starts"),
    [
        (Show.TODAY, "2026-11-21"),
        (Show.WEEK, "2026-11-16"),
        (Show.MONTH, "2026-11-01"),
        (Show.YEAR, "2026-01-01"),
    ],
)
def test_a_period_starts_at_midnight(table: Table, show: Show, starts: str) -> None:
    for zone in (UTC, EAST, WEST):
        start = read(table, Wanted(show, zone), NOW.replace(hour=12)).start
        assert start is not None
        at_noon = NOW.replace(hour=12).astimezone(zone)
        if at_noon.day == NOW.day:
            assert f"{start:%Y-%m-%dT%H:%M}" == f"{starts}T00:00"
        assert start.utcoffset() == zone.utcoffset(None)


def test_a_week_starts_on_monday() -> None:
    for day in range(16, 23):
        start = Show.WEEK.start(datetime(2026, 11, day, 5, tzinfo=UTC))
        assert start == datetime(2026, 11, 16, tzinfo=UTC)
        assert start.isocalendar().weekday == 1


# ---- the numbers


def test_a_period_has_the_views_since_its_start(table: Table) -> None:
    assert [of_period(table, show) for show in PERIODS] == [16, 24, 28, 30]
    assert read(table, Wanted()).total.views == 31


def test_live_views_are_in_their_period(table: Table) -> None:
    put_views(table, milliseconds(NOW), milliseconds(NOW) - 1)
    assert [of_period(table, show) for show in PERIODS] == [18, 26, 30, 32]


def test_a_fold_into_a_finished_day_between_the_reads_counts_no_view_twice(table: Table) -> None:
    put_views(table, milliseconds(NOW.replace(hour=0, minute=0)) - 1)
    folding = once(lambda: fold(table, NOW.timestamp()), after=1)
    found = read(FaultyTable(table, before_read=folding), Wanted(Show.WEEK, days=7))
    assert (found.total.views, found.of_period, sum(found.days)) == (32, 25, 25)


def test_a_new_period_has_no_views_until_one_comes(table: Table) -> None:
    new_year = datetime(2027, 1, 1, tzinfo=UTC)
    assert [of_period(table, show, now=new_year) for show in PERIODS] == [0] * 4
    put_views(table, milliseconds(new_year) - 1, milliseconds(new_year))
    assert [of_period(table, show, now=new_year) for show in PERIODS] == [1, 2, 1, 1]


def test_an_offset_moves_the_border_of_a_day(table: Table) -> None:
    counted(table, {"2026-11-20": {"h05": 1, "h22": 2, "h23": 4}, "2026-11-21": {"h00": 8}})
    at = {hours: timezone(timedelta(hours=hours)) for hours in (2, 1, -3, -9)}
    today = {hours: of_period(table, Show.TODAY, zone) for hours, zone in at.items()}
    assert today == {2: 14, 1: 12, -3: 0, -9: 14}
    assert of_period(table, Show.TODAY, WEST) == 14


def test_a_badge_without_views_has_none_in_any_period() -> None:
    assert [of_period(MemoryTable(), show) for show in PERIODS] == [0] * 4


def test_a_base_counts_only_as_a_part_of_all_views(table: Table) -> None:
    put_summary(table, "based", base=1_000, count=3, today={"day": "2026-11-21", "h01": 3})
    options = Options(base=500, format="comma")
    said = [
        periods.write(read(table, Wanted(show), badge_id="based"), Wanted(show), options)
        for show in Show
    ]
    assert said == ["1,503", "3", "3", "3", "3", "3 today · 1,503"]


def test_the_label_names_the_period() -> None:
    suffixes = ["", " today", " this week", " this month", " this year", ""]
    assert [show.suffix for show in Show] == suffixes


def test_another_name_of_a_badge_has_the_periods_of_the_badge(table: Table) -> None:
    put_summary(table, "new", alias=BADGE)
    assert read(table, Wanted(Show.MONTH), badge_id="new").of_period == 28


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
    counted(table, {"2026-11-21": {"h20": 5, "h23": 1}})
    assert of_period(table, Show.TODAY, east, NOW.replace(hour=21)) == 1


def test_the_days_of_a_sparkline_end_today(table: Table) -> None:
    put_views(table, milliseconds(NOW))
    assert read(table, Wanted(days=7)).days == (0, 8, 0, 0, 0, 0, 17)
    assert read(table, Wanted(Show.YEAR, WEST, 7)).days == (0, 0, 8, 0, 0, 0, 17)
    assert read(table, Wanted(days=30)).of_period == 17
    assert len(read(table, Wanted(days=90)).days) == 90


# ---- reads


class MeteredTable(MemoryTable):
    """A table that counts its reads."""

    reads = 0

    def query(self, partition: str, **how: object) -> list[dict[str, Value]]:
        self.reads += 1
        return super().query(partition, **how)  # type: ignore[arg-type]

    def count(self, partition: str, **how: object) -> int:
        self.reads += 1
        return super().count(partition, **how)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wanted", "reads"),
    [
        (Wanted(), 1),
        (Wanted(Show.TODAY), 1),
        (Wanted(Show.TODAY, EAST), 2),
        (Wanted(Show.YEAR), 2),
        (Wanted(Show.TODAY_TOTAL, days=90), 2),
    ],
)
def test_a_period_needs_one_more_query_and_today_in_utc_none(wanted: Wanted, reads: int) -> None:
    table = MeteredTable()
    counted(table, {"2026-11-19": {"h23": 8}, "2026-11-21": {"h00": 16}})
    put_views(table, milliseconds(NOW))
    table.reads = 0
    read(table, wanted)
    assert table.reads == reads


def test_many_live_views_of_today_need_no_query_more_than_the_total() -> None:
    table = MeteredTable()
    day: dict[str, Value] = {"day": "2026-11-21", "h00": 16}
    put_summary(table, count=16, today=day, watermark=milliseconds(NOW) - 1)
    put_views(table, *[milliseconds(NOW)] * 300)
    assert read(table, Wanted(Show.TODAY, days=7)).days[-1] == 316
    queries, table.reads = table.reads, 0
    assert (read(table, Wanted()).total.views, table.reads) == (316, queries - 1)


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

    found = read(FaultyTable(table, before_read=view_comes), Wanted(Show.TODAY))
    assert next(reads) > 2
    assert found.of_period == found.total.views == 100


@pytest.mark.parametrize("at", range(1, 4))
@pytest.mark.parametrize("show", PERIODS)
def test_a_fold_between_two_reads_changes_nothing(at: int, show: Show) -> None:
    table = MemoryTable()
    counted(table, {"2026-11-19": {"h00": 1}, "2026-11-20": {"h00": 2}})
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
            found = read(table, Wanted(show, zone, 7), now)
            assert found.start is not None
            assert seen.get(found.start, 0) <= found.of_period <= found.total.views
            assert sum(found.days) <= found.total.views
            seen[found.start] = found.of_period
    everything = read(table, Wanted(Show.YEAR), now.replace(year=now.year))
    if now.year == 2026:
        assert everything.of_period == everything.total.views


def take(table: Table, kind: str, now: datetime, place: int) -> None:
    """Take a view, or fold those that there are."""
    if kind == "view":
        assert store(table, view(milliseconds(now), place), now=now.timestamp()) == {}
    if kind in {"late", "at once"}:
        late = timedelta(hours=30) if kind == "late" else timedelta()
        AtOnceCounter(table, WINDOWS, now.timestamp).count(
            BADGE, [view(milliseconds(now - late), place, hot=True)]
        )
    if kind == "fold":
        fold(table, now.timestamp())
