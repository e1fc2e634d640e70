"""A fold adds each view to the count and the history once, in any order of folds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from chalicelib.counting import keys, storing
from chalicelib.counting.folding import MAX_VIEWS, TRIES, BadgeFold
from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.items import Item, Value
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Put, Update, Write
from chalicelib.units import Seconds, WholeSeconds, to_milliseconds
from simulation.clocks import NOON
from simulation.storage import FaultyTable, MemoryTable, once
from simulation.views import (
    AT_NOON,
    BADGE,
    DAY,
    HOUR,
    counting,
    days,
    fold,
    in_time_zone,
    put_summary,
    put_views,
    shown,
    summary,
    ulid,
    view,
)

TODAY = "2026-03-14"
MARK: WholeSeconds = int(NOON) + 300
"""The end of the window that begins at noon."""
AT_MARK = to_milliseconds(MARK)
AFTER_GRACE = NOON + 900
"""The end of its grace."""
MIDNIGHT = AT_NOON + 12 * HOUR * 1000


def fold_at(table: Table, now: Seconds, mark: WholeSeconds = MARK, badge_id: str = BADGE) -> int:
    return BadgeFold(counting(table, now), badge_id).fold(mark)


# ---- what it does


def test_a_fold_adds_to_the_count_and_keeps_other_attributes(table: MemoryTable) -> None:
    put_summary(
        table,
        count=40,
        base=7,
        reset=1,
        frozen=1,
        hot=5,
        version=3,
        created=9,
        watermark=AT_NOON,
        today={"day": TODAY, "h11": 1, "h12": 2},
    )
    put_views(table, AT_NOON - 1, AT_NOON, AT_NOON + 1)
    assert fold_at(table, AFTER_GRACE) == 1
    assert summary(table) == {
        "count": 41,
        "base": 7,
        "reset": 1,
        "frozen": 1,
        "hot": 5,
        "version": 4,
        "created": 9,
        "watermark": AT_MARK,
        "today": {"day": TODAY, "h11": 1, "h12": 3},
    }


def test_a_fold_of_one_day_is_one_write_of_one_item(table: MemoryTable) -> None:
    put_views(table, *range(AT_NOON, AT_NOON + 1_000))
    watched = FaultyTable(table)
    assert fold_at(watched, AFTER_GRACE) == 1_000
    [(write,)] = watched.written
    assert isinstance(write, Update)
    assert write.condition is not None
    assert not write.add  # sent again after a lost answer, it changes nothing


@pytest.mark.parametrize(("now", "counted"), [(AFTER_GRACE - 0.001, 0), (AFTER_GRACE, 1)])
def test_no_view_is_folded_before_its_grace_is_over(
    table: MemoryTable, now: float, counted: int
) -> None:
    """TTL's clock, or a later mark, may ask for it: a young view might still be put."""
    put_views(table, AT_NOON + 1)
    for mark in (MARK, MARK + DAY):
        assert fold_at(table, now, mark) == (counted if mark == MARK else 0)
    assert summary(table).get("watermark", 0) == (AT_MARK if counted else 0)


def test_a_fold_up_to_the_watermark_reads_no_view(table: MemoryTable) -> None:
    put_summary(table, watermark=AT_MARK)
    put_views(table, AT_NOON)
    reads: list[str] = []
    assert fold_at(FaultyTable(table, before_read=reads.append), AFTER_GRACE) == 0
    assert reads == ["get"]


def test_more_views_than_one_step_reads_are_folded_in_steps(table: MemoryTable) -> None:
    """Each step ends at a millisecond, so that none of its views is left behind."""
    assert MAX_VIEWS == 8_000
    put_views(table, *range(AT_NOON, AT_NOON + MAX_VIEWS - 1), *[AT_NOON + MAX_VIEWS - 1] * 5)
    put_views(table, AT_NOON + MAX_VIEWS)
    watched = FaultyTable(table)
    assert fold_at(watched, AFTER_GRACE) == MAX_VIEWS + 5
    counts = [write.values["count"] for (write,) in watched.written if isinstance(write, Update)]
    assert counts == [MAX_VIEWS + 4, MAX_VIEWS + 5]
    assert summary(table)["watermark"] == AT_MARK
    assert shown(table) == MAX_VIEWS + 5


# ---- days


