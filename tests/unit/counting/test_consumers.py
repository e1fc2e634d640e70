"""Views that are stored and badges that are folded, over a real table."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from chalicelib.counting import keys
from chalicelib.counting.consumers import MarkerRemoval, fold_badges, store_views
from chalicelib.counting.view import View
from chalicelib.storage.errors import StorageRefusedError, UnavailableError
from chalicelib.storage.writes import Write
from simulation.clocks import NOON, Clock
from simulation.logs import logged_events
from simulation.resources import GivenResources
from simulation.tables import FaultyTable, refusing
from simulation.views import AT_NOON, BADGE, shown, summary, ulid, view
from simulation.views import put_views as put_items
from vumi.storage.table import SqliteTable

MARK = int(NOON) + 300
"""The end of the window that begins at noon, in seconds."""
AFTER_GRACE = MARK + 600.0


@dataclass
class World(GivenResources):
    """Resources whose clock a test sets."""

    clock: Clock = field(default_factory=Clock)


@pytest.fixture
def world(table: SqliteTable) -> World:
    return World(table=table)


def removal(badge_id: str = BADGE, mark: int = MARK, removed_at: float = 0) -> MarkerRemoval:
    return MarkerRemoval(badge_id, mark, removed_at)


def test_views_are_put_counted_or_returned_by_their_age(
    world: World, table: SqliteTable, counted: dict[str, int], caplog: pytest.LogCaptureFixture
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
    world: World, table: SqliteTable, counted: dict[str, int]
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
    table: SqliteTable,
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
    world: World, table: SqliteTable, counted: dict[str, int]
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
    world: World, table: SqliteTable, counted: dict[str, int]
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
    table: SqliteTable,
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
    world: World, table: SqliteTable, counted: dict[str, int], caplog: pytest.LogCaptureFixture
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
    world: World, table: SqliteTable, counted: dict[str, int]
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
    world: World, table: SqliteTable, counted: dict[str, int]
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
    world: World, table: SqliteTable, counted: dict[str, int]
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
