"""The bans in the file, which other processes change while the server runs."""

from __future__ import annotations

from contextlib import closing

import pytest

from chalicelib.counting import bans
from chalicelib.counting.bans import Ban
from vumi.storage.bans import FileBans
from vumi.storage.database import Database
from vumi.storage.table import SqliteTable

BAN = Ban("a/*", "spam", "a test", 0)


@pytest.fixture
def kept(database: Database, table: SqliteTable) -> FileBans:
    kept = FileBans(database, table)
    database.in_one_commit(kept.refresh)
    return kept


def covers(database: Database, kept: FileBans) -> bool:
    """Return whether a ban holds in the next commit."""
    database.in_one_commit(kept.refresh)
    return kept.cover("a/b")


def test_a_ban_of_another_process_holds_in_the_next_commit(
    database: Database, kept: FileBans
) -> None:
    with closing(Database(database.path)) as other:
        table = SqliteTable(other)
        bans.put(table, BAN)
        assert covers(database, kept)
        assert bans.lift(table, BAN.pattern)
        assert not covers(database, kept)


def test_a_ban_of_this_process_holds_once_it_is_committed(
    database: Database, table: SqliteTable, kept: FileBans
) -> None:
    def fail() -> None:
        bans.put(table, BAN)
        kept.forget()
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011  of the function above
        database.in_one_commit(fail)
    assert not covers(database, kept)
    bans.put(table, BAN)
    kept.forget()
    assert covers(database, kept)


def test_commits_of_this_process_read_no_bans(
    database: Database, table: SqliteTable, kept: FileBans
) -> None:
    """A ban that is not told of is not seen, so nothing was read."""
    bans.put(table, BAN)
    assert not covers(database, kept)
