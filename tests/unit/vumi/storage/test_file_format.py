"""The migrations of the file, each complete or not applied, and its readers, who see one moment."""

from __future__ import annotations

import json
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from chalicelib.storage.errors import StorageRefusedError, UnavailableError
from chalicelib.storage.items import Item, Key
from vumi.storage.database import FILE, Database
from vumi.storage.file_format import (
    FORMAT,
    SHM,
    VERSION,
    WAL,
    FileFormat,
    beside,
    has_wal,
    open_read_only,
    open_without_locks,
    version_of,
)
from vumi.storage.table import SqliteTable, all_items

SECOND = "CREATE TABLE colors (name TEXT);\nINSERT INTO colors VALUES ('a;\nb');\n"
THIRD = "-- A column; with a default.\nALTER TABLE colors ADD COLUMN hue INTEGER DEFAULT 7;\n"
ROOT = Path(__file__).parents[4]


def with_later(*scripts: str) -> FileFormat:
    """Return the format of a later program, which has more migrations."""
    later = ((f"{n:04}_later.sql", script) for n, script in enumerate(scripts, VERSION + 1))
    return FileFormat((*FORMAT.migrations, *later))


def version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return version_of(connection)


def schema(path: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT name, sql FROM sqlite_schema ORDER BY 1").fetchall()


@pytest.fixture
def older(path: Path) -> Path:
    """Return the path of a file of this format, with one item."""
    database = Database(path)
    SqliteTable(database).put_all([{"PK": "p", "SK": "s", "n": 1}])
    database.close()
    return path


def test_the_second_format_lists_the_badges_of_secrets(path: Path) -> None:
    """An owner without a digest is a badge with several names, which nobody owns."""
    first = FileFormat(FORMAT.migrations[:1])
    with closing(Database(path, file_format=first)) as database:
        owned: Item = {"PK": "USER#a#b", "SK": "OWNER", "digest": "d" * 64, "created": 1}
        named: Item = {"PK": "USER#c", "SK": "OWNER", "names": ["e"]}
        SqliteTable(database).put_all([owned, named])
    with closing(Database(path, migrates=True)) as database:
        found = database.read("SELECT pk, sk, attributes FROM items WHERE sk != 'OWNER'")
    assert found == [("KEY#" + "d" * 64, "BADGE#a#b", "{}")]


def test_missing_migrations_are_applied_in_order_and_keep_the_rows(older: Path) -> None:
    later = with_later(SECOND, THIRD)
    with closing(Database(older, migrates=True, file_format=later)) as database:
        assert database.read("SELECT name, hue FROM colors") == [("a;\nb", 7)]
        assert SqliteTable(database).get(Key("p", "s")) == {"PK": "p", "SK": "s", "n": 1}
    assert version(older) == VERSION + 2
    with closing(Database(older, file_format=later)) as database:
        assert database.read("SELECT count(*) FROM colors") == [(1,)]


def test_a_new_file_has_the_schema_of_a_migrated_one(older: Path, tmp_path: Path) -> None:
    later = with_later(SECOND, THIRD)
    Database(older, migrates=True, file_format=later).close()
    Database(tmp_path / "new", file_format=later).close()
    assert schema(tmp_path / "new") == schema(older)


def test_a_copy_of_the_older_file_is_kept_for_the_program_before(older: Path) -> None:
    with closing(sqlite3.connect(older)) as connection:
        before = list(connection.iterdump())
    for _ in range(2):
        Database(older, migrates=True, file_format=with_later(SECOND)).close()
    copy = older.with_name(f"{older.name}.format-{VERSION}")
    assert {file.name for file in older.parent.iterdir()} == {older.name, copy.name}
    with closing(sqlite3.connect(copy)) as connection:
        assert list(connection.iterdump()) == before
    with closing(Database(copy)) as database:
        assert SqliteTable(database).get(Key("p", "s"))


def test_a_file_that_can_not_be_copied_is_not_migrated(older: Path) -> None:
    copy = older.with_name(f"{older.name}.format-{VERSION}")
    copy.mkdir()
    with pytest.raises(UnavailableError, match=re.escape(f"{copy.name} can't be made: ")):
        Database(older, migrates=True, file_format=with_later(SECOND))
    assert version(older) == VERSION
    assert {file.name for file in older.parent.iterdir()} == {older.name, copy.name}


def test_a_command_does_not_migrate_and_names_both_versions_and_the_fix(older: Path) -> None:
    before = older.read_bytes()
    with pytest.raises(StorageRefusedError) as refused:
        Database(older, file_format=with_later(SECOND, THIRD))
    assert str(refused.value) == (
        f"the file has format {VERSION}, this program knows {VERSION + 2}: `vumi serve` migrates"
        " the file of DATA, and `vumi restore` that of a backup"
    )
    assert older.read_bytes() == before


@pytest.mark.parametrize("migrates", [False, True])
def test_a_newer_file_is_refused_by_every_command(older: Path, *, migrates: bool) -> None:
    Database(older, migrates=True, file_format=with_later(SECOND)).close()
    before = older.read_bytes()
    with pytest.raises(StorageRefusedError) as refused:
        Database(older, migrates=migrates)
    assert str(refused.value) == (
        f"the file has format {VERSION + 1}, this program knows {VERSION}: run a newer vu-mi"
    )
    assert older.read_bytes() == before


def test_a_migration_that_fails_leaves_the_older_file_usable(older: Path) -> None:
    wrong = with_later(SECOND, f"{THIRD}DROP TABLE missing;\n")
    with pytest.raises(StorageRefusedError) as refused:
        Database(older, migrates=True, file_format=wrong)
    assert str(refused.value) == (
        f"it has format {VERSION + 1}, and can't be migrated to {VERSION + 2}: SQLite: no such"
        f" table: missing; {older.name}.format-{VERSION} is its copy of before"
    )
    assert version(older) == VERSION + 1
    with closing(Database(older, file_format=with_later(SECOND))) as database:
        assert database.read("SELECT name FROM colors") == [("a;\nb",)]
    Database(older.with_name(f"{older.name}.format-{VERSION}")).close()


def test_a_full_disk_during_a_migration_may_recover(older: Path) -> None:
    filling = "PRAGMA max_page_count = 1;\nCREATE TABLE big AS SELECT zeroblob(9999);\n"
    with pytest.raises(UnavailableError, match="full; make room on the disk"):
        Database(older, migrates=True, file_format=with_later(filling))
    assert version(older) == VERSION
    Database(older).close()


def test_programs_that_start_concurrently_apply_each_migration_once(older: Path) -> None:
    later = with_later(SECOND, THIRD)

    def migrate(_: int) -> None:
        with closing(sqlite3.connect(older, isolation_level=None)) as connection:
            later.migrate(connection)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(migrate, range(4)))
    with closing(Database(older, file_format=later)) as database:
        assert database.read("SELECT name, hue FROM colors") == [("a;\nb", 7)]


