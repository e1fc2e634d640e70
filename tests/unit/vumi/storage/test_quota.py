"""The number of badges of a file, which is kept between two counts."""

from __future__ import annotations

import pytest

from simulation.views import put_summary
from vumi.storage.badges import count_badges
from vumi.storage.database import Database
from vumi.storage.quota import COUNT_SECONDS, FULL_SECONDS, BadgeQuota
from vumi.storage.table import SqliteTable


class Counted:
    """A quota of three badges over a file, at a time that the test sets."""

    def __init__(self, database: Database) -> None:
        self.now, self.counts, self.refused = 5.0, 0, 0
        self.database = database
        self.quota = BadgeQuota(3, self.count, database.in_one_commit, lambda: self.now)
        self.quota.on_refusal = self.refuse

    def count(self, most: int) -> int:
        self.counts += 1
        self.now += 2
        return count_badges(self.database.read, most)

    def refuse(self) -> None:
        self.refused += 1


@pytest.fixture
def counted(database: Database, table: SqliteTable) -> Counted:
    put_summary(table, "a")
    counted = Counted(database)
    counted.quota.step()
    return counted


def test_new_badges_are_added_to_those_of_the_start(counted: Counted) -> None:
    assert counted.quota.left == 2
    assert [counted.quota.admit() for _ in range(3)] == [True, True, False]
    assert counted.quota.left == 0
    assert counted.counts == 1


def test_badges_are_counted_again_and_a_refusal_asks_for_that(
    counted: Counted, table: SqliteTable
) -> None:
    """The two that were admitted were never stored, as if their commit had failed."""
    for _ in range(4):
        counted.quota.admit()
    assert counted.refused == 0, "counted just now"
    assert counted.quota.step() == COUNT_SECONDS
    assert counted.counts == 1
    counted.now += 50 * 2
    assert FULL_SECONDS < 50 * 2
    counted.quota.admit()
    assert counted.refused == 1
    put_summary(table, "b")
    counted.quota.step()
    assert (counted.counts, counted.quota.badges) == (2, 2)


def test_a_badge_that_comes_during_a_count_is_not_forgotten(
    counted: Counted, table: SqliteTable
) -> None:
    def count(most: int) -> int:
        found = count_badges(counted.database.read, most)
        assert quota.admit()
        put_summary(table, "b")
        return found

    quota = BadgeQuota(3, count, counted.database.in_one_commit, lambda: counted.now)
    quota.step()
    assert quota.badges == 2
