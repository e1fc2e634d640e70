"""The restore of a backup onto DATA, which never overwrites anything.

The backup is copied beside DATA and the copy is checked, as when a backup is made. Then one rename
gives it the name of DATA, so a restore that is killed leaves nothing or all. The backup itself is
only read.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from chalicelib.units import Seconds
from vumi.folder import ENTRIES, lock_folder
from vumi.operate.backups.copying import BackupError, Copy, lock_if_possible, make_copy, reporting
from vumi.operate.backups.making import TIME, list_backups
from vumi.storage.database import FILE
from vumi.storage.private_files import FOLDER_MODE, ROOT, open_folder


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
    """Restore a backup to a folder that does not exist or is empty. Raises `BackupError`.

    With `aside`, a data folder that is there gets a dated name. Raises `AlreadyRunningError` if a
    server runs on it. `on_file_copied` is called between the file and the archive.
    """
    backup, folder = backup.resolve(), folder.resolve()
    _check_places(backup, folder)
    with reporting(f"{backup} was not restored, and {folder} is as it was"), _hold(backup):
        if not _has_entries(folder):
            return _restore(backup, folder, None, on_file_copied)
        before = folder.with_name(f"{folder.name}.{datetime.fromtimestamp(now, UTC):{TIME}}")
        _check_used(backup, folder, before, aside=aside)
        with closing(lock_folder(folder)):
            return _restore(backup, folder, before, on_file_copied)


def _check_places(backup: Path, folder: Path) -> None:
    if not (backup / FILE).is_file():
        found = list_backups(backup) if backup.is_dir() else []
        advice = f"; its latest backup is {found[-1]}" if found else ""
        raise BackupError(f"{backup} is not a backup, because it has no {FILE}{advice}")
    if backup == folder or backup in folder.parents or folder in backup.parents:
        raise BackupError(f"{backup} and DATA ({folder}) are in each other; move the backup away")
    if folder.is_mount():
        raise BackupError(
            f"{folder} is a mount point, which no folder can replace: set DATA to a folder in it,"
            f" such as {folder / 'vu-mi'}, for this command and for the server"
        )


def _has_entries(folder: Path) -> bool:
    return folder.exists() and any(folder.iterdir())


def _check_used(backup: Path, folder: Path, before: Path, *, aside: bool) -> None:
    """Check that a folder with entries may be moved aside."""
    if not any((folder / name).exists() for name in ENTRIES):
        raise BackupError(f"{folder} has files, but none of vu-mi: set DATA to another folder")
    if not aside:
        raise BackupError(
            f"{folder} is not empty, and nothing was changed; stop vu-mi, and move the folder away:"
            f" mv {folder} {before} && DATA={folder} vumi restore {backup}; or let this command do"
            f" both: DATA={folder} vumi restore --aside {backup}"
        )
    if before.exists():
        raise BackupError(f"{before} exists; try again a second later")


@contextmanager
def _hold(backup: Path) -> Iterator[None]:
    """Keep `backup --keep` from removing a backup while it is read."""
    with open_folder(backup) as opened:
        lock_if_possible(opened, fcntl.LOCK_SH)
        yield


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
            raise BackupError(
                f"{folder} was made meanwhile, so nothing was restored there; stop vu-mi first"
                + (f"; the folder before is {before}" if before else "")
            ) from error
        raise
