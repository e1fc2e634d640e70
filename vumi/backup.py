"""The backup: a copy of the data folder, made while vu-mi runs or not.

The file is copied before the archive, so an entry that moves to the archive meanwhile is in one of
them.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from vumi import secrets
from vumi.check import check
from vumi.check.report import FindingKind
from vumi.storage import archive
from vumi.storage.archive import sync_folder
from vumi.storage.database import FILE, to_storage_error
from vumi.storage.read_only import open_read_only

LOCK = "vu-mi.lock"
"""The lock file of a folder on which vu-mi has run."""
FOLDER_MODE = 0o700
"""The mode of a backup, which contains the webhook secret."""


class BackupError(Exception):
    """No backup was made, and nothing was changed. The message says why."""


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup that was made and checked."""

    target: Path
    objects: int


def make(
    folder: Path,
    target: Path,
    *,
    replace: bool = False,
    on_file_copied: Callable[[], None] = lambda: None,
) -> Backup:
    """Copy a data folder to a new folder, or replace an older backup. Raises `BackupError`.

    The copy is made under a hidden name, checked, and then renamed, so a folder with the name of a
    backup is complete. The next backup removes what a killed one left. `on_file_copied` is called
    between the file and the archive.
    """
    target = target.absolute()
    _check_target(folder, target, replace=replace)
    unfinished = target.with_name(f".{target.name}.part")
    try:
        with _lock_folder(unfinished):
            _copy_file(folder / FILE, unfinished / FILE)
            on_file_copied()
            _copy_secrets(folder / secrets.FILE, unfinished / secrets.FILE)
            objects = _copy_archive(folder / archive.FOLDER, unfinished / archive.FOLDER)
            sync_folder(unfinished)
            _check(unfinished)
            _replace(unfinished, target)
    except OSError as error:
        raise BackupError(f"the backup {target} failed: {error}") from error
    except sqlite3.Error as error:
        raise BackupError(f"the backup {target} failed: {to_storage_error(error)}") from error
    return Backup(target, objects)


def _check_target(folder: Path, target: Path, *, replace: bool) -> None:
    if target.resolve() == folder.resolve() or target.resolve() in folder.resolve().parents:
        raise BackupError(f"{target} contains DATA itself; give another folder")
    if not target.exists() and not target.is_symlink():
        return
    if not replace:
        raise BackupError(f"{target} exists; give another name, or --replace to replace it")
    if not (target / FILE).is_file() or (target / LOCK).exists():
        raise BackupError(f"{target} is not a backup; give another name")


@contextmanager
def _lock_folder(unfinished: Path) -> Iterator[None]:
    """Lock the folder of a new backup, and remove it if the backup fails."""
    unfinished.mkdir(mode=FOLDER_MODE, exist_ok=True)
    opened = os.open(unfinished, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BackupError(
                f"another backup is writing {unfinished}; wait until it ends"
            ) from None
        _empty(unfinished)
        try:
            yield
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
    finally:
        os.close(opened)


def _empty(folder: Path) -> None:
    """Remove the files that a killed backup left."""
    for entry in folder.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _copy_file(source: Path, copy: Path) -> None:
    """Copy all pages with SQLite's backup, in one step; writers continue in the WAL.

    `VACUUM INTO` would rebuild every index, which takes processor time from visitors. In several
    steps, the backup would restart after each write. Source: sqlite.org, "Using the SQLite Online
    Backup API".
    """
    with open_read_only(source) as connection, closing(sqlite3.connect(copy)) as made:
        made.execute("PRAGMA synchronous = OFF")
        connection.backup(made)
        made.execute("PRAGMA journal_mode = DELETE")
    _sync_file(copy)


def _copy_secrets(source: Path, copy: Path) -> None:
    if source.exists():
        copy.touch(mode=secrets.FILE_MODE)
        _copy(source, copy)


def _copy_archive(source: Path, copy: Path) -> int:
    """Copy the finished objects, which never change; a hidden name means unfinished."""
    objects = 0
    for folder, _, names in os.walk(source):
        to = copy / Path(folder).relative_to(source)
        to.mkdir()
        for name in names:
            if not name.startswith("."):
                _copy(Path(folder) / name, to / name)
                objects += 1
        sync_folder(to)
    return objects


def _copy(source: Path, copy: Path) -> None:
    shutil.copyfile(source, copy)
    _sync_file(copy)


def _sync_file(path: Path) -> None:
    with path.open("rb") as opened:
        os.fsync(opened.fileno())


def _check(unfinished: Path) -> None:
    wrong = [
        one.message for one in check.check_content(unfinished) if one.kind is FindingKind.WRONG
    ]
    if wrong:
        raise BackupError(
            f"the backup was removed because its check failed: {wrong[0]}; run"
            " `python -m vumi check` to see all errors"
        )


def _replace(unfinished: Path, target: Path) -> None:
    """Rename the new backup, then remove the older one."""
    before = target.with_name(f".{target.name}.before")
    shutil.rmtree(before, ignore_errors=True)
    if target.exists():
        target.rename(before)
    unfinished.rename(target)
    sync_folder(target.parent)
    shutil.rmtree(before, ignore_errors=True)
