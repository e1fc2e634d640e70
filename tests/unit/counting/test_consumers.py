"""Views stored by their age, and badges that are folded; a failure of one delays no other."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from chalicelib.counting import keys
from chalicelib.counting.consumers import MarkerRemoval, fold_badges, store_views
from chalicelib.counting.storing import InBetweenError
from chalicelib.counting.view import View
from chalicelib.storage.errors import StorageRefusedError, UnavailableError
from chalicelib.storage.items import Item, key_of
from chalicelib.storage.ports import NotStoredError, Table
from chalicelib.storage.writes import Write
from simulation.clocks import NOON, Clock
from simulation.logs import logged_events
from simulation.resources import GivenResources
from simulation.storage import FaultyTable, raising, refusing
from simulation.views import AT_NOON, BADGE, WINDOWS, shown, store, summary, ulid, view
from simulation.views import put_views as put_items

MARK = int(NOON) + 300
"""The end of the window that begins at noon, in seconds."""
AFTER_GRACE = MARK + 600.0


@dataclass
class World(GivenResources):
    """Resources whose clock a test sets."""

    clock: Clock = field(default_factory=Clock)


@pytest.fixture
def world(table: Table) -> World:
    return World(table=table)


def removal(badge_id: str = BADGE, mark: int = MARK, removed_at: float = 0) -> MarkerRemoval:
    return MarkerRemoval(badge_id, mark, removed_at)


def test_views_are_put_counted_or_returned_by_their_age(
    world: World, table: Table, counted: dict[str, int], caplog: pytest.LogCaptureFixture
) -> None:
    """A view that waits is nothing that anybody must look at."""
    young, old, waits = view(), view(AT_NOON - 900_000), view(AT_NOON - 600_000)
    assert store_views([young, old, waits], world) == {waits}
    assert counted == {"views_put": 2, "views_waiting": 1, "views_folded_early": 0}
    assert logged_events(caplog) == []
    assert (shown(table), summary(table)["count"]) == (2, 1)


def test_a_view_that_is_not_stored_is_returned_and_logged_with_its_reason(
    world: World, counted: dict[str, int], caplog: pytest.LogCaptureFixture
) -> None:
    world.table = FaultyTable(world.table, before_write=refusing(keys.partition(BADGE)))
    bad, good = view(hot=True), view(badge_id="b", hot=True)
    assert store_views([bad, good], world) == {bad}
    assert (counted["views_put"], counted["views_waiting"]) == (1, 0)
    assert logged_events(caplog) == [(logging.WARNING, "view_not_stored", {"reason": "no right"})]


def test_a_badge_with_an_overdue_fold_is_folded_if_a_view_requests_it(
    world: World, table: Table, counted: dict[str, int]
) -> None:
    """Two views wait in each of two badges; only one is asked for, by two views."""
    for badge_id in (BADGE, "hubot"):
        put_items(table, AT_NOON - 900_000, AT_NOON - 899_000, badge_id=badge_id)
    asks = [View(BADGE, ulid(AT_NOON, place), fold=True) for place in range(2)]
    assert store_views([*asks, view(badge_id="hubot")], world) == set()
    assert (summary(table)["count"], summary(table, "hubot")) == (2, {})
    assert counted["views_folded_early"] == 2
    assert (shown(table), shown(table, "hubot")) == (4, 3)


@pytest.mark.parametrize("failure", [UnavailableError("no answer"), TypeError("no number")])
def test_a_badge_that_can_not_be_folded_early_delays_no_view(
    world: World,
    table: Table,
    counted: dict[str, int],
    caplog: pytest.LogCaptureFixture,
    failure: Exception,
) -> None:
    def fail(method: str) -> None:
        if method == "query":
            raise failure

    world.table = FaultyTable(table, before_read=fail)
    assert store_views([View(BADGE, ulid(), fold=True)], world) == set()
    assert shown(table) == 1
    assert counted["views_folded_early"] == 0
    reason = {"badge": BADGE, "reason": repr(failure)}
    assert logged_events(caplog) == [(logging.WARNING, "badge_not_folded", reason)]


def test_the_removal_of_a_marker_folds_its_badge_up_to_its_mark(
    world: World, table: Table, counted: dict[str, int]
) -> None:
    world.clock.now = AFTER_GRACE + 300
    put_items(table, AT_NOON, AT_NOON + 1, MARK * 1000 + 1)
    removed = removal(removed_at=AFTER_GRACE + 300 - 7)
    assert fold_badges([removed], world) == []
    assert counted == {"views_folded": 2, "folds_postponed": 0, "fold_lag_seconds": 7}
    assert (summary(table)["count"], summary(table)["watermark"]) == (2, MARK * 1000)
    assert shown(table) == 3
    assert fold_badges([removed], world) == []
    assert counted["views_folded"] == 2
    assert table.get(keys.marker(BADGE, MARK)) is None


def test_of_the_removals_of_one_badge_the_last_mark_is_folded_once(
    world: World, table: Table, counted: dict[str, int]
) -> None:
    """In whatever order the stream has them."""
    world.clock.now = AFTER_GRACE + 600
    put_items(table, *(AT_NOON + place * 300_000 + 1 for place in range(3)))
    watched = FaultyTable(table)
    world.table = watched
    assert fold_badges([removal(mark=MARK + n * 300) for n in (1, 2, 0)], world) == []
    assert (counted["views_folded"], len(watched.written)) == (3, 1)


@pytest.mark.parametrize(
    "failure",
    [UnavailableError("throttled"), StorageRefusedError("no right"), RuntimeError("a bug")],
)
def test_a_badge_that_is_not_folded_has_its_marker_put_again_and_is_not_returned(
    world: World,
    table: Table,
    counted: dict[str, int],
    caplog: pytest.LogCaptureFixture,
    failure: Exception,
) -> None:
    """Delivered again, its removal would delay everybody else in its shard."""
    world.clock.now = AFTER_GRACE
    put_items(table, AT_NOON)
    put_items(table, AT_NOON, badge_id="hubot")

    def fail(writes: Sequence[Write]) -> None:
        if writes[0].key == keys.summary(BADGE):
            raise failure

    world.table = FaultyTable(table, before_write=fail)
    assert fold_badges([removal(), removal("hubot")], world) == []
    assert (counted["views_folded"], counted["folds_postponed"]) == (1, 1)
    marker = table.get(keys.marker(BADGE, MARK)) or {}
    assert marker["ttl"] == int(AFTER_GRACE) + 600
    assert table.get(keys.marker("hubot", MARK)) is None
    reason = {"badge": BADGE, "reason": repr(failure)}
    assert logged_events(caplog) == [(logging.ERROR, "badge_not_folded", reason)]
    world.table = table
    assert fold_badges([removal()], world) == []
    assert summary(table)["count"] == 1


def test_a_fold_whose_grace_is_not_over_is_postponed(
    world: World, table: Table, counted: dict[str, int], caplog: pytest.LogCaptureFixture
) -> None:
    """TTL's clock is ahead of this one by a second; what can be folded is folded."""
    world.clock.now = AFTER_GRACE - 1
    put_items(table, AT_NOON - 1, AT_NOON + 1)
    assert fold_badges([removal()], world) == []
    assert (counted["views_folded"], counted["folds_postponed"]) == (1, 1)
    assert (table.get(keys.marker(BADGE, MARK)) or {})["ttl"] == int(AFTER_GRACE) - 1 + 600
    assert (summary(table)["count"], shown(table)) == (1, 2)
    assert logged_events(caplog) == []
    world.clock.now = AFTER_GRACE + 600
    assert fold_badges([removal()], world) == []
    assert summary(table)["count"] == 2


