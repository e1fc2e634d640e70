"""Storing views, raising floors, and who fails when something fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chalicelib.concurrency import concurrently
from chalicelib.ports import Item, NotStored, Put, Refused, Unavailable, Update, Write, key_of
from chalicelib.views import counting, keys, storing
from chalicelib.views.counting import Count
from chalicelib.views.storing import Lifetime
from chalicelib.views.view import View
from local.table import SqliteTable
from tests.unit.fakes import NOON, FaultyTable, raising, sqlite_table

LIFETIME = Lifetime(window=300, redelivery=300)


@pytest.fixture
def table(tmp_path: Path) -> Iterator[SqliteTable]:
    with sqlite_table(tmp_path) as opened:
        yield opened


def taken(badge_id: str, *shown: int) -> list[View]:
    return [View.taken(badge_id, count, NOON) for count in shown]


def badge(table: SqliteTable, badge_id: str = "octocat") -> Item:
    item = table.get(keys.user(badge_id))
    assert item is not None
    return item


def test_a_view_is_an_item_of_its_own_that_expires(table: SqliteTable) -> None:
    [view] = views = taken("octocat", 0)
    assert storing.store(views, table, LIFETIME, NOON, map) == {}
    key = keys.view("octocat", view.ulid)
    # NOON is a mark of the window: NOON + 300 is one too.
    assert table.get(key) == {"PK": key.pk, "SK": key.sk, "ttl": int(NOON) + 300}


def test_a_view_stored_again_is_one_view_that_expires_later(table: SqliteTable) -> None:
    [view] = views = taken("octocat", 0)
    for moment in (NOON, NOON + 1, NOON + 200):
        assert storing.store(views, table, LIFETIME, moment, map) == {}
    assert counting.read(table, "octocat").shown == 1
    item = table.get(keys.view("octocat", view.ulid))
    assert item is not None
    assert item["ttl"] == int(NOON) + 600


def test_the_floor_is_one_above_the_highest_count_that_a_visitor_saw(table: SqliteTable) -> None:
    storing.store(taken("octocat", 5, 9, 7), table, LIFETIME, NOON, map)
    assert badge(table) == {
        "PK": "USER#octocat",
        "SK": "USER",
        "floor": 9 + 1,
        "created": int(NOON),
    }


def test_a_floor_is_never_lowered_and_a_lower_one_is_no_failure(table: SqliteTable) -> None:
    storing.store(taken("octocat", 9), table, LIFETIME, NOON, map)
    for shown in (0, 8, 9):
        assert storing.store(taken("octocat", shown), table, LIFETIME, NOON, map) == {}
        assert badge(table)["floor"] == 10
    storing.store(taken("octocat", 10), table, LIFETIME, NOON, map)
    assert badge(table)["floor"] == 11


def test_raising_a_floor_leaves_count_position_and_day_of_birth(table: SqliteTable) -> None:
    before: Item = {"PK": "USER#octocat", "SK": "USER", "count": 5, "folded": "x", "created": 17}
    table.write(Put(before))
    storing.store(taken("octocat", 5), table, LIFETIME, NOON, map)
    assert badge(table) == before | {"floor": 6}


def test_a_batch_writes_each_badge_once(table: SqliteTable) -> None:
    watched = FaultyTable(table)
    views = taken("octocat", 0, 1, 2) + taken("hubot", 4, 3)
    storing.store(views, watched, LIFETIME, NOON, map)
    assert [len(items) for items in watched.put] == [3 + 2]
    assert [write.key for (write,) in watched.written] == [keys.user("octocat"), keys.user("hubot")]
    assert (badge(table)["floor"], badge(table, "hubot")["floor"]) == (2 + 1, 4 + 1)


def test_no_views_are_no_writes(table: SqliteTable) -> None:
    watched = FaultyTable(table)
    assert storing.store([], watched, LIFETIME, NOON, concurrently) == {}
    assert watched.written == []
    assert table.query("USER#octocat", limit=9) == []


def test_the_floors_of_a_batch_are_raised_before_its_views_are_put(table: SqliteTable) -> None:
    """Whoever dies between the two has stored none of the views that then come again."""
    floors: list[object] = []

    def look(_: object) -> None:
        floors.extend(badge(table, badge_id)["floor"] for badge_id in ("octocat", "hubot"))

    watched = FaultyTable(table, before_put=look)
    views = taken("octocat", 3) + taken("hubot", 5)
    assert storing.store(views, watched, LIFETIME, NOON, map) == {}
    assert floors == [3 + 1, 5 + 1]


def test_views_that_are_not_put_fail_alone_and_the_floor_that_counts_them_is_not_over(
    table: SqliteTable,
) -> None:
    """The visitors saw 3, 8 and 2; whoever saw 8 was the 9th, and his message comes again."""
    stored, missing = taken("octocat", 3, 8)
    alone = taken("hubot", 2)
    lost = {keys.view(view.badge_id, view.ulid) for view in (missing, *alone)}

    def lose(items: Sequence[Item]) -> None:
        table.put_all([item for item in items if key_of(item) not in lost])
        raise NotStored([item for item in items if key_of(item) in lost], "throttled")

    faulty = FaultyTable(table, before_put=lose)
    failed = storing.store([stored, missing, *alone], faulty, LIFETIME, NOON, map)
    assert set(failed) == {missing, *alone}
    assert all(isinstance(reason, NotStored) for reason in failed.values())
    assert counting.read(table, "octocat") == Count(folded=0, live=1, floor=8 + 1)
    assert counting.read(table, "hubot") == Count(folded=0, live=0, floor=2 + 1)
    assert storing.store(list(failed), table, LIFETIME, NOON, map) == {}
    assert counting.read(table, "octocat") == Count(folded=0, live=2, floor=8 + 1)


@pytest.mark.parametrize("failure", [Unavailable("out of reach"), Refused("no such table")])
def test_where_nothing_is_put_every_view_fails_with_the_reason(
    table: SqliteTable, failure: Exception
) -> None:
    views = taken("octocat", 0, 1) + taken("hubot", 0)
    faulty = FaultyTable(table, before_put=raising(failure))
    assert storing.store(views, faulty, LIFETIME, NOON, map) == dict.fromkeys(views, failure)
    assert counting.read(table, "octocat") == Count(folded=0, live=0, floor=1 + 1)


@pytest.mark.parametrize("failure", [Unavailable("throttled"), RuntimeError("a bug")])
def test_a_badge_whose_floor_fails_has_its_views_not_put_and_delays_nobody(
    table: SqliteTable, failure: Exception
) -> None:
    bad, good = taken("bad", 0, 1), taken("good", 0)

    def fail_the_bad(writes: Sequence[Write]) -> None:
        if writes[0].key == keys.user("bad"):
            raise failure

    faulty = FaultyTable(table, before_write=fail_the_bad)
    assert storing.store(bad + good, faulty, LIFETIME, NOON, map) == dict.fromkeys(bad, failure)
    assert [[item["PK"] for item in items] for items in faulty.put] == [["USER#good"]]
    assert counting.read(table, "good") == Count(folded=0, live=1, floor=1)
    assert counting.read(table, "bad") == Count(folded=0, live=0, floor=0)
    # Delivered again they are stored, and the floor stands.
    assert storing.store(bad, table, LIFETIME, NOON, map) == {}
    assert counting.read(table, "bad") == Count(folded=0, live=2, floor=2)


def test_many_badges_are_worked_through_at_once_each_with_its_own_floor(table: SqliteTable) -> None:
    views = [view for place in range(40) for view in taken(f"badge-{place}", place)]
    assert storing.store(views, table, LIFETIME, NOON, concurrently) == {}
    assert [badge(table, f"badge-{place}")["floor"] for place in range(40)] == list(range(1, 41))


def test_a_view_stored_directly_leaves_a_floor_of_itself_and_what_its_visitor_saw(
    table: SqliteTable,
) -> None:
    [view] = taken("octocat", 4)
    storing.store_one(view, table, LIFETIME, NOON)
    assert counting.read(table, "octocat") == Count(folded=0, live=1, floor=4 + 1)


def test_a_view_stored_directly_is_one_put_and_one_floor(table: SqliteTable) -> None:
    watched = FaultyTable(table)
    [view] = taken("octocat", 7)
    storing.store_one(view, watched, LIFETIME, NOON)
    assert (len(watched.put), len(watched.written)) == (1, 1)


@pytest.mark.parametrize("shown", [0, 4])
def test_a_direct_store_whose_put_fails_raises_and_shows_no_view_too_many(
    table: SqliteTable, shown: int
) -> None:
    """His visitor is told that he was not counted, and no floor counts him."""
    [view] = taken("octocat", shown)
    lost = NotStored([{"PK": "USER#octocat", "SK": f"VIEW#{view.ulid}"}], "throttled")
    with pytest.raises(NotStored):
        storing.store_one(view, FaultyTable(table, before_put=raising(lost)), LIFETIME, NOON)
    assert counting.read(table, "octocat") == Count(folded=0, live=0, floor=0)


def test_a_direct_store_whose_floor_fails_raises(table: SqliteTable) -> None:
    """The view is there; that the count may not fall while it is folded can't be promised."""
    [view] = taken("octocat", 4)
    unwritable = FaultyTable(table, before_write=raising(Unavailable("throttled")))
    with pytest.raises(storing.FloorNotRaised, match="throttled"):
        storing.store_one(view, unwritable, LIFETIME, NOON)
    assert counting.read(table, "octocat") == Count(folded=0, live=1, floor=0)


