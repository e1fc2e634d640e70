"""A backup that is kept or restored: whole and correct, or nothing is changed."""

from __future__ import annotations

import fcntl
import os
from contextlib import closing
from pathlib import Path

import pytest

from tests.unit.vumi.operate.backups.test_making import (
    STRANGER,
    count,
    files,
    folder,
    names,
    needs_root,
    put,
    run_hooked,
)
from tests.unit.vumi.operate.check.test_check import break_page, snapshot
from vumi.errors import ReportedError
from vumi.folder import LOCK, lock_folder
from vumi.operate.backups.backups import (
    Backup,
    Restored,
    list_backups,
    make,
    make_and_keep,
    restore,
)
from vumi.operate.backups.copying import lock_if_possible
from vumi.storage.database import FILE, Database
from vumi.storage.private_files import open_folder

__all__ = ["folder"]
NOW = 1_795_367_700.0
"""2026-11-22T17:15:00Z."""
DAY = 86_400.0
NEW = "vu-mi-2026-11-22T171500Z"
LEFT = f".vu-mi-2026-11-01T000000Z.{'0' * 32}"


@pytest.fixture
def within(tmp_path: Path) -> Path:
    within = tmp_path / "backups"
    within.mkdir(mode=0o700)
    return within


def keep(folder: Path, within: Path, count: int, day: int = 0) -> Backup:
    return make_and_keep(folder, within, count, NOW + day * DAY)


def test_the_oldest_beyond_the_number_are_removed(folder: Path, within: Path) -> None:
    for day in range(4):
        put(folder, day)
        kept = keep(folder, within, 2, day)
    assert kept.removed == (within / "vu-mi-2026-11-23T171500Z",)
    assert names(within) == ["vu-mi-2026-11-24T171500Z", "vu-mi-2026-11-25T171500Z"]
    assert list_backups(within) == [within / name for name in names(within)]
    assert [count(within / name) for name in names(within)] == [2, 3]


def test_the_new_one_is_never_removed(folder: Path, within: Path) -> None:
    """The clock was set back, so the others have later names."""
    for day in (0, 1, -1):
        kept = keep(folder, within, 1, day)
    assert kept.removed == ()
    assert names(within) == ["vu-mi-2026-11-21T171500Z", "vu-mi-2026-11-23T171500Z"]
    assert keep(folder, within, 1, -2).removed == (within / "vu-mi-2026-11-21T171500Z",)


@pytest.mark.parametrize(
    "wrong",
    ["content", "entry", "mode", "file", "link", "lock", pytest.param("user", marks=needs_root)],
)
def test_other_folders_stay(folder: Path, within: Path, tmp_path: Path, wrong: str) -> None:
    """They don't count towards the number either."""
    other = within / "vu-mi-2020-01-01T000000Z"
    make(folder, other)
    match wrong:
        case "content":
            (other / FILE).unlink()
        case "entry":
            (other / "notes").touch()
        case "mode":
            other.chmod(0o755)
        case "file":
            other.rename(tmp_path / "moved")
            other.touch()
        case "link":
            other.rename(tmp_path / "moved")
            other.symlink_to(tmp_path / "moved")
        case "lock":
            (other / LOCK).touch()
        case "user":
            os.chown(other, STRANGER, STRANGER)
    (within / "vu-mi-today").mkdir()
    before = names(other) if other.is_dir() else []
    keep(folder, within, 1)
    assert keep(folder, within, 1, 1).removed == (within / NEW,)
    assert names(within) == ["vu-mi-2020-01-01T000000Z", "vu-mi-2026-11-23T171500Z", "vu-mi-today"]
    assert before == (names(other) if other.is_dir() else [])


def test_a_failed_backup_removes_nothing(folder: Path, within: Path) -> None:
    keep(folder, within, 7, -1)
    before = names(within)
    break_page(folder / FILE)
    with pytest.raises(ReportedError, match="its check failed"):
        keep(folder, within, 1)
    assert names(within) == before


def test_two_of_one_second_do_not_mix(folder: Path, within: Path) -> None:
    for number in (8, 9):
        keep(folder, within, 7)
        put(folder, number)
    keep(folder, within, 2)
    assert names(within) == ["vu-mi-2026-11-22T171501Z", "vu-mi-2026-11-22T171502Z"]
    assert [count(within / name) for name in names(within)] == [8, 9]