def test_a_grace_that_ends_while_its_badge_is_folded_was_not_over(
    world: World, table: Table, counted: dict[str, int]
) -> None:
    """The fold has left the window's views: without the marker nobody would come for them."""
    world.clock.now = AFTER_GRACE - 0.001
    put_items(table, AT_NOON + 1)

    def pass_time(_: str) -> None:
        world.clock.now = AFTER_GRACE

    world.table = FaultyTable(table, before_read=pass_time)
    assert fold_badges([removal()], world) == []
    assert counted["folds_postponed"] == 1
    assert table.get(keys.marker(BADGE, MARK)) is not None


def test_the_removals_of_badges_that_take_no_marker_either_are_delivered_again(
    world: World, table: Table, counted: dict[str, int]
) -> None:
    world.clock.now = AFTER_GRACE
    for badge_id in "abc":
        put_items(table, AT_NOON, badge_id=badge_id)
    refused = [keys.partition(badge) for badge in "bc"] + [
        keys.marker(badge, MARK).pk for badge in "bc"
    ]
    world.table = FaultyTable(table, before_write=refusing(*refused))
    removals = [removal(badge_id, removed_at=at) for at, badge_id in enumerate("abcbc")]
    assert fold_badges(removals, world) == removals[1:]
    assert (counted["views_folded"], counted["folds_postponed"]) == (1, 0)
    world.table = table
    assert fold_badges(removals[1:], world) == []
    assert [summary(table, badge)["count"] for badge in "abc"] == [1, 1, 1]


