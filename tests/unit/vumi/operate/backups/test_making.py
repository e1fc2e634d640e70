"""`backup` copies a data folder completely or not at all, and overwrites nothing."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from chalicelib.storage.items import Key
from tests.unit.vumi.operate.check.test_check import break_page, snapshot
from vumi.errors import ReportedError
from vumi.operate.backups import backups
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


def test_a_backup_is_complete_for_its_owner_alone_and_can_be_the_data_folder(
    folder: Path, tmp_path: Path
) -> None:
    made = backups.make(folder, tmp_path / "one")
    assert made.objects == 1
    parts = ["archive/journal/malformed/one.jsonl.gz", "secrets.json", FILE]
    assert files(tmp_path / "one") == parts
    paths = [tmp_path / "one", *(tmp_path / "one").rglob("*")]
    modes = {(path.is_dir(), path.stat().st_mode & 0o777) for path in paths}
    assert modes == {(True, 0o700), (False, 0o600)}
    assert count(tmp_path / "one") == 7
    assert names(tmp_path) == ["data", "one"]


def test_an_entry_that_moves_to_the_archive_during_a_backup_is_in_it(
    folder: Path, tmp_path: Path
) -> None:
    """It is in the file or in the archive. With the archive first, it might be in neither."""

    def archived() -> None:
        put(folder, 8)
        FolderArchive(folder / FOLDER).put("journal/malformed/two.jsonl.gz", b"left the table")

    assert backups.make(folder, tmp_path / "one", on_file_copied=archived).objects == 2
    assert count(tmp_path / "one") == 7


def spoil(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE items SET ttl = 5")


@pytest.mark.parametrize(
    ("damage", "target", "says"),
    [
        (break_page, "one", r"data was removed because its check failed: .* check"),
        (spoil, "one", "its column ttl has 5"),
        (lambda path: path.write_bytes(b"a diary" * 99), "one", "one failed: SQLite: file is not"),
        (lambda _: None, "no/such", r"failed: .Errno 2. No such file"),
    ],
    ids=["damaged", "wrong", "foreign", "nowhere"],
)
def test_a_backup_that_fails_leaves_nothing(
    folder: Path, tmp_path: Path, damage: Callable[[Path], object], target: str, says: str
) -> None:
    damage(folder / FILE)
    with pytest.raises(ReportedError, match=says):
        backups.make(folder, tmp_path / target)
    assert names(tmp_path) == ["data"]


LEFT = f".one.{'0' * 32}.part"
"""The name of an unfinished backup."""
STRANGER = 65_534
"""The id of another user, nobody's."""
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")


@pytest.mark.parametrize("left", [LEFT, LEFT.replace("part", "old")])
def test_the_next_backup_removes_what_a_killed_one_left(
    folder: Path, tmp_path: Path, left: str
) -> None:
    (tmp_path / left / FOLDER).mkdir(parents=True)
    (tmp_path / left).chmod(0o700)
    (tmp_path / left / FILE).write_bytes(b"half a file")
    backups.make(folder, tmp_path / "one")
    assert count(tmp_path / "one") == 7
    assert names(tmp_path) == ["data", "one"]


def test_two_backups_of_one_name_do_not_mix(folder: Path, tmp_path: Path) -> None:
    (tmp_path / LEFT).mkdir(mode=0o700)
    (tmp_path / LEFT / FILE).write_bytes(b"half a file")
    opened = os.open(tmp_path / LEFT, os.O_RDONLY)
    fcntl.flock(opened, fcntl.LOCK_EX)
    backups.make(folder, tmp_path / "one")
    os.close(opened)
    assert (tmp_path / LEFT / FILE).read_bytes() == b"half a file"
    assert count(tmp_path / "one") == 7


def test_of_two_concurrent_backups_of_one_name_the_first_to_end_stays(
    folder: Path, tmp_path: Path
) -> None:
    def second() -> None:
        put(folder, 8)
        backups.make(folder, tmp_path / "one")

    with pytest.raises(ReportedError, match=r"one failed: .* Directory not empty"):
        backups.make(folder, tmp_path / "one", on_file_copied=second)
    assert count(tmp_path / "one") == 8
    assert names(tmp_path) == ["data", "one"]


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """Return another folder of the operator, which no backup may change."""
    victim = tmp_path / "victim"
    victim.mkdir(mode=0o700)
    put(victim, 1)
    (victim / "letter").write_text("dear")
    return victim


@pytest.mark.parametrize("name", [".one.part", LEFT])
def test_a_planted_link_is_not_followed(
    folder: Path, tmp_path: Path, victim: Path, name: str
) -> None:
    before = files(victim)
    (tmp_path / name).symlink_to(victim)
    backups.make(folder, tmp_path / "one")
    assert files(victim) == before
    assert count(victim) == 1
    assert (tmp_path / name).is_symlink()


