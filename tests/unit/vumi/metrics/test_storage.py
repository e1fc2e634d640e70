"""The metrics of the file: queues, folds and sizes, also of a file that can't be read."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from chalicelib.storage.ports import Message
from simulation.clocks import NOON, Clock
from tests.unit.vumi.metrics.reading import samples
from vumi.metrics import storage
from vumi.storage.database import Database
from vumi.storage.queue import SqliteQueue
from vumi.storage.table import SqliteTable
from vumi.workers.deliveries import FOLDS, ChangeDelivery
from vumi.workers.expiry import remove_expired

VISIBILITY = 30.0


class World:
    """A file with queues, and its metrics."""

    def __init__(self, database: Database) -> None:
        self.database, self.clock = database, Clock(NOON)

    def read(self) -> dict[str, float]:
        return samples(storage.read(self.database, ("views", "deliveries"), self.clock))

    def queue(self, name: str) -> SqliteQueue:
        return SqliteQueue(
            self.database, name, self.clock, visibility_timeout=VISIBILITY, max_receives=1
        )

    def of_views(self) -> tuple[float, float, float]:
        """Return the messages, the age of the oldest and the delay of the queue of views."""
        names = ("messages", "oldest_message_age_seconds", "overdue_seconds")
        found = self.read()
        messages, age, overdue = (found[f'vumi_queue_{one}{{queue="views"}}'] for one in names)
        return messages, age, overdue


@pytest.fixture
def world(database: Database) -> World:
    return World(database)


def test_an_empty_file_has_all_metrics(world: World) -> None:
    found, path = world.read(), world.database.path
    assert found.pop("vumi_disk_free_bytes") > 0
    assert found.pop("vumi_file_size_bytes") == path.stat().st_size
    assert found.pop("vumi_wal_size_bytes") == path.with_name(f"{path.name}-wal").stat().st_size
    assert found.pop("vumi_storage_up") == 1
    names = (
        "vumi_queue_messages",
        "vumi_queue_oldest_message_age_seconds",
        "vumi_queue_overdue_seconds",
        "vumi_dead_letters",
    )
    of_queues = {f'{name}{{queue="{one}"}}' for name in names for one in ("views", "deliveries")}
    assert found == dict.fromkeys({*of_queues, "vumi_fold_lag_seconds"}, 0)


def test_a_queue_has_its_messages_and_the_age_of_the_oldest(world: World) -> None:
    views = world.queue("views")
    views.send_all([Message("delayed", 100), Message("now")])
    world.clock.now += 60
    views.send("later")
    world.clock.now += 20
    assert world.of_views() == (3, 80, 80)
    assert world.read()['vumi_queue_messages{queue="deliveries"}'] == 0


def test_a_message_that_is_being_handled_or_delayed_is_not_overdue(world: World) -> None:
    views = world.queue("views")
    views.send("one")
    views.send("two", delay=50)
    views.receive(1)
    world.clock.now += 29
    assert world.of_views() == (2, 29, 0)
    world.clock.now += 5
    assert world.of_views() == (2, 34, 4)


def test_dead_letters_are_counted_for_their_queue_alone(world: World) -> None:
    mine = world.queue("event-mine")
    mine.send_all([Message("one"), Message("two")])
    mine.receive(9)
    world.clock.now += VISIBILITY
    mine.receive(9)
    mine.send("three")
    found = world.read()
    assert found['vumi_dead_letters{queue="event-mine"}'] == 2
    assert found['vumi_queue_messages{queue="event-mine"}'] == 1
    assert found['vumi_dead_letters{queue="views"}'] == 0
    assert not any("dead-letters" in name for name in found)


def marker(table: SqliteTable, badge: str, expires: int) -> None:
    table.put_all([{"PK": f"WINDOW#1#{badge}", "SK": "WINDOW", "badge": badge, "ttl": expires}])


def test_the_lag_of_folds_is_that_of_the_oldest_marker_until_it_is_folded(
    world: World, table: SqliteTable
) -> None:
    def lag() -> float:
        return world.read()["vumi_fold_lag_seconds"]

    database, now = world.database, int(NOON)
    fold, _ = (
        ChangeDelivery(database, name, lambda changes: changes[1:])
        for name in (FOLDS, "a consumer that keeps all changes")
    )
    table.put_all([{"PK": "another", "SK": "item", "ttl": now - 900}])
    marker(table, "not-due", now + 5)
    assert lag() == 0
    marker(table, "b", now - 50)
    marker(table, "a", now - 70)
    assert lag() == 70
    remove_expired(database, world.queue("views"), world.clock, lambda: None)
    assert lag() == 70
    for left in (50, 0):
        fold.step()
        assert lag() == left


def test_the_queries_use_indexes_alone(path: Path) -> None:
    """A scan of all items or messages would slow visitors."""
    statements: list[str] = []

    class Watched(Database):
        def read(self, sql: str, arguments: Sequence[object] = ()) -> list[tuple[Any, ...]]:
            plan = super().read(f"EXPLAIN QUERY PLAN {sql}", arguments)
            statements.extend(str(row[-1]) for row in plan)
            return super().read(sql, arguments)

    with closing(Watched(path)) as database:
        World(database).read()
    scans = [line for line in statements if line.startswith("SCAN")]
    assert [line for line in scans if "messages" in line] == [
        "SCAN messages USING COVERING INDEX deliverable"
    ]
    assert not [line for line in scans if "items" in line or "changes" in line]


def test_a_file_that_can_not_be_read_still_has_its_sizes(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL + 1)
    world.database.write(lambda connection: connection.execute("DROP TABLE messages"))
    found = world.read()
    sizes = {"vumi_file_size_bytes", "vumi_wal_size_bytes", "vumi_disk_free_bytes"}
    assert found.keys() == {"vumi_storage_up", *sizes}
    assert found["vumi_storage_up"] == 0


def test_a_file_that_was_found_corrupt_is_not_up(path: Path) -> None:
    with closing(Database(path)) as database:
        database.corrupt = "as SQLite says"
        assert World(database).read()["vumi_storage_up"] == 0