KILLED = """
import os, signal, sqlite3, sys
from vumi.storage.database import Database
from vumi.storage.file_format import FORMAT, FileFormat

def die(statement):
    if statement.startswith(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

class Connection(sqlite3.Connection):
    def __init__(self, *given, **options):
        super().__init__(*given, **options)
        self.set_trace_callback(die)

connect = sqlite3.connect
sqlite3.connect = lambda *given, **options: connect(*given, factory=Connection, **options)
later = FileFormat((*FORMAT.migrations, *map(tuple, __import__("json").loads(sys.argv[3]))))
from pathlib import Path
Database(Path(sys.argv[1]), migrates=True, file_format=later).close()
"""


@pytest.mark.parametrize(
    ("statement", "left"),
    [
        ("PRAGMA journal_mode = DELETE", VERSION),
        ("CREATE TABLE colors", VERSION),
        ("INSERT INTO colors", VERSION),
        (f"PRAGMA user_version = {VERSION + 1}", VERSION),
        ("-- A column", VERSION + 1),
        (f"PRAGMA user_version = {VERSION + 2}", VERSION + 1),
        ("SELECT label", VERSION + 2),
    ],
    ids=["copy", "create", "insert", "version", "between", "last version", "done"],
)
def test_a_program_that_is_killed_leaves_a_file_of_one_version(
    older: Path, statement: str, left: int
) -> None:
    later = with_later(SECOND, THIRD)
    scripts = json.dumps(later.migrations[VERSION:])
    finished = subprocess.run(  # noqa: S603  our own words
        [sys.executable, "-c", KILLED, older, statement, scripts], cwd=ROOT, check=False
    )
    assert finished.returncode == -signal.SIGKILL
    with closing(sqlite3.connect(older)) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
        assert (version_of(connection), "colors" in tables) == (left, left > VERSION)
    with closing(Database(older, migrates=True, file_format=later)) as database:
        assert database.read("SELECT name, hue FROM colors") == [("a;\nb", 7)]
    assert not list(older.parent.glob("*.new"))


