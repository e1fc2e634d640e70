"""The size of the file by day, its vacuum, and the removal of unseen badges."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from chalicelib.counting import badge_count, keys
from chalicelib.settings import Settings
from chalicelib.storage.items import Value
from chalicelib.storage.writes import Put
from chalicelib.ulids import new_ulid
from chalicelib.units import to_milliseconds
from simulation.clocks import NOON, Clock
from simulation.standalone import standalone
from simulation.views import AT_NOON, DAY, WINDOWS, put_summary, shown, ulid, view
from tests.unit.vumi.commands import Vumi
from vumi.cli.options import Invocation
from vumi.engine import VIEWS_QUEUE
from vumi.storage.database import Database
from vumi.storage.queue import DEAD_LETTERS, SqliteQueue
from vumi.storage.table import SqliteTable
from vumi.storage.upkeep import (
    FREE_PAGES,
    IDLE_SECONDS,
    KEPT_DAYS,
    SAMPLE_SECONDS,
    STEP_BADGES,
    VACUUM_PAGES,
    Pruning,
    UnseenBadge,
    measure,
    read_sizes,
    sample_size,
    vacuum,
)
from vumi.workers.expiry import remove_expired
from vumi.workers.views import CommitBuffer, ViewWorker

LONG_AGO = NOON - 200 * DAY
SEEN_DAY = "2025-08-26"
OLD = "octocat/old"
OLD_VIEWS = 3


def put_old(table: SqliteTable, badge_id: str = OLD, **other: Any) -> None:
    """Put a badge with three views, the last 200 days ago, and one finished day."""
    summary: dict[str, Value] = {
        "count": OLD_VIEWS,
        "watermark": to_milliseconds(LONG_AGO),
        "today": {"day": SEEN_DAY, "h12": 1},
        "version": 2,
        "created": int(LONG_AGO) - DAY,
    }
    put_summary(table, badge_id, **(summary | other))
    pk, sk = keys.day(badge_id, "2025-08-25")
    table.write(Put({"PK": pk, "SK": sk, "views": 2, "h03": 2, "version": 1}))


def make(database: Database) -> Pruning:
    queue = SqliteQueue(database, VIEWS_QUEUE, lambda: NOON)
    return Pruning(database, queue, NOON - 180 * DAY, below=10)


def run(pruning: Pruning) -> list[UnseenBadge]:
    return list(pruning.prune(lambda: 0.0, lambda _: None))


def test_an_unseen_badge_goes_with_its_history_alone(
    database: Database, table: SqliteTable
) -> None:
    put_old(table)
    put_old(table, "octocat/new", watermark=AT_NOON)
    pruning = make(database)
    [found] = pruning.find()
    assert (found.partition, found.shown, found.seen) == (keys.partition(OLD), 3, SEEN_DAY)
    rows = table.query(keys.partition(OLD), limit=9)
    stored = sum(len(json.dumps(row)) for row in rows)
    assert stored / 2 < found.bytes < stored
    assert run(pruning) == [found]
    assert table.query(keys.partition(OLD), limit=1) == []
    assert len(table.query(keys.partition("octocat/new"), limit=9)) == 2
    assert run(pruning) == []


STATES: list[dict[str, Any]] = [
    {"count": 10},
    {"base": 7},
    {"watermark": AT_NOON - 179 * DAY * 1000},
    {"today": {"day": "2026-03-14", "h01": 1}},
    {"created": int(NOON)},
    {"frozen": 1},
    {"alias": "octocat/other"},
    {"deleted": "operator"},
]


@pytest.mark.parametrize("other", STATES, ids=str)
def test_a_badge_stays_if_it_is_seen_or_viewed_or_set(
    database: Database, table: SqliteTable, other: dict[str, Any]
) -> None:
    put_old(table, **other)
    assert [*make(database).find()] == run(make(database)) == []


@pytest.mark.parametrize(
    "sort", [keys.OWNER, keys.MILESTONES, "TRAFFIC#2026-03", keys.VIEW + ulid()]
)
def test_a_badge_with_anything_but_its_days_stays(
    database: Database, table: SqliteTable, sort: str
) -> None:
    put_old(table)
    table.write(Put({"PK": keys.partition(OLD), "SK": sort}))
    assert run(make(database)) == []


@pytest.mark.parametrize("queue", [VIEWS_QUEUE, VIEWS_QUEUE + DEAD_LETTERS])
def test_a_badge_with_a_view_in_the_queue_stays(
    database: Database, table: SqliteTable, queue: str
) -> None:
    put_old(table)
    sent = SqliteQueue(database, queue, lambda: NOON)
    sent.send(view(badge_id=OLD).to_message())
    sent.send("malformed")
    assert run(make(database)) == []
    database.write(lambda connection: connection.execute("DELETE FROM messages"))
    assert len(run(make(database))) == 1


def test_steps_are_small_and_leave_time_for_others(database: Database, table: SqliteTable) -> None:
    badges = STEP_BADGES * 2 + 1
    for place in range(badges):
        put_old(table, f"b/{place:03}")
    ticks, pauses = iter(range(100)), list[float]()
    assert len([*make(database).prune(lambda: next(ticks), pauses.append)]) == badges
    assert pauses == [3, 3, 3]


def test_a_view_during_a_step_begins_a_new_badge(path: Path) -> None:
    """It waits for the step, so its visitor does not see a number that falls."""
    served, pruned = Database(path), Database(path)
    table = SqliteTable(served)
    buffer = CommitBuffer(SqliteQueue(served, VIEWS_QUEUE, lambda: NOON))
    worker = ViewWorker(buffer, standalone(served, buffer, lambda: NOON, Settings()))
    answers: list[int] = []
    put_old(table)

    def look() -> None:
        count = badge_count.read(table, OLD)
        buffer.send(count.view(WINDOWS, NOON))
        answers.append(count.shown)

    visitor = Thread(target=partial(served.in_one_commit, partial(worker.commit, look)))

    class VisitedQueue(SqliteQueue):
        def bodies(self) -> list[str]:
            """Let a visitor come after the badge was found, and before it is removed."""
            visitor.start()
            visitor.join(0.2)
            return super().bodies()

    queue = VisitedQueue(pruned, VIEWS_QUEUE, lambda: NOON)
    assert len(run(replace(make(pruned), views_queue=queue))) == 1
    visitor.join()
    assert (answers, shown(table, OLD)) == ([0], 1)
    served.close()
    pruned.close()


def test_the_command_shows_a_table_and_prunes_when_it_may(
    vumi: Vumi, path: Path, table: SqliteTable
) -> None:
    put_old(table)
    put_old(table, "octocat/older", today={"day": "2025-01-01"}, watermark=0, created=0)
    vumi.invocation = Invocation({"DATA": str(path.parent)}, lambda: NOON)
    words = ["prune", "--unseen", "180d", "--below", "10"]
    [found] = vumi.json(*words, "--dry-run")
    assert found.pop("bytes") > 0
    assert found == {"badges": 2, "views": 6, "oldest": "2025-01-01"}
    assert vumi(*words) == 2
    assert "give --yes" in vumi.err
    assert shown(table, OLD) == OLD_VIEWS
    assert vumi(*words, "--yes") == 0
    assert "Pruned 2 badges." in vumi.out
    assert shown(table, OLD) == 0
    assert vumi("prune", "--unseen", "half a year", "--below", "10") == 2
    assert "give days like 180d" in vumi.err


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
    queue = SqliteQueue(database, "views", clock)
    while remove_expired(database, queue, clock, lambda: None) == 0:
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
