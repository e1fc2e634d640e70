"""The SQLite file: opened, refused, full, locked and broken."""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from chalicelib import telemetry
from chalicelib.storage.errors import StorageError, StorageRefusedError, UnavailableError
from chalicelib.storage.items import Item, Key
from chalicelib.storage.writes import Delete, Put
from simulation.logs import counting_metrics
from tests.unit.vumi.operate.check.test_check import break_page
from vumi.storage.database import PARTS_AT_ONCE, WAL_PAGES, CorruptFileError, Database
from vumi.storage.file_format import VERSION
from vumi.storage.table import SqliteTable

BIG = "b" * 1_000_000


def pragma(database: Database, text: str) -> Any:
    """Return the value of a pragma on the connection that writes."""
    return database.write(lambda connection: connection.execute(f"PRAGMA {text}").fetchone()[0])


def fill_disk(database: Database) -> None:
    """Limit the file to its present size."""
    pragma(database, f"max_page_count = {pragma(database, 'page_count')}")


def number(table: SqliteTable, key: Key) -> object:
    item = table.get(key)
    return item and item["n"]


def test_what_is_written_is_on_the_disk_before_it_is_acknowledged(database: Database) -> None:
    """sqlite.org, "PRAGMA synchronous": 2 is FULL, which syncs the WAL at every commit."""
    assert pragma(database, "journal_mode") == "wal"
    assert pragma(database, "synchronous") == 2


def test_a_commit_copies_few_pages_of_the_log_to_the_file(
    path: Path, database: Database, table: SqliteTable
) -> None:
    """Each item has a page or more, so that the log would have all of them."""
    page = pragma(database, "page_size")
    for n in range(2 * WAL_PAGES):
        table.write(Put({"PK": "p", "SK": f"{n:04}", "text": "x" * page}))
    assert path.with_name(path.name + "-wal").stat().st_size < 1.5 * WAL_PAGES * page


def test_a_reopened_file_has_what_was_written_and_the_same_stream(path: Path) -> None:
    """The label of the stream is a time, as DynamoDB writes it."""
    with closing(Database(path)) as database:
        label = database.stream_label
        SqliteTable(database).put_all([{"PK": "p", "SK": "s", "n": 1}])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}", label)
    with closing(Database(path)) as database:
        assert database.stream_label == label
        assert SqliteTable(database).get(Key("p", "s")) == {"PK": "p", "SK": "s", "n": 1}


def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(path: Path) -> None:
    content = b"This is a diary, and no database at all.\n" * 100
    path.write_bytes(content)

    with pytest.raises(StorageRefusedError, match="file is not a database"):
        Database(path)

    assert path.read_bytes() == content


def test_a_folder_that_is_missing_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="unable to open database file"):
        Database(tmp_path / "missing" / "file.sqlite3")


def test_a_full_disk_is_still_read_and_written_to_once_it_has_space(
    database: Database, table: SqliteTable
) -> None:
    big: Item = {"PK": "p", "SK": "big", "note": BIG}
    table.put_all([{"PK": "p", "SK": "s"}])
    fill_disk(database)
    with pytest.raises(UnavailableError, match="database or disk is full"):
        table.write(Put({"PK": "p", "SK": "small"}), Put(big))
    assert table.query("p", limit=10) == [{"PK": "p", "SK": "s"}]

    pragma(database, "max_page_count = 1000000")
    table.put_all([big])
    assert table.get(Key("p", "big")) == big


def test_a_locked_file_is_unavailable_and_works_once_it_is_free(
    path: Path, database: Database, table: SqliteTable
) -> None:
    pragma(database, "busy_timeout = 1")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(UnavailableError, match="database is locked"):
        table.put_all([{"PK": "p", "SK": "s"}])
    assert table.get(Key("p", "s")) is None  # a lock for writing stops no reader

    other.execute("ROLLBACK")
    other.close()
    table.put_all([{"PK": "p", "SK": "s"}])
    assert table.get(Key("p", "s")) == {"PK": "p", "SK": "s"}