def test_the_lag_of_a_batch_is_that_of_its_first_removal(
    world: World, table: Table, counted: dict[str, int]
) -> None:
    """One marker removed 90 s ago, one 20 s ago, one the clock has not come to: 90."""
    world.clock.now = AFTER_GRACE
    put_items(table, AT_NOON)
    fold_badges([removal()], world)
    assert (counted["views_folded"], counted["fold_lag_seconds"]) == (1, 0)
    fold_badges([removal(removed_at=AFTER_GRACE - ago) for ago in (20, 90, -5)], world)
    assert counted["fold_lag_seconds"] == 90
    put_items(table, MARK * 1000 + 1)
    world.clock.now = AFTER_GRACE + 300
    fold_badges([removal(mark=MARK + 300, removed_at=AFTER_GRACE + 305)], world)
    assert (counted["views_folded"], counted["fold_lag_seconds"]) == (2, 90)


# ---- stored by their age

MARKER = keys.marker(BADGE, int(NOON) + 300)
"""The marker of the window that begins at noon."""


def live(table: Table, badge_id: str = BADGE) -> list[str]:
    items = table.query(keys.partition(badge_id), first=keys.VIEW, last=keys.SUMMARY, limit=99)
    return [str(item["SK"]).removeprefix(keys.VIEW) for item in items if item["SK"] != keys.SUMMARY]


def test_a_young_view_is_an_item_of_its_own_and_its_window_has_a_marker(table: Table) -> None:
    one = view(AT_NOON + 1_500)
    assert store(table, one) == {}
    place = keys.view(BADGE, one.ulid)
    assert table.get(place) == place.item(ttl=int(NOON) + 300 + WINDOWS.retention)
    assert table.get(MARKER) == MARKER.item(badge=BADGE, ttl=int(NOON) + 300 + 600)
    assert summary(table) == {}


@pytest.mark.parametrize("age", [300.001, 600.0, 899.999])
def test_a_view_in_between_is_neither_stored_nor_counted_and_is_returned(
    table: Table, age: float
) -> None:
    """So no two deliveries of a message, however close, take both ways."""
    one = view()
    watched = FaultyTable(table)
    [(failed, reason)] = store(watched, one, now=NOON + age).items()
    assert failed == one
    assert isinstance(reason, InBetweenError)
    assert str(reason) == "the view is between young and old; deliver it again"
    assert (watched.put, watched.written) == ([], [])


def test_only_the_first_view_of_a_window_has_a_marker_put(table: Table) -> None:
    watched = FaultyTable(table)
    assert store(watched, view(first=False)) == {}
    assert [len(items) for items in watched.put] == [1]
    assert table.get(MARKER) is None
    assert shown(table) == 1


def test_a_batch_puts_each_marker_once_and_before_all_views(table: Table) -> None:
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


def test_a_view_whose_marker_is_not_stored_is_not_put(table: Table) -> None:
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
    table: Table, failure: Exception, place: int
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
def test_a_badge_that_can_not_be_counted_delays_no_other(table: Table, failure: Exception) -> None:
    bad = [view(AT_NOON, place, "bad", hot=True) for place in range(2)]
    good = [view(hot=True), view(AT_NOON - 900_000), view(badge_id="young")]

    step = refusing(keys.partition("bad"), failure=failure)
    faulty = FaultyTable(table, before_write=step)
    assert store(faulty, *bad, *good) == dict.fromkeys(bad, failure)
    assert [shown(table, name) for name in ("bad", BADGE, "young")] == [0, 2, 1]
    assert store(table, *bad) == {}
    assert shown(table, "bad") == 2
