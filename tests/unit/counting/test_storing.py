"""The storing of views by their age, and failures of single views."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from chalicelib.counting import keys
from chalicelib.counting.storing import InBetweenError
from chalicelib.storage.errors import StorageRefusedError, UnavailableError
from chalicelib.storage.items import Item, key_of
from chalicelib.storage.ports import NotStoredError, Table
from simulation.clocks import NOON
from simulation.tables import FaultyTable, raising, refusing
from simulation.views import AT_NOON, BADGE, WINDOWS, shown, store, summary, view
from vumi.storage.table import SqliteTable

MARKER = keys.marker(BADGE, int(NOON) + 300)
"""The marker of the window that begins at noon."""


def live(table: Table, badge_id: str = BADGE) -> list[str]:
    items = table.query(keys.partition(badge_id), first=keys.VIEW, last=keys.SUMMARY, limit=99)
    return [str(item["SK"]).removeprefix(keys.VIEW) for item in items if item["SK"] != keys.SUMMARY]


def test_a_young_view_is_an_item_of_its_own_and_its_window_has_a_marker(table: SqliteTable) -> None:
    one = view(AT_NOON + 1_500)
    assert store(table, one) == {}
    place = keys.view(BADGE, one.ulid)
    assert table.get(place) == place.item(ttl=int(NOON) + 300 + WINDOWS.retention)
    assert table.get(MARKER) == MARKER.item(badge=BADGE, ttl=int(NOON) + 300 + 600)
    assert summary(table) == {}


@pytest.mark.parametrize("age", [300.001, 600.0, 899.999])
def test_a_view_in_between_is_neither_stored_nor_counted_and_is_returned(
    table: SqliteTable, age: float
) -> None:
    """So no two deliveries of a message, however close, take both ways."""
    one = view()
    watched = FaultyTable(table)
    [(failed, reason)] = store(watched, one, now=NOON + age).items()
    assert failed == one
    assert isinstance(reason, InBetweenError)
    assert str(reason) == "the view is between young and old; deliver it again"
    assert (watched.put, watched.written) == ([], [])


@pytest.mark.parametrize("age", [900.0, 1e6])
def test_an_old_view_is_counted_at_once(table: SqliteTable, age: float) -> None:
    assert store(table, view(), now=NOON + age) == {}
    assert (live(table), summary(table)["count"]) == ([], 1)
    assert store(table, view(), now=NOON + age) == {}
    assert summary(table)["count"] == 1
    assert table.get(MARKER) is None


def test_only_the_first_view_of_a_window_has_a_marker_put(table: SqliteTable) -> None:
    watched = FaultyTable(table)
    assert store(watched, view(first=False)) == {}
    assert [len(items) for items in watched.put] == [1]
    assert table.get(MARKER) is None
    assert shown(table) == 1


def test_a_batch_puts_each_marker_once_and_before_all_views(table: SqliteTable) -> None:
    """Two windows of one badge, one of another; 5 views."""
    watched = FaultyTable(table)
    next_window = AT_NOON + 300_000
    batch = [
        view(AT_NOON, 1),
        view(AT_NOON, 2),
        view(AT_NOON, 3, first=False),
        view(next_window),
        view(badge_id="hubot"),
    ]
    assert store(watched, *batch, now=NOON + 300) == {}
    markers, views = [[key_of(item).sk for item in items] for items in watched.put]
    assert markers == ["WINDOW"] * 3
    assert views == [keys.VIEW + one.ulid for one in batch]


def losing(table: Table, *sort_keys: str) -> Callable[[Sequence[Item]], None]:
    """Return what stores all items but those whose partition or sort key is named."""

    def put(items: Sequence[Item]) -> None:
        lost = [item for item in items if {item["PK"], item["SK"]} & set(sort_keys)]
        if lost:
            table.put_all([item for item in items if item not in lost])
            raise NotStoredError(lost, "throttled")

    return put


def test_a_view_whose_marker_is_not_stored_is_not_put(table: SqliteTable) -> None:
    """Its window would never be folded; the views of other windows are stored."""
    first, again, second = view(AT_NOON, 1), view(AT_NOON, 2), view(AT_NOON, 3, first=False)
    other = view(AT_NOON + 300_000)
    faulty = FaultyTable(table, before_put=losing(table, MARKER.pk))
    failed = store(faulty, first, again, second, other, now=NOON + 300)
    assert set(failed) == {first, again}
    assert all(isinstance(reason, NotStoredError) for reason in failed.values())
    assert live(table) == [second.ulid, other.ulid]
    assert store(table, *failed) == {}
    assert shown(table) == 4


@pytest.mark.parametrize(
    "failure", [UnavailableError("out of reach"), StorageRefusedError("no such table")]
)
@pytest.mark.parametrize("place", [0, 1], ids=["markers", "views"])
def test_where_nothing_is_put_every_young_view_fails_with_the_reason(
    table: SqliteTable, failure: Exception, place: int
) -> None:
    young = [view(AT_NOON, 1), view(AT_NOON, 2), view(badge_id="hubot")]
    old = view(AT_NOON - 900_000)
    faulty = FaultyTable(table, before_put=raising(*[None] * place, failure))
    assert store(faulty, *young, old) == dict.fromkeys(young, failure)
    assert summary(table)["count"] == 1
    assert (shown(table), shown(table, "hubot")) == (1, 0)
    assert store(table, *young) == {}
    assert (shown(table), shown(table, "hubot")) == (3, 1)


@pytest.mark.parametrize("failure", [UnavailableError("throttled"), RuntimeError("a bug")])
def test_a_badge_that_can_not_be_counted_delays_no_other(
    table: SqliteTable, failure: Exception
) -> None:
    bad = [view(AT_NOON, place, "bad", hot=True) for place in range(2)]
    good = [view(hot=True), view(AT_NOON - 900_000), view(badge_id="young")]

    step = refusing(keys.partition("bad"), failure=failure)
    faulty = FaultyTable(table, before_write=step)
    assert store(faulty, *bad, *good) == dict.fromkeys(bad, failure)
    assert [shown(table, name) for name in ("bad", BADGE, "young")] == [0, 2, 1]
    assert store(table, *bad) == {}
    assert shown(table, "bad") == 2