def failure(code: int) -> sqlite3.Error:
    error = sqlite3.OperationalError("as SQLite says")
    if code:
        error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("code", "raised"),
    [
        (sqlite3.SQLITE_BUSY, UnavailableError),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, UnavailableError),
        (sqlite3.SQLITE_CANTOPEN, UnavailableError),
        (sqlite3.SQLITE_FULL, UnavailableError),
        (sqlite3.SQLITE_IOERR, UnavailableError),
        (sqlite3.SQLITE_IOERR_WRITE, UnavailableError),
        (sqlite3.SQLITE_LOCKED, UnavailableError),
        (sqlite3.SQLITE_PROTOCOL, UnavailableError),
        (sqlite3.SQLITE_READONLY, UnavailableError),
        (sqlite3.SQLITE_CORRUPT, CorruptFileError),
        (sqlite3.SQLITE_NOTADB, CorruptFileError),
        (sqlite3.SQLITE_ERROR, StorageRefusedError),
        (0, StorageRefusedError),
    ],
)
def test_temporary_errors_are_unavailable_and_all_others_are_refused(
    database: Database, code: int, raised: type[StorageError]
) -> None:
    def job(_: sqlite3.Connection) -> None:
        raise failure(code)

    with pytest.raises(StorageError, match="SQLite: as SQLite says") as failed:
        database.write(job)
    assert failed.type is raised


