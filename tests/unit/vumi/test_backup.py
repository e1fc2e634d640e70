"""`backup` copies a data folder completely or not at all, and overwrites nothing unasked."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from chalicelib.storage.items import Key
from tests.unit.vumi.check.test_check import break_page
from vumi import backup
from vumi.backup import BackupError
from vumi.check import check, report
from vumi.storage.archive import FOLDER, UNFINISHED, FolderArchive
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


def test_a_backup_is_complete_and_can_be_the_data_folder(folder: Path, tmp_path: Path) -> None:
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


def test_commits_that_are_only_in_the_wal_are_in_the_backup(folder: Path, tmp_path: Path) -> None:
    with closing(Database(folder / FILE)) as database:
        SqliteTable(database).put_all([{**BADGE, "base": 8}])
        backup.make(folder, tmp_path / "one")
    assert files(tmp_path / "one")[-1] == FILE
    assert count(tmp_path / "one") == 8


def test_an_entry_that_moves_to_the_archive_during_a_backup_is_in_it(
    folder: Path, tmp_path: Path
) -> None:
    """It is in the file or in the archive. With the archive first, it might be in neither."""

    def archived() -> None:
        put(folder, 8)
        FolderArchive(folder / FOLDER).put("journal/malformed/two.jsonl.gz", b"left the table")

    assert backup.make(folder, tmp_path / "one", on_file_copied=archived).objects == 2
    assert count(tmp_path / "one") == 7


def test_an_older_backup_is_replaced_only_on_request(folder: Path, tmp_path: Path) -> None:
    backup.make(folder, tmp_path / "one")
    put(folder, 8)
    with pytest.raises(BackupError, match="one exists; give another name, or --replace"):
        backup.make(folder, tmp_path / "one")
    assert count(tmp_path / "one") == 7
    backup.make(folder, tmp_path / "one", replace=True)
    assert count(tmp_path / "one") == 8
    assert names(tmp_path) == ["data", "one"]


@pytest.mark.parametrize("name", ["data", "", "diary", "other"])
def test_any_other_folder_is_never_replaced(folder: Path, tmp_path: Path, name: str) -> None:
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


def test_a_wrong_file_leaves_no_backup_and_keeps_the_older_one(
    folder: Path, tmp_path: Path
) -> None:
    backup.make(folder, tmp_path / "one")
    break_page(folder / FILE)
    with pytest.raises(BackupError, match="the backup was removed because its check failed"):
        backup.make(folder, tmp_path / "one", replace=True)
    assert names(tmp_path) == ["data", "one"]
    assert count(tmp_path / "one") == 7


def test_a_file_that_can_not_be_read_leaves_no_backup(folder: Path, tmp_path: Path) -> None:
    (folder / FILE).write_bytes(b"a diary, no database" * 99)
    with pytest.raises(BackupError, match="one failed: SQLite: file is not a database"):
        backup.make(folder, tmp_path / "one")
    assert names(tmp_path) == ["data"]


def test_a_folder_that_can_not_be_created_is_reported(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(BackupError, match=r"failed: .Errno 2. No such file"):
        backup.make(folder, tmp_path / "no" / "such")


def test_the_next_backup_removes_what_a_killed_one_left(folder: Path, tmp_path: Path) -> None:
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
    with pytest.raises(BackupError, match="another backup is writing"):
        backup.make(folder, tmp_path / "one")
    os.close(opened)
    assert (under_way / FILE).read_bytes() == b"half a file"


def test_a_backup_replaces_a_broken_folder(folder: Path, tmp_path: Path) -> None:
    """The operator renames the broken folder and puts the backup in its place."""
    with closing(Database(folder / FILE)) as database:
        label = database.stream_label
        backup.make(folder, tmp_path / "one")
        SqliteTable(database).put_all([{**BADGE, "base": 8}])
    folder.rename(tmp_path / "broken")
    (tmp_path / "one").rename(folder)
    assert count(folder) == 7
    with closing(Database(folder / FILE)) as database:
        assert database.stream_label == label
    assert all(one.kind is not report.FindingKind.WRONG for one in check.check_content(folder))


def test_the_copy_is_checked_as_the_file_is(folder: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(folder / FILE)) as connection, connection:
        connection.execute("UPDATE items SET ttl = 5")
    with pytest.raises(BackupError, match="its column ttl has 5"):
        backup.make(folder, tmp_path / "one")
    assert names(tmp_path) == ["data"]
