"""The simulated AWS of the fault harness: all is well there, and what is not goes red."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from chalicelib import resources
from chalicelib.views import keys
from chaos.aws import BADGES, Shard, ShardedWorld, on_sqlite
from chaos.checker import Flaw, check
from chaos.history import Kind
from local.database import Database
from local.table import SqliteTable
from tests import events


@pytest.fixture
def world(tmp_path: Path) -> Iterator[ShardedWorld]:
    with closing(Database(tmp_path / "file")) as database:
        yield ShardedWorld(SqliteTable(database), random.Random(1))  # noqa: S311  of a seed
        resources.use(None)


def test_a_world_full_of_faults_counts_every_view_once(tmp_path: Path) -> None:
    world = on_sqlite(tmp_path, "unit", 150)
    verdict = check(world.history())
    assert verdict.violations == ()
    assert world.taken >= 150
    assert verdict.strict > 0
    for name in ("shards split", "messages that came five times", "THROTTLED", "CRASH_AFTER"):
        assert world.happened[name] > 0, name


def test_a_child_is_not_read_before_its_parent_s_end() -> None:
    parent = Shard(range(10), records=[{}, {}])
    child, grandchild = Shard(range(5), parent), Shard(range(2), Shard(range(5), parent))
    assert parent.readable
    assert not child.readable
    parent.delivered = 2
    assert child.readable
    assert grandchild.readable


def test_the_checker_finds_a_view_that_no_queue_delivers(world: ShardedWorld) -> None:
    world.visit(BADGES[0], Kind.HIT)
    world.messages.clear()
    world.come_to_rest()
    assert {one.flaw for one in check(world.history()).violations} == {Flaw.UNEQUAL}


def test_the_checker_finds_a_removal_that_is_no_view(world: ShardedWorld) -> None:
    """The stream carries the removal of a view by TTL that nobody took."""
    world.visit(BADGES[0], Kind.HIT)
    never_taken = keys.view(BADGES[0], "01ARZ3NDEKTSV4RRFFQ69G5FAV")
    world.disturb(events.removal(0, *never_taken), BADGES[0])
    world.come_to_rest()
    assert Flaw.OVER in {one.flaw for one in check(world.history()).violations}
