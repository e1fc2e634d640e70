"""The most viewed ids of a file; `test_overview.py` has their numbers after any history."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Thread
from typing import Any

import pytest

from chalicelib.history.routes import TopQuery
from chalicelib.http import tokens
from chalicelib.http.errors import BadRequestError
from chalicelib.owners import changing, claiming, finding
from chalicelib.owners.changing import BadgeChange
from chalicelib.storage.errors import UnavailableError
from simulation.clocks import NOON
from simulation.views import AT_NOON, DAY, WINDOWS, fold, put_summary, put_views
from vumi.operate.admin.most_viewed import MAX_IDS, MAX_READ, MostViewed
from vumi.storage.database import Database
from vumi.storage.table import SqliteTable

SITE = "me.example/"
SECRET_DIGEST = tokens.digest("a" * 40)


def top(database: Database, prefix: str = SITE, days: int = 30, limit: int = 10) -> list[Any]:
    """Return the id, the count and the views of each."""
    query = TopQuery(prefix, days, limit)
    reader = MostViewed(database.read, (), lambda badge_id: "private" not in badge_id)
    found = reader.read(query, NOON)
    return [(one.badge_id.removeprefix(SITE), one.count, one.views) for one in found]


def put(table: SqliteTable, badge_id: str, *days_ago: int) -> None:
    put_views(table, *(AT_NOON - DAY * 1000 * days for days in days_ago), badge_id=badge_id)


def rename(table: SqliteTable, badge_id: str, name: str) -> None:
    badge = finding.look_up(table, badge_id)
    changing.change(table, badge, BadgeChange(name=name), NOON)


def test_the_most_viewed_come_first_and_those_without_views_are_left_out(
    database: Database, table: SqliteTable
) -> None:
    put_summary(table, SITE + "b", base=100)
    for badge_id, *days in (("c", 0, 0), ("b", 29, 1, 30), ("a", 2), ("old", 40), ("private", 0)):
        put(table, SITE + str(badge_id), *map(int, days))
    for badge_id in ("me.example", "me.example.org/", "me.exampld/z", "me.example0"):
        put(table, badge_id, 0, 0, 0)
    fold(table, NOON - DAY / 2, SITE + "b")
    everything = [("b", 103, 2), ("c", 2, 2), ("a", 1, 1)]
    assert top(database) == everything
    assert top(database, limit=2) == everything[:2]
    assert top(database, days=1) == [("c", 2, 2)]
    assert top(database, f"{SITE}b") == everything[:1]


def test_the_bytes_of_a_prefix_are_compared(database: Database, table: SqliteTable) -> None:
    for badge_id in ("é", "é\U0010ffff\U0010ffff", "êa", "e", "É"):
        put(table, badge_id, 0)
    assert [one[0] for one in top(database, "é")] == ["é", "é\U0010ffff\U0010ffff"]


def test_a_renamed_badge_has_its_present_name_alone_and_a_deleted_one_has_none(
    database: Database, table: SqliteTable
) -> None:
    for badge_id in ("other/moved", f"{SITE}left", f"{SITE}deleted"):
        claiming.claim(table, badge_id, 0, NOON, SECRET_DIGEST)
        put(table, badge_id, 0)
    rename(table, "other/moved", f"{SITE}between")
    rename(table, "other/moved", f"{SITE}here")
    rename(table, f"{SITE}left", "other/left")
    changing.delete(table, finding.look_up(table, f"{SITE}deleted"), NOON, WINDOWS.retention)
    assert top(database) == [("here", 1, 1)]
    assert top(database, "other/") == [("other/left", 1, 1)]


def test_a_prefix_of_too_many_ids_is_refused(database: Database, table: SqliteTable) -> None:
    table.put_all([{"PK": f"USER#a{at}", "SK": "VIEWS", "count": 1} for at in range(MAX_IDS)])
    most_days = MAX_READ // MAX_IDS
    assert top(database, "a", most_days) == []
    with pytest.raises(BadRequestError, match="fewer days"):
        top(database, "a", most_days + 1)
    put_summary(table, "aa")
    with pytest.raises(BadRequestError, match="more than 10,000 ids"):
        top(database, "a")


# ---- the reader


class Stopwatch:
    """A clock on which each query takes its time."""

    def __init__(self, database: Database) -> None:
        self.database, self.now = database, 0.0

    def __call__(self) -> float:
        return self.now

    def read(self, sql: str, arguments: Sequence[object]) -> list[tuple[Any, ...]]:
        self.now += 0.25
        return self.database.read(sql, arguments)


@pytest.fixture
def stopwatch(database: Database) -> Stopwatch:
    return Stopwatch(database)


@pytest.fixture
def reader(stopwatch: Stopwatch) -> MostViewed:
    return MostViewed(stopwatch.read, ("me.example/*", "b"), lambda _: True, stopwatch)


def test_a_prefix_is_public_if_a_pattern_matches_it(reader: MostViewed) -> None:
    prefixes = (SITE, f"{SITE}blog/", "b", "bc", "me.example")
    assert [one for one in prefixes if reader.is_public(one)] == [SITE, f"{SITE}blog/", "b"]


def test_a_result_serves_for_ten_times_the_time_that_it_took(
    reader: MostViewed, stopwatch: Stopwatch, table: SqliteTable
) -> None:
    query = TopQuery(SITE, 30, 10)
    assert reader.read(query, NOON) == []  # a query of 0.25 s
    put(table, f"{SITE}a", 0)
    stopwatch.now += 2.4
    assert reader.read(query, NOON) == []
    assert len(reader.read(query._replace(limit=9), NOON)) == 1
    stopwatch.now += 0.1
    assert len(reader.read(query, NOON)) == 1


def test_the_badges_of_a_result_are_counted_again_so_that_no_number_falls(
    reader: MostViewed, stopwatch: Stopwatch, table: SqliteTable
) -> None:
    query = TopQuery(SITE, 30, 10)
    for badge_id in ("a", "b"):
        put(table, SITE + badge_id, 0)
    assert [one.badge_id for one in reader.read(query, NOON)] == [f"{SITE}a", f"{SITE}b"]
    stopwatch.now += 0.1
    put(table, f"{SITE}b", 1)
    put(table, f"{SITE}bc", 0)
    found = reader.read(query, NOON)
    assert [(one.badge_id, one.count, one.views) for one in found] == [
        (f"{SITE}b", 2, 2),
        (f"{SITE}a", 1, 1),
    ]


def test_a_request_waits_for_the_read_of_another_for_some_time(database: Database) -> None:
    refused: list[object] = []

    def read(sql: str, arguments: Sequence[object]) -> list[tuple[Any, ...]]:
        other = Thread(target=ask)
        other.start()
        other.join()
        return database.read(sql, arguments)

    def ask() -> None:
        with pytest.raises(UnavailableError) as refusal:
            reader.read(TopQuery("b", 30, 10), NOON)
        refused.append(refusal)

    reader = MostViewed(read, (), lambda _: True, wait_seconds=0)
    assert reader.read(TopQuery(SITE, 30, 10), NOON) == []
    assert len(refused) == 1
