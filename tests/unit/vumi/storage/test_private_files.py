"""Files and folders that other users can neither read nor replace."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.vumi.operate.backups.test_making import STRANGER, needs_root
from vumi.storage.private_files import (
    UnsafeFileError,
    new_file,
    new_folder,
    open_file,
    open_folder,
    others_may_rename,
)

CREATE = os.O_RDWR | os.O_CREAT


@pytest.fixture(params=[0o000, 0o022], autouse=True)
def _umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_new_files_and_folders_are_for_their_owner_only(tmp_path: Path) -> None:
    os.close(open_file(tmp_path / "lock", CREATE))
    with open_folder(tmp_path) as opened:
        os.close(new_file("file", opened))
        with new_folder("folder", opened) as inner:
            assert os.path.samestat(os.fstat(inner), (tmp_path / "folder").stat())
    assert [mode(tmp_path / name) for name in ("lock", "file", "folder")] == [0o600, 0o600, 0o700]


@pytest.mark.parametrize("target", ["file", "absent"])
def test_a_link_is_neither_opened_nor_used_to_make_a_file(tmp_path: Path, target: str) -> None:
    (tmp_path / "file").write_text("of another")
    (tmp_path / "link").symlink_to(tmp_path / target)
    with pytest.raises(UnsafeFileError, match="link is a symbolic link"):
        open_file(tmp_path / "link", CREATE)
    with open_folder(tmp_path) as opened, pytest.raises(FileExistsError):
        new_file("link", opened)
    assert not (tmp_path / "absent").exists()


def test_a_link_to_a_folder_is_followed_only_from_outside(tmp_path: Path) -> None:
    """The operator's own path may have links; a name within an open folder may not be one."""
    (tmp_path / "link").symlink_to(tmp_path)
    with open_folder(tmp_path / "link") as opened:
        with pytest.raises(NotADirectoryError), open_folder("link", opened):
            pass
        with pytest.raises(FileExistsError), new_folder("link", opened):
            pass


def test_a_fifo_is_refused_without_waiting_for_a_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(UnsafeFileError, match="fifo is not a regular file: remove it"):
        open_file(tmp_path / "fifo", os.O_RDONLY)


@needs_root
def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    os.chown(tmp_path / "lock", STRANGER, STRANGER)
    with pytest.raises(UnsafeFileError, match=f"lock belongs to another user .id {STRANGER}."):
        open_file(tmp_path / "lock", CREATE)
    os.chown(tmp_path, STRANGER, STRANGER)
    os.close(open_file(tmp_path / "lock", CREATE))


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (0o700, False),
        (0o755, False),
        (0o1777, False),
        (0o1770, False),
        (0o777, True),
        (0o702, True),
        (0o720, True),
    ],
)
def test_the_mode_of_a_folder_says_whether_others_may_rename(
    tmp_path: Path, mode: int, *, expected: bool
) -> None:
    tmp_path.chmod(mode)
    with open_folder(tmp_path) as opened:
        assert others_may_rename(opened) is expected


@needs_root
def test_the_owner_of_a_folder_may_rename(tmp_path: Path) -> None:
    os.chown(tmp_path, STRANGER, STRANGER)
    with open_folder(tmp_path) as opened:
        assert others_may_rename(opened)
