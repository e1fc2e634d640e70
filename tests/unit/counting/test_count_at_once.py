"""Hot and old views are counted exactly once, also with concurrent counts and folds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from chalicelib.counting import keys, storing
from chalicelib.counting.storing import HOT_SECONDS
from chalicelib.counting.summary import HOURS, hour_of
from chalicelib.counting.view import View
from chalicelib.storage.items import Item, Key
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Write
from chalicelib.ulids import earliest
from simulation.clocks import NOON
from simulation.storage import FaultyTable, once
from simulation.views import (
    AT_NOON,
    BADGE,
    DAY,
    HOUR,
    WINDOWS,
    counting,
    days,
    fold,
    put_summary,
    put_views,
    shown,
    summary,
    view,
)

TODAY = "2026-03-14"


def count(table: Table, views: Iterable[View], badge_id: str = BADGE, now: float = NOON) -> int:
    return storing.count_at_once(counting(table, now), badge_id, views)


def views(amount: int, *, hot: bool = False) -> list[View]:
    """Return views a millisecond after another, from noon on."""
    return [view(AT_NOON + place, place, hot=hot) for place in range(amount)]


def test_a_view_is_counted_in_the_present_hour_and_leaves_a_marker(table: Table) -> None:
    """It belongs to the hour in which it is counted: its own day may be finished."""
    one = view(AT_NOON - 40 * DAY * 1000)
    assert count(table, [one]) == 1
    assert summary(table) == {
        "count": 1,
        "today": {"day": TODAY, "h12": 1},
        "version": 1,
        "created": int(NOON),
    }
    marker = keys.seen(one.ulid)
    assert table.get(marker) == marker.item(badge=BADGE, ttl=int(NOON) + WINDOWS.retention)
    assert (marker.pk, marker.sk) == (f"SEEN#{one.ulid}", "SEEN")


def test_hot_views_of_a_commit_have_one_tally_a_minute_in_place_of_markers(table: Table) -> None:
    """Its time is the end of the minute, by which the clock of views is known after a crash."""
    unmarked = [one._replace(unmarked=True) for one in views(3, hot=True)]
    assert count(table, unmarked[:2]) == 2
    assert count(table, unmarked[2:], now=NOON + 59.9) == 1
    tally = keys.seen(f"{earliest(AT_NOON + 60_000)}#{BADGE}")
    assert table.get(tally) == tally.item(badge=BADGE, ttl=int(NOON) + 60 + 600, views=3)
    assert count(table, [view(AT_NOON, 9)._replace(unmarked=True)], now=NOON + 60) == 1
    assert table.get(keys.seen(f"{earliest(AT_NOON + 120_000)}#{BADGE}")) is None


def test_a_view_that_is_delivered_again_is_counted_once(table: Table) -> None:
    three = views(3)
    assert count(table, three[:2]) == 2
    assert count(table, [*three, three[0]]) == 1
    watched = FaultyTable(table)
    assert count(watched, three) == 0
    assert len(watched.written) == 1
    assert summary(table)["count"] == 3
    assert summary(table)["today"] == {"day": TODAY, "h12": 3}


@pytest.mark.parametrize("amount", [98, 99, 250])
def test_up_to_98_views_share_a_transaction(table: Table, amount: int) -> None:
    watched = FaultyTable(table)
    assert count(watched, views(amount)) == amount
    sizes = [98] * (amount // 98) + ([amount % 98] if amount % 98 else [])
    assert [len(writes) for writes in watched.written] == [size + 1 for size in sizes]
    assert summary(table)["count"] == amount


def test_a_view_that_is_in_the_table_is_left_to_the_fold(table: Table) -> None:
    """Its first message was in time, and its second one came when it was old."""
    stored = put_views(table, AT_NOON)
    others = views(3)[1:]
    assert count(table, [*stored, *others], now=NOON + 900) == 2
    assert shown(table) == 3
    assert fold(table, NOON + 900) == 1
    assert summary(table)["count"] == 3
    assert count(table, [*stored, *others], now=NOON + 5_000) == 0
    assert shown(table) == 3


def test_whether_views_are_in_the_table_is_read_once_and_of_hot_ones_never(table: Table) -> None:
    """A hot view is never stored, so its badge's visitors pay for no such read."""
    asked: list[int] = []

    class Watched(FaultyTable):
        def get_all(self, keys: Sequence[Key]) -> list[Item]:
            asked.append(len(keys))
            return []

    count(Watched(table), [*views(3), view(AT_NOON + 9, hot=True)])
    assert asked == [3]


# ---- hot badges


def test_the_first_hot_view_makes_its_badge_hot_for_an_hour(table: Table) -> None:
    assert count(table, views(2, hot=True)) == 2
    assert summary(table)["hot"] == int(NOON) + HOT_SECONDS == int(NOON) + 3_600
    later = [view(AT_NOON + 10_000, place, hot=True) for place in range(3)]
    assert count(table, later[:1], now=NOON + 3_599.9) == 1
    assert summary(table)["hot"] == int(NOON) + 3_600
    assert count(table, later[1:2], now=NOON + 3_600) == 1
    assert summary(table)["hot"] == int(NOON) + 7_200


