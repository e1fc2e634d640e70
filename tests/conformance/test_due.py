"""The index of due items that every `ports.Table` shares."""

from __future__ import annotations

from chalicelib.storage.items import Due, Key
from chalicelib.storage.ports import MAX_DUE, Table
from chalicelib.storage.writes import Delete, Put, Update


def due(batch: str, at: int, name: str = "a") -> Put:
    return Put({"PK": name, "SK": "TIMER", "batch": batch, "due": at})


def test_due_items_are_in_the_order_of_their_times(table: Table) -> None:
    table.write(due("one", 30, "c"), due("one", 10, "b"), due("one", 20, "a"), due("two", 5, "d"))
    assert table.query_due("one", limit=9) == [
        Due(10, Key("b", "TIMER")),
        Due(20, Key("a", "TIMER")),
        Due(30, Key("c", "TIMER")),
    ]
    assert table.query_due("three", limit=9) == []


def test_due_items_are_read_between_inclusive_bounds(table: Table) -> None:
    table.write(*(due("one", at, str(at)) for at in (1, 2, 3, 4)))
    assert [one.due for one in table.query_due("one", limit=9, first=2, last=3)] == [2, 3]
    assert [one.due for one in table.query_due("one", limit=9, first=3)] == [3, 4]
    assert [one.due for one in table.query_due("one", limit=9, last=2)] == [1, 2]


def test_pages_of_due_items_omit_and_repeat_none(table: Table) -> None:
    """Many of the items are due at the same moment."""
    table.write(*(due("one", place // 5, f"{place:02}") for place in range(23)))
    seen: list[Due] = []
    while part := table.query_due("one", limit=4, after=seen[-1] if seen else None):
        assert len(part) <= 4
        seen += part
    assert [one.due for one in seen] == sorted(place // 5 for place in range(23))
    assert {one.key.pk for one in seen} == {f"{place:02}" for place in range(23)}
    assert len(seen) == 23


def test_pages_of_items_due_at_one_moment_omit_and_repeat_none(table: Table) -> None:
    """Each partition has two items. Sort keys are in the reverse order of partition keys."""
    stored = [Key(f"p{place // 2}", f"s{9 - place}") for place in range(8)]
    table.write(*(Put(key.item(batch="one", due=5)) for key in stored))
    seen: list[Due] = []
    for _ in range(3):
        seen += table.query_due("one", limit=3, after=seen[-1] if seen else None)
    assert sorted(one.key for one in seen) == sorted(stored)


def test_a_following_page_stays_within_the_bounds(table: Table) -> None:
    table.write(*(due("one", at, str(at)) for at in (1, 2, 3, 4)))
    [_, second] = table.query_due("one", limit=2)
    assert [one.due for one in table.query_due("one", limit=9, last=3, after=second)] == [3]


def test_an_item_changes_its_place_in_the_index_with_its_attributes(table: Table) -> None:
    table.write(due("one", 1))
    key = Key("a", "TIMER")
    table.write(Update(key, values={"batch": "two", "due": 7}))
    assert table.query_due("one", limit=9) == []
    assert table.query_due("two", limit=9) == [Due(7, key)]
    table.write(Update(key, remove=("batch",)))
    assert table.query_due("two", limit=9) == []
    table.write(Update(key, values={"batch": "two"}))
    assert table.query_due("two", limit=9) == [Due(7, key)]
    table.write(Delete(key))
    assert table.query_due("two", limit=9) == []


def test_an_item_without_both_attributes_is_not_in_the_index(table: Table) -> None:
    table.write(Put({"PK": "a", "SK": "x", "batch": "one"}))
    table.put_all([{"PK": "a", "SK": "y", "due": 1}])
    assert table.query_due("one", limit=9) == []


def test_times_of_today_and_of_a_year_ahead_are_in_their_order(table: Table) -> None:
    now, ahead = 1_795_000_000_000, 1_795_000_000_000 + 366 * 86_400_000
    table.write(due("one", ahead, "b"), due("one", now, "a"))
    assert [one.due for one in table.query_due("one", limit=9)] == [now, ahead]
    assert [one.due for one in table.query_due("one", limit=9, last=MAX_DUE)] == [now, ahead]