@needs_root
@pytest.mark.parametrize("name", [".one.part", LEFT])
def test_a_planted_folder_is_neither_used_nor_removed(
    folder: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).mkdir(mode=0o700)
    os.chown(tmp_path / name, STRANGER, STRANGER)
    backups.make(folder, tmp_path / "one")
    assert names(tmp_path / name) == []
    assert (tmp_path / "one").stat().st_uid == os.geteuid()
    assert (tmp_path / "one").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(("place", "mode"), [("", 0o777), ("", 0o770), (LEFT, 0o755)])
def test_a_folder_that_another_user_may_have_named_is_not_removed(
    folder: Path, tmp_path: Path, victim: Path, place: str, mode: int
) -> None:
    """Others can rename what is around it, or can read it, as no unfinished backup."""
    victim.rename(tmp_path / LEFT)
    (tmp_path / place).chmod(mode)
    backups.make(folder, tmp_path / "one")
    assert count(tmp_path / LEFT) == 1


@pytest.mark.parametrize("is_link", [True, False])
def test_a_backup_that_is_replaced_while_it_is_made_fails_and_changes_nothing(
    folder: Path, tmp_path: Path, victim: Path, *, is_link: bool
) -> None:
    before = files(victim)

    def replaced() -> None:
        [unfinished] = tmp_path.glob(".one.*.part")
        unfinished.rename(tmp_path / "aside")
        if is_link:
            unfinished.symlink_to(victim)
        else:
            victim.rename(unfinished)
            unfinished.rename(victim)
            backups.make(folder, unfinished)  # a planted copy that is correct

    with pytest.raises(ReportedError, match="another user has replaced one"):
        backups.make(folder, tmp_path / "one", on_file_copied=replaced)
    assert files(victim) == before
    assert count(victim) == 1
    assert names(tmp_path / "aside") == []


SCRIPT = """
import sys
from pathlib import Path
from vumi.errors import ReportedError
from vumi.operate.backups.backups import make, restore
{hook}
sys.addaudithook(hook)
try:
    {command}
except ReportedError as error:
    print(error)
"""


def run_hooked(hook: str, command: str, *arguments: object) -> str:
    """Run a command whose audit events call a hook, and return the error that it prints."""
    script = SCRIPT.format(hook=hook, command=command)
    return subprocess.run(  # noqa: S603  the text above
        [sys.executable, "-c", script, *map(str, arguments)],
        cwd=Path(__file__).parents[5],
        capture_output=True,
        text=True,
        check=True,
    ).stdout


SWAP = """
folder, target, victim = map(Path, sys.argv[1:])

def hook(event, arguments):
    if event == "sqlite3.connect" and "/.one." in str(arguments[0]):
        [unfinished] = target.parent.glob(".one.*.part")
        unfinished.rename(target.parent / "aside")
        unfinished.symlink_to(victim)
"""


def test_sqlite_writes_to_no_folder_that_replaced_the_backup(
    folder: Path, tmp_path: Path, victim: Path
) -> None:
    """SQLite opens a path, which another user changes just before."""
    before = snapshot(victim)
    said = run_hooked(SWAP, "make(folder, target)", folder, tmp_path / "one", victim)
    assert "one failed: SQLite: unable to open database file" in said
    assert snapshot(victim) == before
    assert not (tmp_path / "one").exists()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        *((name, "contains DATA itself; give another folder") for name in ("data", "")),
        *((name, "is in DATA, and would be lost with it") for name in ("data/one", "data/a/one")),
        ("one", "one exists; give another name, or use --keep"),
        ("link", "link is a symbolic link; give another name"),
        ("dangling", "dangling is a symbolic link; give another name"),
    ],
)
def test_a_backup_replaces_nothing_and_is_not_around_or_in_the_data(
    folder: Path, tmp_path: Path, victim: Path, name: str, says: str
) -> None:
    backups.make(folder, tmp_path / "one")
    (tmp_path / "link").symlink_to(tmp_path / "one")
    (tmp_path / "dangling").symlink_to(victim / "new")
    put(folder, 8)
    before = snapshot(tmp_path)
    with pytest.raises(ReportedError, match=says):
        backups.make(folder, tmp_path / name)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("name", [FILE, "secrets.json", "archive/journal/link"])
@pytest.mark.parametrize("target", ["secret", "victim"])
def test_a_link_in_the_data_folder_is_not_copied(
    folder: Path, tmp_path: Path, victim: Path, name: str, target: str
) -> None:
    (tmp_path / "secret").write_text("of the operator")
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(tmp_path / target)
    with pytest.raises(ReportedError, match=f"{name} is a symbolic link: replace it by what it"):
        backups.make(folder, tmp_path / "one")
    assert names(tmp_path) == ["data", "secret", victim.name]
