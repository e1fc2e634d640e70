"""Backups, which are checked copies of the data folder, and their restore onto `DATA`.

With `keep`, a folder has the latest backups, each under the time at which it was begun. Only
complete backups that this program made are removed: folders with such a name, private to this
user, that have what a backup has and nothing else. A server that has run on one left its lock.

A restore never overwrites anything. It copies the backup beside DATA and checks the copy. Then one
rename gives it the name of DATA, so a restore that is killed leaves nothing or all.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from chalicelib.units import Seconds
from vumi.errors import ReportedError
from vumi.folder import ENTRIES, SECRETS, lock_folder
from vumi.operate.backups.copying import (
    Copy,
    hidden_name,
    lock_if_possible,
    make_copy,
    remove,
    remove_left,
    reporting,
)
from vumi.storage import archive
from vumi.storage.database import FILE
from vumi.storage.private_files import FOLDER_MODE, ROOT, is_private, open_folder, others_may_rename

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
    """Copy a data folder to a new folder, completely or not at all. Raises `ReportedError`.

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
        raise ReportedError(f"{target} contains DATA itself; give another folder")
    if data in resolved.parents:
        raise ReportedError(f"{target} is in DATA, and would be lost with it; give another folder")
    if target.is_symlink():
        raise ReportedError(f"{target} is a symbolic link; give another name")
    if target.exists():
        raise ReportedError(f"{target} exists; give another name, or use --keep")


def make_and_keep(folder: Path, within: Path, keep: int, now: Seconds) -> Backup:
    """Make a backup in a folder, then remove all but the latest `keep`. Raises `ReportedError`.

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
        raise ReportedError(f"{within} is not a folder; make it, or mount its disk")
    with open_folder(within) as parent:
        if others_may_rename(parent):
            raise ReportedError(
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


@dataclass(frozen=True, slots=True)
class Restored:
    """A restored data folder, and the name that the one before it has now, if there was one."""

    folder: Path
    objects: int
    before: Path | None


def restore(
    backup: Path,
    folder: Path,
    now: Seconds,
    *,
    aside: bool = False,
    on_file_copied: Callable[[], None] = lambda: None,
) -> Restored:
    """Restore a backup to a folder that does not exist or is empty. Raises `ReportedError`.

    With `aside`, a data folder that is there gets a dated name, unless a server runs on it.
    `on_file_copied` is called between the file and the archive.
    """
    backup, folder = backup.resolve(), folder.resolve()
    _check_places(backup, folder)
    with (
        reporting(f"{backup} was not restored, and {folder} is as it was"),
        open_folder(backup) as opened,
    ):
        lock_if_possible(opened, fcntl.LOCK_SH)  # `backup --keep` must not remove it meanwhile
        if not (folder.exists() and any(folder.iterdir())):
            return _restore(backup, folder, None, on_file_copied)
        before = folder.with_name(f"{folder.name}.{datetime.fromtimestamp(now, UTC):{TIME}}")
        _check_used(backup, folder, before, aside=aside)
        with closing(lock_folder(folder)):
            return _restore(backup, folder, before, on_file_copied)


def _check_places(backup: Path, folder: Path) -> None:
    if not (backup / FILE).is_file():
        found = list_backups(backup) if backup.is_dir() else []
        advice = f"; its latest backup is {found[-1]}" if found else ""
        raise ReportedError(f"{backup} is not a backup, because it has no {FILE}{advice}")
    if backup == folder or backup in folder.parents or folder in backup.parents:
        raise ReportedError(f"{backup} and DATA ({folder}) are in each other; move the backup away")
    if folder.is_mount():
        raise ReportedError(
            f"{folder} is a mount point, which no folder can replace: set DATA to a folder in it,"
            f" such as {folder / 'vu-mi'}, for this command and for the server"
        )


def _check_used(backup: Path, folder: Path, before: Path, *, aside: bool) -> None:
    """Check that a folder with entries may be moved aside."""
    if not any((folder / name).exists() for name in ENTRIES):
        raise ReportedError(f"{folder} has files, but none of vu-mi: set DATA to another folder")
    if not aside:
        raise ReportedError(
            f"{folder} is not empty, and nothing was changed; stop vu-mi, and move the folder away:"
            f" mv {folder} {before} && DATA={folder} vumi restore {backup}; or let this command do"
            f" both: DATA={folder} vumi restore --aside {backup}"
        )
    if before.exists():
        raise ReportedError(f"{before} exists; try again a second later")


def _restore(
    backup: Path, folder: Path, before: Path | None, on_file_copied: Callable[[], None]
) -> Restored:
    folder.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    owner = (folder if folder.exists() else backup).stat()
    with make_copy(backup, folder, on_file_copied, migrates=True) as copy:
        if os.geteuid() == ROOT:
            _give(copy.opened, owner.st_uid, owner.st_gid)
        _replace(copy, folder, before)
    return Restored(folder, copy.objects, before)


def _give(opened: int, user: int, group: int) -> None:
    """Give all of a folder to the user that runs vu-mi, if root restores it."""
    for _, _, files, within in os.fwalk(dir_fd=opened):
        os.fchown(within, user, group)
        for name in files:
            os.chown(name, user, group, dir_fd=within, follow_symlinks=False)


def _replace(copy: Copy, folder: Path, before: Path | None) -> None:
    """Move the present folder aside, if there is one, and put the copy in its place."""
    if before is not None:
        folder.rename(before)
    try:
        copy.put_in_place(folder.name)
    except BaseException as error:
        if before is not None and not folder.exists():
            before.rename(folder)
        if isinstance(error, OSError) and error.errno == errno.ENOTEMPTY:
            raise ReportedError(
                f"{folder} was made meanwhile, so nothing was restored there; stop vu-mi first"
                + (f"; the folder before is {before}" if before else "")
            ) from error
        raise
