"""The backup: a copy of the data folder, made while vu-mi runs or not.

The file is copied before the archive, so an entry that moves to the archive meanwhile is in one of
them. The target may be in a folder in which other users can write, such as `/tmp`: names of
unfinished backups are random, and nothing of another user is followed, written or removed.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from urllib.parse import quote

from vumi import secrets
from vumi.check import check
from vumi.check.report import FindingKind
from vumi.check.rights import LOCK, refuse_foreign_entries
from vumi.errors import ReportedError
from vumi.storage import archive
from vumi.storage.database import FILE, to_storage_error
from vumi.storage.private_files import (
    UnsafeFileError,
    empty_folder,
    is_private,
    new_file,
    new_folder,
    open_file,
    open_folder,
    others_may_rename,
)
from vumi.storage.read_only import open_read_only

RANDOM_BYTES = 16


class BackupError(ReportedError):
    """No backup was made, and nothing was changed. The message says why."""


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup that was made and checked."""

    target: Path
    objects: int


@dataclass(frozen=True, slots=True)
class _Unfinished:
    """The folder of a new backup, open, and the open folder in which it has a random name."""

    path: Path
    opened: int
    parent: int


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
    try:
        refuse_foreign_entries(folder)
        with _make_unfinished(target) as unfinished:
            _copy_database(folder / FILE, unfinished)
            on_file_copied()
            if (folder / secrets.FILE).exists():
                _copy(folder / secrets.FILE, unfinished.opened)
            objects = _copy_archive(folder / archive.FOLDER, unfinished.opened)
            os.fsync(unfinished.opened)
            _check(unfinished.path)
            _rename(unfinished, target, replace=replace)
    except (OSError, UnsafeFileError) as error:
        raise BackupError(f"the backup {target} failed: {error}") from error
    except sqlite3.Error as error:
        raise BackupError(f"the backup {target} failed: {to_storage_error(error)}") from error
    return Backup(target, objects)


def _check_target(folder: Path, target: Path, *, replace: bool) -> None:
    if target.resolve() == folder.resolve() or target.resolve() in folder.resolve().parents:
        raise BackupError(f"{target} contains DATA itself; give another folder")
    if target.is_symlink():
        raise BackupError(f"{target} is a symbolic link; give another name")
    if not target.exists():
        return
    if not replace:
        raise BackupError(f"{target} exists; give another name, or --replace to replace it")
    if not (target / FILE).is_file() or (target / LOCK).exists():
        raise BackupError(f"{target} is not a backup; give another name")


@contextmanager
def _make_unfinished(target: Path) -> Iterator[_Unfinished]:
    """Make and lock the folder of a new backup, and remove it if the backup fails."""
    with open_folder(target.parent) as parent:
        _remove_left(target.name, "part", parent)
        path = target.with_name(f".{target.name}.{token_hex(RANDOM_BYTES)}.part")
        with new_folder(path.name, parent) as opened:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            try:
                yield _Unfinished(path, opened, parent)
            except BaseException:
                _remove(path.name, opened, parent)
                raise


def _remove_left(name: str, suffix: str, parent: int) -> None:
    """Remove what killed backups of this name left, unless another user may have put it there."""
    if others_may_rename(parent):
        return
    pattern = re.compile(rf"\.{re.escape(name)}\.[0-9a-f]{{{2 * RANDOM_BYTES}}}\.{suffix}")
    for left in filter(pattern.fullmatch, os.listdir(parent)):
        with suppress(OSError), open_folder(left, parent) as opened:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails if a backup is writing it
            if is_private(opened):
                _remove(left, opened, parent)


def _remove(name: str, opened: int, parent: int) -> None:
    """Remove an open folder; another folder that has its name by now keeps what it contains."""
    empty_folder(opened)
    with suppress(OSError):
        os.rmdir(name, dir_fd=parent)


def _copy_database(source: Path, unfinished: _Unfinished) -> None:
    """Copy all pages with SQLite's backup, in one step; writers continue in the WAL.

    `VACUUM INTO` would rebuild every index, which takes processor time from visitors. In several
    steps, the backup would restart after each write. Source: sqlite.org, "Using the SQLite Online
    Backup API".

    SQLite opens files by their paths alone. It gets a random name that exists only in the open
    folder, and may not make a file, so it fails if another user has replaced the folder.
    """
    name = token_hex(RANDOM_BYTES)
    made = new_file(name, unfinished.opened)
    with closing(os.fdopen(made, "wb")):
        uri = f"file:{quote(str(unfinished.path / name))}?mode=rw"
        with open_read_only(source) as connection, closing(sqlite3.connect(uri, uri=True)) as copy:
            copy.execute("PRAGMA synchronous = OFF")
            connection.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
        os.fsync(made)
    os.rename(name, FILE, src_dir_fd=unfinished.opened, dst_dir_fd=unfinished.opened)


def _copy_archive(source: Path, to: int) -> int:
    """Copy the archive, if there is one; return the number of its objects."""
    if not source.exists():
        return 0
    with new_folder(source.name, to) as copy:
        return _copy_objects(source, copy)


def _copy_objects(source: Path, to: int) -> int:
    """Copy the finished objects, which never change; a hidden name means unfinished."""
    objects = 0
    for path in source.iterdir():
        if path.name.startswith("."):
            continue
        if path.is_dir() and not path.is_symlink():
            objects += _copy_archive(path, to)
        else:
            _copy(path, to)
            objects += 1
    os.fsync(to)
    return objects


def _copy(source: Path, to: int) -> None:
    with (
        os.fdopen(open_file(source, os.O_RDONLY), "rb") as original,
        os.fdopen(new_file(source.name, to), "wb") as copy,
    ):
        shutil.copyfileobj(original, copy)
        copy.flush()
        os.fsync(copy.fileno())


def _check(unfinished: Path) -> None:
    wrong = [
        one.message for one in check.check_content(unfinished) if one.kind is FindingKind.WRONG
    ]
    if wrong:
        raise BackupError(
            f"the backup was removed because its check failed: {wrong[0]}; run"
            " `python -m vumi check` to see all errors"
        )


def _rename(unfinished: _Unfinished, target: Path, *, replace: bool) -> None:
    """Rename the new backup, then remove the older one."""
    name, parent = target.name, unfinished.parent
    if replace and target.exists():
        before = f".{name}.{token_hex(RANDOM_BYTES)}.before"
        with open_folder(name, parent) as older:
            os.rename(name, before, src_dir_fd=parent, dst_dir_fd=parent)
            _put_in_place(unfinished, name)
            _remove(before, older, parent)
    else:
        _put_in_place(unfinished, name)
    _remove_left(name, "before", parent)


def _put_in_place(unfinished: _Unfinished, name: str) -> None:
    parent = unfinished.parent
    os.rename(unfinished.path.name, name, src_dir_fd=parent, dst_dir_fd=parent)
    os.fsync(parent)
    found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    if not os.path.samestat(found, os.fstat(unfinished.opened)):
        raise BackupError(
            f"another user has replaced {name}; give a folder in which only you can write"
        )