# ---- lives


def test_a_view_up_to_the_reset_of_its_badge_is_never_counted(table: Table) -> None:
    """Of the milliseconds 0 to 4, the reset is at 2."""
    put_summary(table, reset=AT_NOON + 2, watermark=AT_NOON + 2)
    assert count(table, views(5)) == 2
    assert summary(table)["count"] == 2
    watched = FaultyTable(table)
    assert count(watched, views(3)) == 0
    assert watched.written == []
    assert count(table, [view(AT_NOON + 2, 9, hot=True)]) == 0


@pytest.mark.parametrize(("own", "badge", "counted"), [(2, 0, 2), (0, 3, 1), (1, 0, 3), (9, 9, 0)])
def test_a_view_of_another_name_counts_for_the_badge_if_it_is_of_both_lives(
    table: Table, own: int, badge: int, counted: int
) -> None:
    put_summary(table, "mona", alias=BADGE, reset=AT_NOON + own, version=4)
    put_summary(table, reset=AT_NOON + badge, count=7)
    named = [view(AT_NOON + place, place, "mona") for place in range(5)]
    assert count(table, named, "mona") == counted
    assert summary(table)["count"] == 7 + counted
    assert summary(table, "mona") == {"alias": BADGE, "reset": AT_NOON + own, "version": 4}
    assert count(table, named, "mona") == 0


def test_a_name_that_is_given_to_another_badge_meanwhile_is_seen(table: Table) -> None:
    """The name's summary is checked in the transaction that counts."""
    put_summary(table, "mona", alias=BADGE, version=1)
    put_summary(table, "hubot")
    move = once(lambda: put_summary(table, "mona", alias="hubot", version=2))
    assert count(FaultyTable(table, before_write=move), [view(badge_id="mona")], "mona") == 1
    assert [shown(table, name) for name in (BADGE, "hubot")] == [0, 1]


# ---- days


def test_a_view_of_a_new_day_stores_the_finished_day_first(table: Table) -> None:
    put_summary(table, count=5, today={"day": "2026-03-13", "h23": 2}, version=6, reset=1)
    watched = FaultyTable(table)
    assert count(watched, views(1)) == 1
    assert days(table) == {"2026-03-13": {"views": 2, "h23": 2, "version": 6, "reset": 1}}
    assert summary(table)["today"] == {"day": TODAY, "h12": 1}
    assert [len(writes) for writes in watched.written] == [1, 2]


@pytest.mark.parametrize("reset", [AT_NOON + 4_999, AT_NOON + HOUR * 1000 - 1])
def test_no_view_is_counted_in_an_hour_before_the_life_of_its_badge(
    table: Table, reset: int
) -> None:
    """A life begins seconds ahead of the clock, perhaps on the next day."""
    put_summary(table, reset=reset, watermark=reset)
    assert count(table, [view(reset + 1, hot=True)]) == 1
    first = hour_of(reset + 1)
    assert summary(table)["today"] == {"day": first.day, HOURS[first.hour]: 1}


def test_a_day_that_another_has_finished_later_is_read_again(table: Table) -> None:
    """Both read version 6 of yesterday; the other counts a view of yesterday, then one of today."""
    put_summary(table, count=2, today={"day": "2026-03-13", "h23": 2}, version=6)

    def other() -> None:
        count(table, [view(AT_NOON, 91)], now=NOON - DAY)
        count(table, [view(AT_NOON, 92)])

    assert count(FaultyTable(table, before_write=once(other)), views(1)) == 1
    assert days(table)["2026-03-13"] == {"views": 3, "h23": 2, "h12": 1, "version": 7, "reset": 0}
    assert (summary(table)["count"], summary(table)["today"]) == (5, {"day": TODAY, "h12": 2})


# ---- what comes in between


def test_two_that_count_concurrently_count_each_view_once(table: Table) -> None:
    """Before each of its transactions another takes some of the same views."""
    eight = views(8)
    others = iter([eight[:3], eight[2:5], eight[5:6]])

    def meanwhile(_: Sequence[Write]) -> None:
        count(table, next(others, []))

    assert count(FaultyTable(table, before_write=meanwhile), eight) == 2
    assert summary(table)["count"] == 8
    assert summary(table)["today"] == {"day": TODAY, "h12": 8}


def test_a_reset_between_two_tries_is_heeded(table: Table) -> None:
    resets = iter([2, 4])

    def meanwhile(_: Sequence[Write]) -> None:
        if after := next(resets, 0):
            put_summary(table, reset=AT_NOON + after, version=after)

    assert count(FaultyTable(table, before_write=meanwhile), views(6)) == 1
    assert summary(table)["count"] == 1