def test_a_floor_is_one_conditional_update_and_nothing_is_added(table: SqliteTable) -> None:
    watched = FaultyTable(table)
    storing.store(taken("octocat", 0), watched, LIFETIME, NOON, map)
    [(write,)] = watched.written
    assert isinstance(write, Update)
    assert write.condition is not None
    assert not write.add  # sent again after a lost answer, it changes nothing


@settings(max_examples=25)
@given(st.lists(st.lists(st.integers(min_value=0, max_value=20), max_size=4), max_size=6))
def test_the_floor_is_the_highest_of_all_batches_in_any_order(batches: list[list[int]]) -> None:
    with sqlite_table() as table:
        for shown in batches:
            assert storing.store(taken("octocat", *shown), table, LIFETIME, NOON, map) == {}
        count = counting.read(table, "octocat")
    views = [shown for batch in batches for shown in batch]
    assert count == Count(folded=0, live=len(views), floor=max(views, default=-1) + 1)


AT_NOON = int(NOON * 1000)


def of_reset(reset: int, *shown: int) -> list[View]:
    return [View.taken("octocat", count, NOON, reset) for count in shown]


@pytest.mark.parametrize(
    ("stored", "views", "floor"),
    [
        (0, [(0, 4)], 4 + 1),
        (AT_NOON, [(AT_NOON, 4)], 4 + 1),
        # Seen in a count that is over, or in one that is not known to have begun.
        (AT_NOON, [(0, 99)], 0),
        (AT_NOON, [(AT_NOON - 1, 99)], 0),
        (AT_NOON, [(AT_NOON + 1, 99)], 0),
        (0, [(AT_NOON, 99)], 0),
        # Of one batch only those of the latest reset say anything.
        (AT_NOON, [(0, 99), (AT_NOON, 4), (AT_NOON - 1, 50)], 4 + 1),
        (AT_NOON, [(AT_NOON, 4), (AT_NOON, 6), (0, 99)], 6 + 1),
    ],
)
def test_a_floor_is_raised_by_views_of_its_own_count_alone(
    table: SqliteTable, stored: int, views: list[tuple[int, int]], floor: int
) -> None:
    item: Item = {"PK": "USER#octocat", "SK": "USER", "created": 1}
    table.write(Put({**item, **({"reset": stored} if stored else {})}))
    batch = [view for reset, shown in views for view in of_reset(reset, shown)]
    assert storing.store(batch, table, LIFETIME, NOON, map) == {}
    assert counting.read(table, "octocat").floor == floor


