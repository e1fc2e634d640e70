"""The backup: a checked copy of the data folder, made while vu-mi runs or not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from vumi.backups.copying import BackupError, make_copy, reporting


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup that was made and checked."""

    target: Path
    objects: int


def make(
    folder: Path, target: Path, *, on_file_copied: Callable[[], None] = lambda: None
) -> Backup:
    """Copy a data folder to a new folder, completely or not at all. Raises `BackupError`.

    `on_file_copied` is called between the file and the archive.
    """
    target = target.absolute()
    _check_target(folder, target)
    with (
        reporting(f"the backup {target} failed"),
        make_copy(folder, target, on_file_copied) as copy,
    ):
        copy.put_in_place(target.name)
    return Backup(target, copy.objects)


def _check_target(folder: Path, target: Path) -> None:
    data, resolved = folder.resolve(), target.resolve()
    if resolved == data or resolved in data.parents:
        raise BackupError(f"{target} contains DATA itself; give another folder")
    if data in resolved.parents:
        raise BackupError(f"{target} is in DATA, and would be lost with it; give another folder")
    if target.is_symlink():
        raise BackupError(f"{target} is a symbolic link; give another name")
    if target.exists():
        raise BackupError(f"{target} exists; give another name, or use --keep")
