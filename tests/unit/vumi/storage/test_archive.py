"""The archive in a folder has complete objects or none, even if the disk fails."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chalicelib.storage.errors import UnavailableError
from vumi.storage.archive import UNFINISHED, FolderArchive

NAME = "journal/2026/03/14/1-a.jsonl.gz"


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_an_unfinished_object_of_a_killed_process_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / UNFINISHED).write_bytes(b"half of something much longer than what comes now")
    FolderArchive(tmp_path).put(NAME, b"whole")
    assert (tmp_path / NAME).read_bytes() == b"whole"
    assert files(tmp_path) == {NAME}


def test_the_object_and_every_folder_on_the_way_are_on_the_disk_before_put_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file comes before its name, because a power cut could leave an empty object."""
    folder = tmp_path / "archive"
    synced: list[Path] = []
    named: list[bool] = []
    sync = os.fsync

    def note(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        named.append((folder / NAME).exists())
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    FolderArchive(folder).put(NAME, b"whole")
    places = [folder / UNFINISHED, *list((folder / NAME).parents)[:6]]
    assert places[-1] == tmp_path
    assert synced == places
    assert named == [False] + [True] * 6


def test_a_put_can_be_repeated_after_a_disk_error_and_the_old_object_stays(tmp_path: Path) -> None:
    archive = FolderArchive(tmp_path)
    archive.put(NAME, b"old")
    (tmp_path / UNFINISHED).mkdir()
    with pytest.raises(UnavailableError, match="the archive"):
        archive.put(NAME, b"new")
    assert (tmp_path / NAME).read_bytes() == b"old"
    (tmp_path / UNFINISHED).rmdir()
    archive.put(NAME, b"new")
    assert (tmp_path / NAME).read_bytes() == b"new"


def test_a_folder_that_can_not_be_made_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "archive").write_text("a file")
    with pytest.raises(UnavailableError):
        FolderArchive(tmp_path / "archive").put(NAME, b"whole")