def test_views_of_several_days_are_each_in_their_day(table: MemoryTable) -> None:
    """Two of the 14th, one of the 15th, two of the 17th: the last day stays in the summary.

    All of UTC, wherever the process is.
    """
    put_views(
        table,
        MIDNIGHT - HOUR * 1000,
        MIDNIGHT - 1,
        MIDNIGHT,
        MIDNIGHT + 2 * DAY * 1000,
        MIDNIGHT + 2 * DAY * 1000 + 1,
    )
    with in_time_zone("Pacific/Auckland"):
        assert fold(table, NOON + 4 * DAY) == 5
    assert days(table) == {
        "2026-03-14": {"views": 2, "h23": 2, "version": 1, "reset": 0},
        "2026-03-15": {"views": 1, "h00": 1, "version": 2, "reset": 0},
    }
    assert summary(table)["today"] == {"day": "2026-03-17", "h00": 2}
    assert summary(table)["count"] == 5


def test_a_day_that_has_ended_is_stored_before_the_summary_is_changed(table: MemoryTable) -> None:
    put_summary(table, count=2, today={"day": "2026-03-13", "h23": 2}, version=6, reset=5)
    put_views(table, AT_NOON)
    watched = FaultyTable(table)
    assert fold_at(watched, AFTER_GRACE) == 1
    day, update = (writes[0].key.sk for writes in watched.written)
    assert (day, update) == ("DAY#2026-03-13", "VIEWS")
    assert days(table) == {"2026-03-13": {"views": 2, "h23": 2, "version": 6, "reset": 5}}


def put_today(table: Table, **attributes: Value) -> None:
    table.write(Put(keys.day(BADGE, TODAY).item(**attributes)))


