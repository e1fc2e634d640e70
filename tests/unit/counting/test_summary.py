"""The summary of a badge: its attributes, and writes that fail after another write."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from chalicelib.counting import keys
from chalicelib.counting.summary import Day, Hour, Summary, hour_of, read
from chalicelib.storage.items import Item, Value
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Check, ConditionFailedError, Put, Update
from chalicelib.units import to_milliseconds
from simulation.clocks import NOON
from simulation.views import BADGE, days, in_time_zone, put_summary, summary

TODAY = "2026-03-14"
TODAY_AT_12 = Hour(TODAY, 12)
YESTERDAY = Hour("2026-03-13", 23)
TOMORROW = Hour("2026-03-15", 0)


def stored(table: Table, **attributes: Value) -> Summary:
    put_summary(table, BADGE, **attributes)
    return read(table, BADGE)


def in_hour(views: int, hour: Hour = TODAY_AT_12) -> dict[Hour, int]:
    return {hour: views}


def write(table: Table, update: Update | Put | Check | None) -> None:
    assert update is not None
    table.write(update)


def test_a_summary_has_each_attribute_of_its_item(table: Table) -> None:
    assert stored(
        table,
        count=7,
        watermark=8,
        today={"day": TODAY, "h03": 2, "h23": 5},
        version=9,
        base=10,
        reset=11,
        frozen=1,
        hot=12,
        alias="mona",
        deleted="digest",
        created=13,
    ) == Summary(
        badge_id=BADGE,
        count=7,
        watermark=8,
        today=Day(TODAY, {3: 2, 23: 5}),
        version=9,
        base=10,
        reset=11,
        frozen=True,
        hot=12,
        alias="mona",
        deleted="digest",
    )


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"count": "many"}, "count is 'many'"),
        ({"today": 5}, "today is 5, expected a map"),
        ({"today": {"day": 5}}, "day is 5"),
        ({"today": {"h03": "x"}}, "h03 is 'x'"),
        ({"alias": 5}, "alias is 5"),
    ],
)
def test_an_item_with_an_attribute_of_another_type_is_an_error(wrong: Item, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        Summary.of(BADGE, wrong)


@pytest.mark.parametrize(
    ("second", "hour"),
    [
        (0, Hour("2026-03-14", 0)),
        (3_599.999, Hour("2026-03-14", 0)),
        (3_600, Hour("2026-03-14", 1)),
        (86_399.999, Hour("2026-03-14", 23)),
        (86_400, Hour("2026-03-15", 0)),
    ],
)
def test_hours_and_days_are_in_utc_from_the_first_to_the_last_millisecond(
    second: float, hour: Hour
) -> None:
    midnight = datetime(2026, 3, 14, tzinfo=UTC).timestamp()
    with in_time_zone("Pacific/Auckland"):
        assert hour_of(to_milliseconds(midnight + second)) == hour


def test_views_of_an_earlier_day_are_in_the_first_hour_of_the_day_they_are_added_to() -> None:
    """Days only move forward: views of a finished day are counted in the day after it."""
    day = Day(TODAY, {0: 1, 12: 2}).plus({TODAY_AT_12: 3, YESTERDAY: 4, Hour(TODAY, 13): 5})
    assert day == Day(TODAY, {0: 1 + 4, 12: 2 + 3, 13: 5})
    assert day.views == 1 + 4 + 2 + 3 + 5
    assert day.attributes == {"h00": 5, "h12": 5, "h13": 5}


@pytest.mark.parametrize("version", [0, 4])
def test_a_write_succeeds_only_without_another_write_since_the_read(
    table: Table, version: int
) -> None:
    first = stored(table, **({"version": version} if version else {}))
    second = read(table, BADGE)
    write(table, first.unchanged)
    write(table, first.update(NOON, {"base": 5}))
    for late in (second.unchanged, second.update(NOON, {"base": 6})):
        with pytest.raises(ConditionFailedError):
            write(table, late)
    assert summary(table)["base"] == 5


def test_a_write_removes_the_named_attributes_and_the_ttl_of_a_tombstone(
    table: Table,
) -> None:
    tombstone = stored(table, ttl=5, deleted="digest", hot=7, version=2)
    write(table, tombstone.update(NOON, {"frozen": 1}, remove=("hot",)))
    assert summary(table) == {
        "deleted": "digest",
        "frozen": 1,
        "version": 3,
        "created": int(NOON),
    }
    write(table, read(table, BADGE).update(NOON, {"ttl": 9}))
    assert summary(table)["ttl"] == 9


@pytest.mark.parametrize(("there", "is_stored"), [(None, True), (5, True), (6, True), (7, False)])
def test_a_finished_day_never_replaces_that_of_a_later_version(
    table: Table, there: int | None, *, is_stored: bool
) -> None:
    """Two writes may enter a new day: one that has read less must not store the day it read."""
    place = keys.day(BADGE, TODAY)
    if there is not None:
        table.write(Put(place.item(views=1, version=there)))
    late = stored(table, today={"day": TODAY, "h12": 2}, version=6)
    if is_stored:
        write(table, late.finished_day(in_hour(1, TOMORROW)))
        assert days(table)[TODAY]["version"] == 6
    else:
        with pytest.raises(ConditionFailedError):
            write(table, late.finished_day(in_hour(1, TOMORROW)))
        assert days(table)[TODAY] == {"views": 1, "version": 7}