def test_migrations_are_numbered_from_1_on() -> None:
    for number, (name, _) in enumerate(FORMAT.migrations, 1):
        assert re.fullmatch(rf"{number:04}_[a-z0-9_]+\.sql", name), name


def test_no_migration_ends_its_own_transaction() -> None:
    """`PRAGMA` and `VACUUM` don't work in a transaction, or change more than the file."""
    for name, script in FORMAT.migrations:
        words = re.findall(r"(?m)^(BEGIN|COMMIT|END|ROLLBACK|PRAGMA|VACUUM)\b", script.upper())
        assert words == [], name


BADGES = 2_000
STEP_PAGES = 5


def put(path: Path, base: int) -> None:
    """Write every badge, as a server does that starts and stops."""
    with closing(Database(path)) as database:
        SqliteTable(database).put_all(
            [{"PK": f"USER#{n}", "SK": "VIEWS", "base": base} for n in range(BADGES)]
        )


def copy_meanwhile(source: sqlite3.Connection, to: Path, change: Callable[[], None]) -> None:
    """Copy the file step by step; it changes after the first step."""
    remaining: list[int] = []

    def progress(_: int, pages: int, __: int) -> None:
        remaining.append(pages)
        if len(remaining) == 1:
            change()

    source.execute("PRAGMA user_version").fetchall()
    with closing(sqlite3.connect(to)) as copy:
        source.backup(copy, pages=STEP_PAGES, progress=progress)
    assert remaining[0] > STEP_PAGES


def bases(path: Path) -> set[object]:
    with closing(Database(path)) as database:
        return {item["base"] for item in all_items(database)}


def put_elsewhere(path: Path, base: int) -> None:
    """Write every badge in another process, because SQLite's locks are those of a process."""
    code = f"from {__name__} import Path, put; put(Path({str(path)!r}), {base})"
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603  the text above


def stop(path: Path) -> None:
    put(path, 1)


def kill(path: Path, *, commits: bool = True) -> None:
    """Leave what a killed server leaves: the file, its WAL and the index of it."""
    alive = path.with_name("alive") / FILE
    alive.parent.mkdir()
    put(alive, 0 if commits else 1)
    with closing(Database(alive)) as database:
        if commits:
            put(alive, 1)
        database.read("SELECT 1 FROM items")
        for suffix in ("", WAL, SHM):
            shutil.copyfile(beside(alive, suffix), beside(path, suffix))
    assert has_wal(path) == commits


def kill_before_a_commit(path: Path) -> None:
    kill(path, commits=False)


def leave_without_index(path: Path) -> None:
    kill(path)
    beside(path, SHM).unlink()


@pytest.mark.parametrize("leave", [stop, kill, kill_before_a_commit])
def test_a_copy_is_of_one_moment_if_a_server_starts_meanwhile(
    tmp_path: Path, leave: Callable[[Path], None]
) -> None:
    path = tmp_path / FILE
    leave(path)
    with open_read_only(path) as connection:
        copy_meanwhile(connection, tmp_path / "copy", lambda: put_elsewhere(path, 2))
    assert bases(tmp_path / "copy") == {1}
    assert bases(path) == {2}
    assert sorted(found.name for found in tmp_path.glob("vu-mi*")) == [FILE]


@pytest.mark.parametrize("leave", [stop, leave_without_index])
def test_a_file_that_changes_while_it_is_read_without_locks_is_not_used(
    tmp_path: Path, leave: Callable[[Path], None]
) -> None:
    path = tmp_path / FILE
    leave(path)
    with open_without_locks(path) as connection:
        assert connection.execute("SELECT count(*) FROM items").fetchone() == (BADGES,)
    with (
        pytest.raises(UnavailableError, match="changed while it was read; try again"),
        open_without_locks(path) as connection,
    ):
        copy_meanwhile(connection, tmp_path / "copy", lambda: put_elsewhere(path, 2))
