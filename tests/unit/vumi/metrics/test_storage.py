"""The metrics of the file: queues, folds and sizes, also of a file that can't be read."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from chalicelib.storage.ports import Message
from simulation.clocks import NOON, Clock
from tests.unit.vumi.metrics.reading import samples
from vumi.metrics.storage import StorageMetrics
from vumi.storage.database import Database
from vumi.storage.queue import SqliteQueue
from vumi.storage.table import FOLDS, ChangeLog, SqliteTable, remove_expired

VISIBILITY = 30.0


@pytest.fixture
def clock() -> Clock:
    return Clock(NOON)


def read(database: Database, path: Path, clock: Clock) -> dict[str, float]:
    return samples(StorageMetrics(database, path, ("views", "timers"), clock).families())


def queue(database: Database, clock: Clock, name: str) -> SqliteQueue:
    return SqliteQueue(database, name, clock, visibility_timeout=VISIBILITY, max_receives=1)


def test_an_empty_file_has_all_metrics(database: Database, path: Path, clock: Clock) -> None:
    found = read(database, path, clock)
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
    of_queues = {f'{name}{{queue="{one}"}}' for name in names for one in ("views", "timers")}
    assert found == dict.fromkeys({*of_queues, "vumi_fold_lag_seconds"}, 0)


def test_a_queue_has_its_messages_and_the_age_of_the_oldest(
    database: Database, path: Path, clock: Clock
) -> None:
    views = queue(database, clock, "views")
    views.send_all([Message("delayed", 100), Message("now")])
    clock.now += 60
    views.send("later")
    clock.now += 20
    found = read(database, path, clock)
    assert found['vumi_queue_messages{queue="views"}'] == 3
    assert found['vumi_queue_oldest_message_age_seconds{queue="views"}'] == 80
    assert found['vumi_queue_overdue_seconds{queue="views"}'] == 80
    assert found['vumi_queue_messages{queue="timers"}'] == 0


def test_a_message_that_is_being_handled_or_delayed_is_not_overdue(
    database: Database, path: Path, clock: Clock
) -> None:
    views = queue(database, clock, "views")
    views.send("one")
    views.send("two", delay=50)
    views.receive(1)
    clock.now += 29
    found = read(database, path, clock)
    assert found['vumi_queue_overdue_seconds{queue="views"}'] == 0
    assert found['vumi_queue_oldest_message_age_seconds{queue="views"}'] == 29
    clock.now += 5
    assert read(database, path, clock)['vumi_queue_overdue_seconds{queue="views"}'] == 4


def test_dead_letters_are_counted_for_their_queue_alone(
    database: Database, path: Path, clock: Clock
) -> None:
    mine = queue(database, clock, "event-mine")
    mine.send_all([Message("one"), Message("two")])
    mine.receive(9)
    clock.now += VISIBILITY
    mine.receive(9)
    mine.send("three")
    found = read(database, path, clock)
    assert found['vumi_dead_letters{queue="event-mine"}'] == 2
    assert found['vumi_queue_messages{queue="event-mine"}'] == 1
    assert found['vumi_dead_letters{queue="views"}'] == 0
    assert not any("dead-letters" in name for name in found)


def marker(table: SqliteTable, badge: str, expires: int) -> None:
    table.put_all([{"PK": f"WINDOW#1#{badge}", "SK": "WINDOW", "badge": badge, "ttl": expires}])


def test_the_lag_of_folds_is_that_of_the_oldest_marker_that_is_due(
    database: Database, table: SqliteTable, path: Path, clock: Clock
) -> None:
    now = int(NOON)
    table.put_all([{"PK": "USER#a", "SK": "VIEW#1", "ttl": now - 900}])
    marker(table, "not-due", now + 5)
    assert read(database, path, clock)["vumi_fold_lag_seconds"] == 0
    marker(table, "b", now - 40)
    marker(table, "c", now - 70)
    assert read(database, path, clock)["vumi_fold_lag_seconds"] == 70


def test_a_removed_marker_counts_until_it_is_folded(
    database: Database, table: SqliteTable, path: Path, clock: Clock
) -> None:
    log, _ = ChangeLog(database, FOLDS), ChangeLog(database, "a consumer that keeps all changes")
    marker(table, "a", int(NOON) - 70)
    marker(table, "b", int(NOON) - 50)
    database.write(
        lambda connection: remove_expired(connection, NOON, 9, lambda _: True, lambda _: True)
    )
    assert read(database, path, clock)["vumi_fold_lag_seconds"] == 70
    first, second = log.read(9)
    log.checkpoint(first.sequence)
    assert read(database, path, clock)["vumi_fold_lag_seconds"] == 50
    log.checkpoint(second.sequence)
    assert read(database, path, clock)["vumi_fold_lag_seconds"] == 0


def test_the_queries_use_indexes_alone(database: Database, clock: Clock, path: Path) -> None:
    """A scan of all items or messages would slow visitors."""
    statements: list[str] = []
    reader_of = database.read

    class Watched(Database):
        def __init__(self) -> None:
            pass

        is_corrupt = False

        def read(self, sql: str, arguments: object = ()) -> list[tuple[object, ...]]:
            statements.extend(
                str(row[-1])
                for row in reader_of(f"EXPLAIN QUERY PLAN {sql}", arguments)  # type: ignore[arg-type]
            )
            return reader_of(sql, arguments)  # type: ignore[arg-type]

    list(StorageMetrics(Watched(), path, ("views",), clock).families())
    scans = [line for line in statements if line.startswith("SCAN")]
    assert [line for line in scans if "messages" in line] == [
        "SCAN messages USING COVERING INDEX deliverable"
    ]
    assert not [line for line in scans if "items" in line or "changes" in line]


def test_a_file_that_can_not_be_read_still_has_its_sizes(
    database: Database, path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL + 1)
    database.write(lambda connection: connection.execute("DROP TABLE messages"))
    found = read(database, path, clock)
    assert found.keys() == {
        "vumi_storage_up",
        "vumi_file_size_bytes",
        "vumi_wal_size_bytes",
        "vumi_disk_free_bytes",
    }
    assert found["vumi_storage_up"] == 0


def test_a_file_that_was_found_corrupt_is_not_up(path: Path, clock: Clock) -> None:
    class Broken(Database):
        is_corrupt = True

    database = Broken(path)
    try:
        assert read(database, path, clock)["vumi_storage_up"] == 0
    finally:
        database.close()
