"""`backup --keep` removes the oldest backups that it made, after a new one is complete."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from tests.unit.vumi.operate.backups.test_making import (
    STRANGER,
    count,
    folder,
    names,
    needs_root,
    put,
)
from tests.unit.vumi.operate.check.test_check import break_page
from vumi.errors import ReportedError
from vumi.folder import LOCK
from vumi.operate.backups.backups import Backup, list_backups, make, make_and_keep
from vumi.storage.database import FILE

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
