"""The size of the file is sampled by day, and old days are forgotten."""

from __future__ import annotations

from chalicelib.counting import keys
from chalicelib.ulids import new_ulid
from simulation.clocks import NOON, Clock
from simulation.views import AT_NOON, DAY
from vumi.storage.database import Database
from vumi.storage.file_sizes import (
    FREE_PAGES,
    IDLE_SECONDS,
    KEPT_DAYS,
    SAMPLE_SECONDS,
    VACUUM_PAGES,
    measure,
    read_sizes,
    sample_size,
    vacuum,
)
from vumi.storage.queue import SqliteQueue
from vumi.storage.table import SqliteTable
from vumi.workers.expiry import Expiry


def test_a_day_has_the_last_sample_of_it(database: Database) -> None:
    clock = Clock(NOON)
    assert sample_size(database, clock) == SAMPLE_SECONDS
    database.write(lambda connection: connection.execute("UPDATE file_sizes SET bytes = 1"))
    clock.now += 3_600
    sample_size(database, clock)
    [(day, size)] = read_sizes(database.read, 10)
    assert (day, size > 1) == ("2026-03-14", True)


def test_the_size_includes_the_wal(database: Database) -> None:
    wal = database.path.with_name(database.path.name + "-wal")
    assert measure(database.path) == database.path.stat().st_size + wal.stat().st_size


def test_the_latest_days_are_read_the_oldest_first(database: Database) -> None:
    clock = Clock(NOON)
    for _ in range(3):
        sample_size(database, clock)
        clock.now += DAY
    days = [day for day, _ in read_sizes(database.read, 2)]
    assert days == ["2026-03-15", "2026-03-16"]


def test_days_are_forgotten_after_more_than_a_year(database: Database) -> None:
    for later in (0, KEPT_DAYS * DAY, (KEPT_DAYS + 1) * DAY):
        sample_size(database, Clock(NOON + later))
    assert len(read_sizes(database.read, 10)) == 2


def pages(database: Database) -> tuple[int, int]:
    [(free, pages)] = database.read(
        "SELECT freelist_count, page_count FROM pragma_freelist_count, pragma_page_count"
    )
    return free, pages


def test_the_file_shrinks_in_small_steps_after_its_views_expired(
    database: Database, table: SqliteTable
) -> None:
    clock = Clock(NOON)
    views = [keys.view(f"badge/{place % 9}", new_ulid(AT_NOON + place)) for place in range(150_000)]
    table.put_all([{"PK": pk, "SK": sk, "ttl": int(NOON)} for pk, sk in views])
    table.put_all(
        [
            {"PK": f"USER#badge/{place}", "SK": "VIEWS", "watermark": AT_NOON + 999_999}
            for place in range(9)
        ]
    )
    assert vacuum(database) == IDLE_SECONDS
    _, most = pages(database)

    clock.now += 1
    expiry = Expiry(database, SqliteQueue(database, "views", clock), clock, lambda: None)
    while expiry.step() == 0:
        pass
    free, all_pages = pages(database)
    assert all_pages == most
    assert free > FREE_PAGES

    assert vacuum(database) < IDLE_SECONDS
    assert pages(database) == (free - VACUUM_PAGES, most - VACUUM_PAGES)
    while vacuum(database) < IDLE_SECONDS:
        pass
    assert pages(database)[0] <= FREE_PAGES
    database.write(lambda connection: connection.execute("UPDATE clock SET highest = 1"))
    assert database.read("PRAGMA wal_checkpoint(TRUNCATE)")
    assert measure(database.path) < most * 4_096 * 0.6