def test_a_corrupt_file_is_still_read_but_no_longer_written(
    path: Path, database: Database, table: SqliteTable
) -> None:
    """If a reader finds the corruption, the writers stop too. The log says so once."""
    table.put_all([{"PK": "p", "SK": "s"}])

    def job(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM items")
        raise failure(sqlite3.SQLITE_CORRUPT_INDEX)

    with pytest.raises(CorruptFileError, match="as SQLite says; docs/backups"):
        database.write(job)
    before = path.with_name(path.name + "-wal").read_bytes()
    for _ in range(2):
        with pytest.raises(CorruptFileError, match="as SQLite says"):
            table.put_all([{"PK": "p", "SK": "t"}])
    assert path.with_name(path.name + "-wal").read_bytes() == before
    assert [item["SK"] for item in table.query("p", limit=9)] == ["s"]


def test_nothing_is_written_after_a_read_finds_the_file_corrupt(path: Path) -> None:
    Database(path).close()
    break_page(path, "messages")
    with closing(Database(path)) as database:
        with pytest.raises(CorruptFileError):
            database.read("SELECT * FROM messages")
        with pytest.raises(CorruptFileError):
            SqliteTable(database).put_all([{"PK": "p", "SK": "s"}])


def test_a_commit_in_which_the_file_is_found_corrupt_is_undone(
    database: Database, table: SqliteTable
) -> None:
    """The job ignores the error, but its other writes are not committed either."""

    def fail(_: sqlite3.Connection) -> None:
        raise failure(sqlite3.SQLITE_CORRUPT)

    def work() -> None:
        table.put_all([{"PK": "p", "SK": "s"}])
        with suppress(StorageError):
            database.write(fail)

    with pytest.raises(CorruptFileError):
        database.in_one_commit(work)
    assert table.get(Key("p", "s")) is None


def test_a_new_file_is_complete_or_missing_and_a_closed_one_is_one_file(path: Path) -> None:
    """The rest of a killed first start does not disturb the next one."""
    path.with_name(path.name + ".new").write_bytes(b"half a file")
    path.with_name(path.name + ".new-wal").write_bytes(b"half a WAL")
    with closing(Database(path)) as database:
        SqliteTable(database).put_all([{"PK": "p", "SK": "s"}])
        assert database.read("SELECT count(*) FROM items") == [(1,)]  # opens a reader too
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def open_files(path: Path) -> int:
    """Return how often this process has a file open."""
    wanted, found = path.stat(), 0
    for descriptor in range(1_024):
        with suppress(OSError):
            found += os.path.samestat(os.fstat(descriptor), wanted)
    return found


def test_reads_in_turn_share_a_reader(path: Path, database: Database) -> None:
    database.read("SELECT 1")
    before = open_files(path)
    for _ in range(5):
        database.read("SELECT 1")
    assert open_files(path) == before > 0


def test_a_file_that_is_refused_is_not_held_open(path: Path) -> None:
    Database(path).close()
    with closing(sqlite3.connect(path)) as newer:
        newer.execute(f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(StorageRefusedError) as refused:
        Database(path)
    assert refused.tb is not None, "what was made for it is still referred to"
    assert open_files(path) == 0


def test_a_reader_can_not_write(database: Database) -> None:
    with pytest.raises(StorageError, match="readonly"):
        database.read("DELETE FROM items")


def test_only_the_thread_in_one_commit_sees_its_writes(path: Path) -> None:
    database, other = Database(path), Database(path)
    table, elsewhere = SqliteTable(database), SqliteTable(other)

    def work() -> tuple[object, object]:
        table.put_all([{"PK": "p", "SK": "s", "n": 1}])
        return number(table, Key("p", "s")), elsewhere.get(Key("p", "s"))

    assert database.in_one_commit(work) == (1, None)
    assert number(elsewhere, Key("p", "s")) == 1
    other.close()
    database.close()


def test_in_one_commit_only_a_transaction_of_several_writes_needs_a_savepoint(
    database: Database, table: SqliteTable, statements: list[str]
) -> None:
    def work() -> None:
        table.write(Put({"PK": "p", "SK": "a"}))
        table.put_all([{"PK": "p", "SK": "b"}])
        table.put_all([{"PK": "p", "SK": "c"}, {"PK": "p", "SK": "d"}])
        assert not [one for one in statements if "SAVEPOINT" in one]
        table.write(Delete(Key("p", "a")), Put({"PK": "p", "SK": "e"}))

    database.in_one_commit(work)

    assert [item["SK"] for item in table.query("p", limit=10)] == ["b", "c", "d", "e"]
    assert statements.count("SAVEPOINT nested") == 1


def test_each_commits_a_hundred_parts_together(
    database: Database, table: SqliteTable, statements: list[str]
) -> None:
    parts = range(2 * PARTS_AT_ONCE + 1)

    def work(part: int) -> int:
        table.put_all([{"PK": "p", "SK": f"{part:03}"}])
        return part

    assert database.map_in_commits(work, iter(parts)) == list(parts)
    assert database.map_in_commits(work, []) == []

    assert table.count("p", limit=1000) == 201
    assert statements.count("COMMIT") == 3  # 100, 100 and 1


def test_a_commit_within_a_commit_is_part_of_it(
    database: Database, table: SqliteTable, statements: list[str]
) -> None:
    def outer() -> None:
        database.map_in_commits(lambda sk: table.write(Put({"PK": "USER#a", "SK": sk})), ["a", "b"])
        table.write(Put({"PK": "USER#a", "SK": "c"}))

    database.in_one_commit(outer)
    assert table.count("USER#a", limit=9) == 3
    assert statements.count("COMMIT") == 1


def test_the_metrics_of_a_commit_count_once_it_is_committed(database: Database) -> None:
    def fail() -> None:
        telemetry.count(views_put=100)
        raise ValueError("a fault")

    def outer() -> None:
        telemetry.count(views_put=1)
        database.in_one_commit(lambda: telemetry.count(views_folded=10))
        with suppress(ValueError):
            database.in_one_commit(fail)
        assert sums == {}

    with counting_metrics() as sums:
        with suppress(ValueError):
            database.in_one_commit(fail)
        database.in_one_commit(outer)
    assert sums == {"vu-mi": {"views_put": 1, "views_folded": 10}}
