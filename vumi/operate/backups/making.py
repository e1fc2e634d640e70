"""The backup: a checked copy of the data folder, made while vu-mi runs or not.

With `keep`, a folder has the latest backups, each under the time at which it was begun. Only
complete backups that this program made are removed: folders with such a name, private to this
user, that have what a backup has and nothing else. A server that has run on one left its lock.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from chalicelib.units import Seconds
from vumi.folder import SECRETS
from vumi.operate.backups.copying import (
    BackupError,
    hidden_name,
    lock_if_possible,
    make_copy,
    remove,
    remove_left,
    reporting,
)
from vumi.storage import archive
from vumi.storage.database import FILE
from vumi.storage.private_files import is_private, open_folder, others_may_rename

NAMES = r"vu-mi-\d{4}-\d\d-\d\dT\d{6}Z"
TIME = "%Y-%m-%dT%H%M%SZ"
CONTENT = {FILE, SECRETS, archive.FOLDER}


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup that was made and checked, and the older ones that were removed after it."""

    target: Path
    objects: int
    removed: tuple[Path, ...] = ()


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


def make_and_keep(folder: Path, within: Path, keep: int, now: Seconds) -> Backup:
    """Make a backup in a folder, then remove all but the latest `keep`. Raises `BackupError`.

    The new one is never removed, even if the clock was set back and others have later names.
    """
    within = within.absolute()
    with reporting(f"the backup in {within} failed"):
        _check_folder(within)
        made = make(folder, _find_name(within, now))
    with (
        reporting(f"{made.target} was made, but older backups could not be removed"),
        open_folder(within) as parent,
    ):
        older = _names(parent)[:-keep]
        removed = [name for name in older if name != made.target.name and _remove(name, parent)]
    return replace(made, removed=tuple(within / name for name in removed))


def _find_name(within: Path, now: Seconds) -> Path:
    """Return the name of the present second, or of the next one that has no backup."""
    times = (datetime.fromtimestamp(now + later, UTC) for later in count())
    names = (within / f"vu-mi-{at:{TIME}}" for at in times)
    return next(name for name in names if not name.exists())


def list_backups(within: Path) -> list[Path]:
    """List the complete backups in a folder, oldest first. Raises `OSError`."""
    with open_folder(within) as parent:
        return [within / name for name in _names(parent)]


def _check_folder(within: Path) -> None:
    """Check that backups may be removed here, and remove what killed ones left."""
    if not within.is_dir():
        raise BackupError(f"{within} is not a folder; make it, or mount its disk")
    with open_folder(within) as parent:
        if others_may_rename(parent):
            raise BackupError(
                f"other users can rename the backups in {within}: run `chmod go-w {within}`, or"
                " give a folder of your own"
            )
        remove_left(NAMES, parent)


def _names(parent: int) -> list[str]:
    names = filter(re.compile(NAMES).fullmatch, os.listdir(parent))
    return sorted(name for name in names if _is_complete(name, parent))


def _is_complete(name: str, parent: int) -> bool:
    try:
        with open_folder(name, parent) as opened:
            content = set(os.listdir(opened))  # noqa: PTH208  a Path has no descriptor
            return FILE in content and content <= CONTENT and is_private(opened)
    except OSError:
        return False


def _remove(name: str, parent: int) -> bool:
    """Remove a backup, unless a restore reads it. A killed removal leaves only a hidden folder."""
    with open_folder(name, parent) as opened:
        if not lock_if_possible(opened, fcntl.LOCK_EX):
            return False
        hidden = hidden_name(name, "old")
        os.rename(name, hidden, src_dir_fd=parent, dst_dir_fd=parent)
        remove(hidden, opened, parent)
    return True