def alias(table: SqliteTable, name: str, of: str) -> None:
    table.write(Put({"PK": f"USER#{name}", "SK": "USER", "alias": of}))


def test_views_of_a_name_are_stored_where_it_leads_with_their_floor(table: SqliteTable) -> None:
    """The highest that one of the 3 saw is 6."""
    alias(table, "mona", "octocat")
    views = taken("mona", 2, 6) + taken("octocat", 3)
    assert storing.store(views, table, LIFETIME, NOON, map) == {}
    assert counting.read(table, "octocat") == Count(folded=0, live=3, floor=6 + 1)
    assert [item["SK"] for item in table.query("USER#mona", limit=9)] == ["USER"]


def test_a_view_of_a_name_whose_floor_stands_already_goes_there_all_the_same(
    table: SqliteTable,
) -> None:
    alias(table, "mona", "octocat")
    table.write(Put({"PK": "USER#octocat", "SK": "USER", "floor": 50}))
    assert storing.store(taken("mona", 2), table, LIFETIME, NOON, map) == {}
    assert counting.read(table, "octocat") == Count(folded=0, live=1, floor=50)


def test_views_of_a_name_whose_badge_fails_are_not_put_and_come_again(table: SqliteTable) -> None:
    alias(table, "mona", "octocat")
    views, failure = taken("mona", 0, 1), Unavailable("throttled")

    def fail_the_badge(writes: Sequence[Write]) -> None:
        if writes[0].key == keys.user("octocat"):
            raise failure

    faulty = FaultyTable(table, before_write=fail_the_badge)
    assert storing.store(views, faulty, LIFETIME, NOON, map) == dict.fromkeys(views, failure)
    assert counting.read(table, "octocat").live == 0
    assert storing.store(views, table, LIFETIME, NOON, map) == {}
    assert counting.read(table, "octocat") == Count(folded=0, live=2, floor=2)


def test_a_view_stored_directly_by_a_name_is_stored_where_it_leads(table: SqliteTable) -> None:
    """It is put before anybody knows that its name leads on: under both, and shown once."""
    alias(table, "mona", "octocat")
    [view] = taken("mona", 4)
    storing.store_one(view, table, LIFETIME, NOON)
    assert counting.read(table, "octocat") == Count(folded=0, live=1, floor=4 + 1)
    assert counting.read(table, "mona").shown == 4 + 1
    assert table.get(keys.view("mona", view.ulid)) is not None


def test_a_view_stored_directly_whose_second_put_fails_is_an_error(table: SqliteTable) -> None:
    """Its visitor is told, though by then the floor may count him."""
    alias(table, "mona", "octocat")
    [view] = taken("mona", 4)
    lost = NotStored([{"PK": "USER#octocat", "SK": f"VIEW#{view.ulid}"}], "throttled")
    with pytest.raises(NotStored):
        storing.store_one(view, FaultyTable(table, before_put=raising(None, lost)), LIFETIME, NOON)
    assert counting.read(table, "octocat").live == 0
