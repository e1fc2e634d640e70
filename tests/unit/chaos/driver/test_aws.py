"""The handlers in a simulated world are right, and the checker finds what is wrong there."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from chalicelib.aws import resources
from chalicelib.storage.items import Key
from chalicelib.storage.writes import Put, Update
from chalicelib.views import keys
from chalicelib.views.view import new_ulid
from chaos.checker.history import Kind, Outcome
from chaos.checker.verdict import Flaw, check
from chaos.driver.aws import BADGES, DAY, OWNED, World, on_sqlite
from vumi.storage.database import Database
from vumi.storage.table import SqliteTable

PLAIN = BADGES[-1]


@pytest.fixture
def table(tmp_path: Path) -> Iterator[SqliteTable]:
    with closing(Database(tmp_path / "file")) as database:
        yield SqliteTable(database)


@pytest.fixture
def world(table: SqliteTable) -> Iterator[World]:
    yield World(table, random.Random(1))  # noqa: S311  of a seed
    resources.use(None)


def flaws(world: World) -> set[Flaw]:
    """What the checker finds once the world has come to rest."""
    world.come_to_rest()
    return {one.flaw for one in check(world.history()).violations}


def test_a_world_full_of_faults_counts_every_view_once(tmp_path: Path) -> None:
    world = on_sqlite(tmp_path, "unit", 300)
    assert check(world.history()).violations == ()
    assert world.taken >= 300
    for name in (
        *("THROTTLED", "CRASH_AFTER", "MEANWHILE", "removals read again", "removals a day late"),
        *("of them again", "of them days later", "of them in between", "counted at once"),
    ):
        assert world.happened[name] > 0, name
    assert any(one.kind is Kind.RESET for one in world.history())


def test_a_world_in_which_nothing_fails_is_right(world: World) -> None:
    for _ in range(3):
        world.visit(PLAIN, Kind.HIT)
    assert flaws(world) == set()


def test_the_checker_finds_a_view_that_no_queue_delivers(world: World) -> None:
    world.visit(PLAIN, Kind.HIT)
    for message in world.messages.values():
        message.done = True
    assert flaws(world) == {Flaw.UNEQUAL}


def test_the_checker_finds_a_view_that_nobody_took(world: World, table: SqliteTable) -> None:
    world.visit(PLAIN, Kind.HIT)
    pk, sk = keys.view(PLAIN, new_ulid(int(world.now * 1000)))
    table.write(Put({"PK": pk, "SK": sk}))
    assert Flaw.OVER in flaws(world)


def test_the_checker_finds_a_count_that_goes_down(world: World, table: SqliteTable) -> None:
    for _ in range(2):
        world.visit(PLAIN, Kind.HIT)
        world.deliver_some()
    world.visit(PLAIN, Kind.READ)
    table.write(Update(keys.summary(PLAIN), values={"watermark": int(world.now * 1000) + DAY}))
    assert Flaw.DOWN in flaws(world)


def test_the_checker_finds_a_view_of_an_earlier_life(world: World, table: SqliteTable) -> None:
    world.visit(OWNED[0], Kind.HIT)
    while not any(one.kind is Kind.RESET for one in world.history()):
        world.change_some()
    [ended] = {one.badge_id for one in world.history() if one.kind is Kind.RESET}
    table.write(Update(keys.summary(ended), values={"base": 1}))
    assert Flaw.OVER in flaws(world)


def test_a_frozen_badge_takes_no_view_and_its_answer_is_checked(world: World) -> None:
    frozen = OWNED[1]
    world.visit(frozen, Kind.HIT)
    world.freeze(frozen, frozen=True)
    world.visit(frozen, Kind.HIT)
    world.freeze(frozen, frozen=False)
    world.visit(frozen, Kind.HIT)
    outcomes = [one.outcome for one in world.history()]
    assert outcomes == [Outcome.ACKNOWLEDGED, Outcome.REFUSED, Outcome.ACKNOWLEDGED]
    assert flaws(world) == set()


def test_ttl_removes_only_what_is_expired(world: World, table: SqliteTable) -> None:
    world.visit(PLAIN, Kind.HIT)
    world.deliver_some()
    assert world.expired() == []
    world.now += DAY
    [marker] = world.expired()
    assert marker.sk == keys.WINDOW
    world.expire([marker])
    assert table.get(Key(*marker)) is None