def test_a_backup_that_is_read_stays_until_the_next_time(folder: Path, within: Path) -> None:
    keep(folder, within, 1)
    opened = os.open(within / NEW, os.O_RDONLY)
    fcntl.flock(opened, fcntl.LOCK_SH)
    assert keep(folder, within, 1, 1).removed == ()
    os.close(opened)
    assert len(keep(folder, within, 1, 2).removed) == 2


def test_what_killed_backups_and_removals_left_is_removed(folder: Path, within: Path) -> None:
    for suffix in ("part", "old"):
        (within / f"{LEFT}.{suffix}").mkdir(mode=0o700)
        (within / f"{LEFT}.{suffix}" / FILE).touch()
    (within / f"{LEFT}.txt").mkdir(mode=0o700)
    keep(folder, within, 1)
    assert names(within) == [f"{LEFT}.txt", NEW]


@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_nothing_is_made_where_others_can_rename(folder: Path, within: Path, mode: int) -> None:
    """They could give any private folder of the operator the name of an old backup."""
    within.chmod(mode)
    with pytest.raises(ReportedError, match="other users can rename the backups in"):
        keep(folder, within, 1)
    assert names(within) == []
    with pytest.raises(ReportedError, match="disk is not a folder; make it, or mount its disk"):
        keep(folder, within / "disk", 1)


ASIDE = "data.2026-11-22T171500Z"


@pytest.fixture
def backup(folder: Path, tmp_path: Path) -> Path:
    """Return a backup with the count 7; DATA has 8 by now."""
    target = make(folder, tmp_path / "backup").target
    put(folder, 8)
    return target


def aside(backup: Path, folder: Path) -> Restored:
    return restore(backup, folder, NOW, aside=True)


@pytest.mark.parametrize("is_empty", [False, True])
def test_a_backup_is_restored_where_nothing_is(
    backup: Path, tmp_path: Path, *, is_empty: bool
) -> None:
    target = tmp_path / "new" / "data"
    if is_empty:
        target.mkdir(parents=True)
    before = snapshot(backup)
    assert restore(backup, target, NOW) == Restored(target, 1, None)
    assert files(target) == files(backup)
    assert snapshot(backup) == before
    assert target.stat().st_mode & 0o777 == 0o700
    assert count(target) == 7
    assert names(target.parent) == ["data"]


def test_nothing_is_overwritten(backup: Path, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ReportedError) as refused:
        restore(backup, folder, NOW)
    assert str(refused.value) == (
        f"{folder} is not empty, and nothing was changed; stop vu-mi, and move the folder away:"
        f" mv {folder} {tmp_path / ASIDE} && DATA={folder} vumi restore {backup}; or let this"
        f" command do both: DATA={folder} vumi restore --aside {backup}"
    )
    assert count(folder) == 8
    assert names(tmp_path) == ["backup", "data"]


