"""The removal of whole hours: count, history and finished days agree, and twice is once."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

from chalicelib.counting import keys
from chalicelib.counting.summary import Day, Hour, read
from chalicelib.history import history
from chalicelib.history.history import Interval, Span
from chalicelib.owners import changing, finding, removing
from chalicelib.owners.changing import BadgeChange
from chalicelib.owners.finding import NotClaimedError, NotFoldedError, OwnedBadge
from chalicelib.owners.removing import Hours, parse_hour
from chalicelib.storage.items import Item, Key
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Delete
from simulation.storage import FaultyTable, MemoryTable, once
from simulation.views import BADGE, WINDOWS, days, fold, put_summary, put_views, shown

NOW = datetime(2026, 11, 21, 8, 40, tzinfo=UTC)
MIDNIGHT = datetime(2026, 11, 21, tzinfo=UTC)
TIMES = {"2026-11-19T22": 3, "2026-11-20T23": 5, "2026-11-21T00": 7, "2026-11-21T07": 11}


@pytest.fixture
def table() -> Table:
    """Return a table with folded views: 3 and 5 on two finished days, 18 today."""
    table = MemoryTable()
    for hour, views in TIMES.items():
        at = parse_hour(hour)
        put_views(table, *(milliseconds(at) + place for place in range(views)))
        fold(table, (at + timedelta(minutes=30)).timestamp())
    return table


def milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def hours(first: str, until: str) -> Hours:
    return Hours(parse_hour(first), parse_hour(until))


def remove(
    table: Table, first: str, until: str, now: datetime = NOW, owned: OwnedBadge | None = None
) -> int:
    badge = owned or finding.look_up(table, BADGE)
    return removing.remove(table, badge, hours(first, until), WINDOWS, now.timestamp())


def by_hour(table: Table) -> dict[str, int]:
    """Return the hours with views, which are as many as the badge shows."""
    found = history.read(table, BADGE, Span(4, by=Interval.HOUR), NOW.timestamp())
    assert found.total == shown(table)
    return {f"{one.start:%Y-%m-%dT%H}": one.views for one in found.buckets if one.views}


@pytest.mark.parametrize(
    ("first", "until", "removed"),
    [
        ("2026-11-21T07", "2026-11-21T08", ["2026-11-21T07"]),
        ("2026-11-20T23", "2026-11-21T01", ["2026-11-20T23", "2026-11-21T00"]),
        ("2026-11-19T22", "2026-11-19T23", ["2026-11-19T22"]),
        ("2026-11-19T22", "2026-11-21T08", list(TIMES)),
        ("2026-11-19T23", "2026-11-20T23", []),
        ("2026-11-21T08", "2026-11-21T08", []),
    ],
    ids=["today", "over midnight", "a finished day", "all", "none", "no hour"],
)
def test_the_hours_leave_the_count_and_the_history_once(
    table: Table, first: str, until: str, removed: list[str]
) -> None:
    number, before = sum(TIMES[hour] for hour in removed), days(table)
    assert [remove(table, first, until) for _ in range(2)] == [number, 0]
    assert by_hour(table) == {hour: n for hour, n in TIMES.items() if hour not in removed}
    changed = [day["version"] for day in days(table).values() if day not in before.values()]
    assert changed == [read(table, BADGE).version] * len(
        {hour[:10] for hour in removed} & {*before}
    )


def test_the_first_day_with_views_is_not_one_whose_views_were_removed(table: Table) -> None:
    remove(table, "2026-11-19T00", "2026-11-21T00")
    found = history.read(table, BADGE, Span(is_whole=True, by=Interval.DAY), NOW.timestamp())
    assert found.since == MIDNIGHT.date()
    remove(table, "2026-11-21T00", "2026-11-21T08")
    assert history.read(table, BADGE, Span(), NOW.timestamp()).since is None


def test_no_view_of_a_day_comes_back_that_a_fold_had_finished_too_early(table: Table) -> None:
    """The fold stored the day, and then a removal was before its change of the summary."""
    tomorrow = MIDNIGHT + timedelta(days=1)
    finished = read(table, BADGE).finished_day({Hour(f"{tomorrow:%Y-%m-%d}", 0): 1})
    assert finished
    table.write(finished)
    remove(table, "2026-11-21T00", "2026-11-21T08")
    put_views(table, milliseconds(tomorrow))
    fold(table, (tomorrow + timedelta(minutes=30)).timestamp())
    assert by_hour(table) == {"2026-11-19T22": 3, "2026-11-20T23": 5, "2026-11-22T00": 1}


@pytest.mark.parametrize(
    ("first", "until", "now"),
    [
        ("2026-11-21T07", "2026-11-21T09", NOW),
        ("2026-11-21T07", "2026-11-21T08", parse_hour("2026-11-21T08") + timedelta(minutes=9)),
    ],
    ids=["the present hour", "within the grace"],
)
def test_hours_that_may_get_views_are_refused(
    table: Table, first: str, until: str, now: datetime
) -> None:
    with pytest.raises(NotFoldedError, match=r"the views before 2026-11-21T0[89]:00Z are not all"):
        remove(table, first, until, now)
    assert by_hour(table) == TIMES


@pytest.mark.parametrize("name", [BADGE, "another name"])
def test_hours_with_a_live_view_of_any_name_are_refused(table: Table, name: str) -> None:
    owned = OwnedBadge(BADGE, names=(BADGE,))
    if name != BADGE:
        renamed = parse_hour("2026-11-21T07").timestamp()
        changing.change(table, owned, BadgeChange(name=name), renamed)
    at = milliseconds(parse_hour("2026-11-21T07")) + 2_700_000
    put_views(table, at, badge_id=name)
    with pytest.raises(NotFoldedError):
        remove(table, "2026-11-21T07", "2026-11-21T08")
    assert remove(table, "2026-11-21T00", "2026-11-21T01") == 7
    fold(table, NOW.timestamp(), name)
    assert remove(table, "2026-11-21T07", "2026-11-21T08") == 12


def test_a_day_that_an_interrupted_fold_has_stored_stays_out(table: Table) -> None:
    """Its fold stored the present day, and was overtaken before it began the next one."""
    stored = keys.day(BADGE, "2026-11-21").item(views=7, h00=7, reset=0, version=1)
    table.put_all([stored])
    assert remove(table, "2026-11-21T00", "2026-11-21T01") == 7


def test_a_day_of_an_earlier_life_stays_out(table: Table) -> None:
    before = days(table)["2026-11-20"]
    begin, today = milliseconds(MIDNIGHT), Day("2026-11-21", {0: 4})
    put_summary(table, count=4, reset=begin, watermark=milliseconds(NOW), today=today.item)
    assert remove(table, "2026-11-20T00", "2026-11-21T01") == 4
    assert days(table)["2026-11-20"] == before


def test_a_deleted_badge_and_one_of_another_owner_lose_nothing(table: Table) -> None:
    other = OwnedBadge(BADGE, "a digest", (BADGE,))
    with pytest.raises(NotClaimedError):
        remove(table, "2026-11-21T00", "2026-11-21T01", owned=other)
    assert by_hour(table) == TIMES


def test_a_fold_between_the_reads_and_the_write_makes_the_removal_begin_again(table: Table) -> None:
    put_views(table, milliseconds(NOW) - 1_800_000)
    overtaken = FaultyTable(table, before_write=once(lambda: fold(table, NOW.timestamp())))
    assert remove(overtaken, "2026-11-20T00", "2026-11-21T01") == 12
    assert by_hour(table) == {"2026-11-19T22": 3, "2026-11-21T07": 11, "2026-11-21T08": 1}


@pytest.mark.parametrize("reads", range(6))
def test_no_removal_misses_views_that_a_fold_counts_and_the_ttl_removes_between_its_reads(
    table: Table, reads: int
) -> None:
    [late] = put_views(table, milliseconds(NOW))
    now = NOW + timedelta(hours=1)

    def count_and_expire() -> None:
        fold(table, now.timestamp())
        table.write(Delete(Key(*keys.view(BADGE, late.ulid))))

    overtaken = FaultyTable(table, before_read=once(count_and_expire, after=reads))
    with suppress(NotFoldedError):
        assert remove(overtaken, "2026-11-21T08", "2026-11-21T09", now) == 1


def test_a_reader_of_the_summary_before_begins_again(table: Table) -> None:
    act = once(lambda: remove(table, "2026-11-20T23", "2026-11-21T01"), after=1)
    overtaken = FaultyTable(table, before_read=act)
    found = history.read(overtaken, BADGE, Span(4), NOW.timestamp())
    assert found.total == shown(table) == 14


@pytest.mark.parametrize(
    ("first", "until", "message"),
    [
        ("2026-11-21T09", "2026-11-21T08", "to: 2026-11-21T08:00Z is before from"),
        ("2026-08-01T00", "2026-10-30T01", "to: give at most 90 days at a time"),
        ("2026-11-21T08:30Z", "2026-11-21T09", "give a whole hour in UTC"),
        ("2026-11-21T08:00+01:00", "2026-11-21T09", "give a whole hour in UTC"),
        ("yesterday", "2026-11-21T09", "not 'yesterday'"),
    ],
)
def test_other_times_are_refused(first: str, until: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        hours(first, until)


def test_90_days_are_one_transaction(table: Table) -> None:
    first = MIDNIGHT - timedelta(days=91)
    places = [keys.day(BADGE, f"{first + timedelta(days=number):%Y-%m-%d}") for number in range(91)]
    day: Item = {"views": 2, "h00": 1, "h23": 1, "reset": 0, "version": 1}
    table.put_all([place.item(**day) for place in places])
    put_summary(table, count=182, watermark=milliseconds(NOW), today={"day": "2026-11-21"})
    assert remove(table, "2026-08-22T12", "2026-11-20T12") == 180
    assert shown(table) == 2
