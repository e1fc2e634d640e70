"""`backup`: all of a data folder, whole or not at all, and nothing in the place of anything."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from chalicelib.storage.items import Key
from tests.unit.vumi.check.test_check import break_page
from vumi.check import check, report
from vumi.storage import backup
from vumi.storage.archive import FOLDER, UNFINISHED, FolderArchive
from vumi.storage.backup import BackupError
from vumi.storage.database import FILE, Database
from vumi.storage.table import SqliteTable

BADGE = {"PK": "USER#a", "SK": "VIEWS"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    put(folder, 7)
    archive = FolderArchive(folder / FOLDER)
    archive.put("journal/malformed/one.jsonl.gz", b"kept as it is")
    (folder / FOLDER / UNFINISHED).write_bytes(b"half an obj")
    (folder / "secrets.json").write_text("{}")
    return folder


def put(folder: Path, count: int) -> None:
    with closing(Database(folder / FILE)) as database:
        SqliteTable(database).put_all([{**BADGE, "base": count}])


def count(folder: Path) -> object:
    with closing(Database(folder / FILE)) as database:
        item = SqliteTable(database).get(Key("USER#a", "VIEWS"))
    return item and item["base"]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_backup_has_all_and_can_be_the_data_folder(folder: Path, tmp_path: Path) -> None:
    made = backup.make(folder, tmp_path / "one")
    assert made.objects == 1
    assert files(tmp_path / "one") == [
        "archive/journal/malformed/one.jsonl.gz",
        "secrets.json",
        FILE,
    ]
    assert count(tmp_path / "one") == 7
    assert names(tmp_path) == ["data", "one"]


def test_only_its_owner_may_read_it(folder: Path, tmp_path: Path) -> None:
    backup.make(folder, tmp_path / "one")
    assert (tmp_path / "one").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "one" / "secrets.json").stat().st_mode & 0o777 == 0o600


def test_what_is_in_the_wal_alone_is_in_the_backup(folder: Path, tmp_path: Path) -> None:
    with closing(Database(folder / FILE)) as database:
        SqliteTable(database).put_all([{**BADGE, "base": 8}])
        backup.make(folder, tmp_path / "one")
    assert files(tmp_path / "one")[-1] == FILE
    assert count(tmp_path / "one") == 8


def test_what_leaves_the_table_while_it_is_backed_up_is_in_the_backup(
    folder: Path, tmp_path: Path
) -> None:
    """In its file or in its archive; were the archive copied first, it might be in neither."""

    def archived() -> None:
        put(folder, 8)
        FolderArchive(folder / FOLDER).put("journal/malformed/two.jsonl.gz", b"left the table")

    assert backup.make(folder, tmp_path / "one", meanwhile=archived).objects == 2
    assert count(tmp_path / "one") == 7


def test_an_older_backup_is_replaced_only_when_told(folder: Path, tmp_path: Path) -> None:
    backup.make(folder, tmp_path / "one")
    put(folder, 8)
    with pytest.raises(BackupError, match="one is there; give another name, or --replace"):
        backup.make(folder, tmp_path / "one")
    assert count(tmp_path / "one") == 7
    backup.make(folder, tmp_path / "one", replace=True)
    assert count(tmp_path / "one") == 8
    assert names(tmp_path) == ["data", "one"]


@pytest.mark.parametrize("name", ["data", "", "diary", "other"])
def test_what_is_no_backup_is_never_replaced(folder: Path, tmp_path: Path, name: str) -> None:
    """The data itself, the folder that it is in, a folder of something else, data in use."""
    (tmp_path / "diary").mkdir()
    (tmp_path / FILE).touch()
    (tmp_path / "diary" / "monday").touch()
    (tmp_path / "other").mkdir()
    put(tmp_path / "other", 1)
    (tmp_path / "other" / backup.LOCK).touch()
    before = files(tmp_path)
    with pytest.raises(BackupError, match="give another"):
        backup.make(folder, tmp_path / name, replace=True)
    assert files(tmp_path) == before


def test_a_file_that_is_not_right_leaves_no_backup_and_the_older_one_stands(
    folder: Path, tmp_path: Path
) -> None:
    backup.make(folder, tmp_path / "one")
    break_page(folder / FILE)
    with pytest.raises(BackupError, match="the copy is not kept"):
        backup.make(folder, tmp_path / "one", replace=True)
    assert names(tmp_path) == ["data", "one"]
    assert count(tmp_path / "one") == 7


def test_a_file_that_can_not_be_read_leaves_no_backup(folder: Path, tmp_path: Path) -> None:
    (folder / FILE).write_bytes(b"a diary, no database" * 99)
    with pytest.raises(BackupError, match="one is not made: SQLite: file is not a database"):
        backup.make(folder, tmp_path / "one")
    assert names(tmp_path) == ["data"]


def test_a_folder_that_can_not_be_made_is_told(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(BackupError, match=r"is not made: .Errno 2. No such file"):
        backup.make(folder, tmp_path / "no" / "such")


def test_what_a_killed_backup_left_is_removed_by_the_next(folder: Path, tmp_path: Path) -> None:
    left = tmp_path / ".one.part"
    (left / FOLDER).mkdir(parents=True)
    (left / FILE).write_bytes(b"half a file")
    backup.make(folder, tmp_path / "one")
    assert count(tmp_path / "one") == 7
    assert names(tmp_path) == ["data", "one"]


def test_two_backups_of_one_name_do_not_mix(folder: Path, tmp_path: Path) -> None:
    under_way = tmp_path / ".one.part"
    under_way.mkdir()
    (under_way / FILE).write_bytes(b"half a file")
    opened = os.open(under_way, os.O_RDONLY)
    fcntl.flock(opened, fcntl.LOCK_EX)
    with pytest.raises(BackupError, match="another backup writes"):
        backup.make(folder, tmp_path / "one")
    os.close(opened)
    assert (under_way / FILE).read_bytes() == b"half a file"


def test_a_backup_that_takes_the_place_of_a_broken_folder_goes_on_where_it_was_made(
    folder: Path, tmp_path: Path
) -> None:
    """The way back: the broken folder aside with all of it, the backup in its place."""
    with closing(Database(folder / FILE)) as database:
        label = database.stream_label
        backup.make(folder, tmp_path / "one")
        SqliteTable(database).put_all([{**BADGE, "base": 8}])
    folder.rename(tmp_path / "broken")
    (tmp_path / "one").rename(folder)
    assert count(folder) == 7
    with closing(Database(folder / FILE)) as database:
        assert database.stream_label == label
    assert all(one.kind is not report.Kind.WRONG for one in check.check_content(folder))


def test_the_copy_is_checked_as_the_file_is(folder: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(folder / FILE)) as connection, connection:
        connection.execute("UPDATE items SET ttl = 5")
    with pytest.raises(BackupError, match="its column ttl has 5"):
        backup.make(folder, tmp_path / "one")
    assert names(tmp_path) == ["data"]