def test_the_folder_before_is_kept_aside_and_a_link_to_it_stays(
    backup: Path, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(folder)
    (tmp_path / f".data.{'0' * 32}.part").mkdir(mode=0o700)  # of a killed restore
    with closing(Database(folder / FILE)) as database:
        label = database.stream_label
    assert aside(backup, tmp_path / "link").before == tmp_path / ASIDE
    assert (count(folder), count(tmp_path / ASIDE)) == (7, 8)
    assert names(tmp_path) == ["backup", "data", ASIDE, "link"]
    assert (tmp_path / "link").is_symlink()
    with closing(Database(folder / FILE)) as database:
        assert database.stream_label == label


def test_a_running_server_is_not_replaced(backup: Path, folder: Path, tmp_path: Path) -> None:
    with closing(lock_folder(folder)), pytest.raises(ReportedError, match="already runs on"):
        aside(backup, folder)
    assert count(folder) == 8
    assert names(tmp_path) == ["backup", "data"]


def test_a_server_can_not_start_meanwhile(backup: Path, folder: Path) -> None:
    def start() -> None:
        with pytest.raises(ReportedError, match="already runs on"):
            lock_folder(folder)

    restore(backup, folder, NOW, aside=True, on_file_copied=start)
    assert count(folder) == 7


def test_a_server_that_started_on_no_data_meanwhile_keeps_its_file(
    backup: Path, tmp_path: Path
) -> None:
    target = tmp_path / "new"

    def start() -> None:
        target.mkdir()
        put(target, 1)

    with pytest.raises(ReportedError, match="new was made meanwhile, so nothing was restored"):
        restore(backup, target, NOW, on_file_copied=start)
    assert count(target) == 1
    assert names(tmp_path) == ["backup", "data", "new"]


def test_a_backup_that_is_read_is_locked_and_one_without_locks_is_read_too(
    backup: Path, folder: Path
) -> None:
    def remove() -> None:
        with open_folder(backup) as opened:
            assert not lock_if_possible(opened, fcntl.LOCK_EX)

    restore(backup, folder, NOW, aside=True, on_file_copied=remove)
    without_locks = os.open(backup, os.O_PATH)
    assert lock_if_possible(without_locks, fcntl.LOCK_SH)
    os.close(without_locks)


def test_a_wrong_backup_is_not_restored(backup: Path, folder: Path, tmp_path: Path) -> None:
    """An object of its archive is damaged, then its file is."""
    (backup / "archive" / "journal" / "damaged.jsonl.gz").write_bytes(b"no gzip")
    with pytest.raises(ReportedError, match=r"damaged.jsonl.gz can't be read"):
        aside(backup, folder)
    break_page(backup / FILE)
    with pytest.raises(ReportedError, match=r"backup was removed because its check failed"):
        aside(backup, folder)
    assert count(folder) == 8
    assert names(tmp_path) == ["backup", "data"]


def test_a_folder_of_backups_names_the_latest(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "all").mkdir(mode=0o700)
    for day in range(2):
        make_and_keep(folder, tmp_path / "all", 7, NOW + day * 86_400)
    with pytest.raises(ReportedError, match=r"; its latest backup is .*/vu-mi-2026-11-23T171500Z$"):
        restore(tmp_path / "all", tmp_path / "new", NOW)
    with pytest.raises(ReportedError, match=rf"no is not a backup, because it has no {FILE}$"):
        restore(tmp_path / "no", tmp_path / "new", NOW)


@pytest.mark.parametrize(("source", "target"), [("a", "a"), ("a", "a/b"), ("a/b", "a")])
def test_a_backup_and_data_in_each_other_are_refused(
    backup: Path, tmp_path: Path, source: str, target: str
) -> None:
    (tmp_path / source).parent.mkdir(exist_ok=True)
    backup.rename(tmp_path / source)
    with pytest.raises(ReportedError, match="are in each other; move the backup away"):
        aside(tmp_path / source, tmp_path / target)
    assert count(tmp_path / source) == 7


def test_a_folder_of_something_else_is_not_moved(backup: Path, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter").touch()
    with pytest.raises(ReportedError, match="home has files, but none of vu-mi: set DATA to"):
        aside(backup, tmp_path / "home")
    assert names(tmp_path / "home") == ["letter"]
    with pytest.raises(ReportedError, match="/proc is a mount point, which no folder can replace"):
        restore(backup, Path("/proc"), NOW)


INTERRUPT = """
backup, data = map(Path, sys.argv[2:])

def hook(event, arguments):
    if event == "os.rename" and arguments[1] == "data":
        if sys.argv[1] == "vanishes":
            [unfinished] = data.parent.glob(".data.*.part")
            unfinished.rename(data.parent / "gone")
        else:
            (data / "made").mkdir(parents=True)
"""


@pytest.mark.parametrize("how", ["vanishes", "appears"])
def test_a_folder_that_changes_before_the_last_rename_is_not_overwritten(
    backup: Path, folder: Path, tmp_path: Path, how: str
) -> None:
    """The folder before comes back, unless another one has its name meanwhile."""
    command = "restore(backup, data, 1_795_367_700.0, aside=True)"
    said = run_hooked(INTERRUPT, command, how, backup, folder)
    if how == "vanishes":
        assert "data is as it was: [Errno 2]" in said
        assert count(folder) == 8
        assert not (tmp_path / ASIDE).exists()
    else:
        assert said.endswith(f"stop vu-mi first; the folder before is {tmp_path / ASIDE}\n")
        assert names(folder) == ["made"]
        assert count(tmp_path / ASIDE) == 8


@needs_root
@pytest.mark.parametrize("is_there", [False, True])
def test_root_gives_the_restored_folder_to_the_user_that_runs_vu_mi(
    backup: Path, folder: Path, tmp_path: Path, *, is_there: bool
) -> None:
    """That is the owner of the folder before, or of the backup."""
    target = folder if is_there else tmp_path / "new"
    owned = folder if is_there else backup
    for path in (owned, *owned.rglob("*")):
        os.chown(path, STRANGER, STRANGER)
    aside(backup, target)
    assert {path.lstat().st_uid for path in (target, *target.rglob("*"))} == {STRANGER}
