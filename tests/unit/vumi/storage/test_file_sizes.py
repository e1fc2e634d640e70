"""The size of the file is sampled by day, and old days are forgotten."""

from __future__ import annotations

from simulation.clocks import NOON, Clock
from simulation.views import DAY
from vumi.storage.database import Database
from vumi.storage.file_sizes import KEPT_DAYS, SAMPLE_SECONDS, FileSizes, measure, read_sizes


def test_a_day_has_the_last_sample_of_it(database: Database) -> None:
    clock = Clock(NOON)
    sizes = FileSizes(database, clock)
    assert sizes.step() == SAMPLE_SECONDS
    database.write(lambda connection: connection.execute("UPDATE file_sizes SET bytes = 1"))
    clock.now += 3_600
    sizes.step()
    [sample] = read_sizes(database.read, 10)
    assert (sample.day, sample.size > 1) == ("2026-03-14", True)


def test_the_size_includes_the_wal(database: Database) -> None:
    wal = database.path.with_name(database.path.name + "-wal")
    assert measure(database.path) == database.path.stat().st_size + wal.stat().st_size


def test_the_latest_days_are_read_the_oldest_first(database: Database) -> None:
    clock = Clock(NOON)
    for _ in range(3):
        FileSizes(database, clock).step()
        clock.now += DAY
    days = [sample.day for sample in read_sizes(database.read, 2)]
    assert days == ["2026-03-15", "2026-03-16"]


def test_days_are_forgotten_after_more_than_a_year(database: Database) -> None:
    clock = Clock(NOON)
    sizes = FileSizes(database, clock)
    for later in (0, KEPT_DAYS * DAY, (KEPT_DAYS + 1) * DAY):
        clock.now = NOON + later
        sizes.step()
    assert len(read_sizes(database.read, 10)) == 2