def test_a_fold_counts_each_view_in_the_day_of_its_own_time(table: MemoryTable) -> None:
    """A view was counted immediately after midnight, before the window before it was folded."""
    put_summary(table, count=4, today={"day": "2026-03-15", "h00": 1}, version=6, reset=5)
    put_today(table, views=3, h11=1, h23=2, version=5, reset=5)
    put_views(table, MIDNIGHT - 1, MIDNIGHT + 1)
    watched = FaultyTable(table)
    assert fold_at(watched, NOON + DAY, MIDNIGHT // 1000 + 300) == 2
    assert days(table) == {TODAY: {"views": 4, "h11": 1, "h23": 3, "version": 7, "reset": 5}}
    assert summary(table)["today"] == {"day": "2026-03-15", "h00": 2}
    assert (summary(table)["count"], summary(table)["version"]) == (6, 8)
    assert [len(writes) for writes in watched.written] == [2, 1]


@pytest.mark.parametrize("earlier_life", [{}, {"views": 9, "h23": 9, "version": 2, "reset": 1}])
def test_a_day_without_views_of_this_life_begins_with_those_of_the_fold(
    table: MemoryTable, earlier_life: Item
) -> None:
    put_summary(table, count=1, today={"day": "2026-03-15", "h00": 1}, version=6, reset=5)
    if earlier_life:
        put_today(table, **earlier_life)
    put_views(table, MIDNIGHT - 1)
    assert fold_at(table, NOON + DAY, MIDNIGHT // 1000) == 1
    assert days(table) == {TODAY: {"views": 1, "h23": 1, "version": 7, "reset": 5}}


def test_a_fold_that_was_overtaken_reads_the_finished_day_again(table: MemoryTable) -> None:
    put_summary(table, count=1, today={"day": "2026-03-15", "h00": 1}, version=6)
    put_views(table, MIDNIGHT - 2, MIDNIGHT - 1)

    def other() -> None:
        assert fold_at(table, NOON + DAY, MIDNIGHT // 1000) == 2

    late = FaultyTable(table, before_write=once(other))
    assert fold_at(late, NOON + DAY, MIDNIGHT // 1000) == 0
    assert days(table)[TODAY]["views"] == 2
    assert summary(table)["count"] == 3


# ---- lives


@pytest.mark.parametrize(("reset", "counted"), [(0, 3), (AT_NOON - 1, 3), (AT_NOON + 1, 1)])
def test_views_up_to_the_reset_are_not_folded(table: MemoryTable, reset: int, counted: int) -> None:
    """A late message has put them after the reset."""
    put_summary(table, watermark=reset, reset=reset)
    put_views(table, AT_NOON, AT_NOON + 1, AT_NOON + 2)
    assert fold_at(table, AFTER_GRACE) == counted


def test_a_view_under_another_name_is_moved_to_the_badge_in_one_transaction() -> None:
    table = MemoryTable()
    put_summary(table, "mona", alias=BADGE, watermark=AT_NOON, reset=AT_NOON, version=1)
    put_summary(table, count=7, watermark=AT_MARK + 9, today={"day": TODAY, "h11": 7}, version=4)
    put_views(table, AT_NOON, AT_NOON + 1, AT_NOON + 2, badge_id="mona")
    watched = FaultyTable(table)
    assert fold_at(watched, AFTER_GRACE, badge_id="mona") == 2
    assert [len(writes) for writes in watched.written] == [2]
    badge, name = summary(table), summary(table, "mona")
    assert badge.pop("created") == name.pop("created") == int(AFTER_GRACE)
    assert badge == {
        "count": 9,
        "watermark": AT_MARK + 9,
        "today": {"day": TODAY, "h11": 7, "h12": 2},
        "version": 5,
    }
    assert name == {"alias": BADGE, "watermark": AT_MARK, "reset": AT_NOON, "version": 2}
    assert shown(table, "mona") == 9
    assert fold_at(table, AFTER_GRACE, badge_id="mona") == 0


def test_a_view_under_an_alias_from_before_the_reset_is_not_counted(table: MemoryTable) -> None:
    put_summary(table, "mona", alias=BADGE, version=1)
    put_summary(table, reset=AT_NOON + 1, version=4)
    put_views(table, AT_NOON, AT_NOON + 1, badge_id="mona")
    assert fold_at(table, AFTER_GRACE, badge_id="mona") == 0
    assert (summary(table)["version"], summary(table, "mona")["watermark"]) == (4, AT_MARK)
    put_views(table, AT_MARK + 1, badge_id="mona")
    assert fold_at(table, AFTER_GRACE + 300, MARK + 300, badge_id="mona") == 1
    assert summary(table)["count"] == 1


@pytest.mark.parametrize("changed", [BADGE, "mona"])
def test_a_move_is_done_only_if_neither_summary_has_changed(
    table: MemoryTable, changed: str
) -> None:
    put_summary(table, "mona", alias=BADGE, version=1)
    put_summary(table, count=2, version=6)
    put_views(table, AT_NOON, badge_id="mona")

    def other() -> None:
        table.write(Update(keys.summary(changed), values={"version": 9}))

    watched = FaultyTable(table, before_write=once(other))
    assert fold_at(watched, AFTER_GRACE, badge_id="mona") == 1
    assert len(watched.written) == 2
    assert (summary(table)["count"], shown(table, "mona")) == (3, 3)


# ---- what comes in between, and what fails


def count(table: Table, now: Seconds) -> int:
    return storing.count_at_once(counting(table, now), BADGE, [view(place=9)])


@pytest.mark.parametrize("act", [fold_at, count])
def test_a_fold_or_a_count_that_is_always_overtaken_gives_up_and_has_counted_nothing(
    table: MemoryTable, act: Callable[[Table, Seconds], int]
) -> None:
    put_views(table, AT_NOON)
    versions = iter(range(1, 99))

    def other(_: Sequence[Write]) -> None:
        table.write(Update(keys.summary(BADGE), values={"version": next(versions)}))

    raced = FaultyTable(table, before_write=other)
    with pytest.raises(
        UnavailableError, match=f"^octocat was changed by {TRIES} other writes; try again$"
    ):
        act(raced, AFTER_GRACE)
    assert len(raced.written) == TRIES == storing.TRIES
    assert shown(table) == 1
    assert act(table, AFTER_GRACE) == 1


def test_an_item_that_is_no_view_stops_the_fold_of_its_badge(table: MemoryTable) -> None:
    """Nothing is skipped silently: an operator has to look at it."""
    put_views(table, AT_NOON)
    odd: Item = {"PK": keys.partition(BADGE), "SK": f"VIEW#{ulid(AT_NOON)}#x"}
    table.write(Put(odd))
    with pytest.raises(ValueError, match="ULID"):
        fold_at(table, AFTER_GRACE)
