"""Files and folders that other users of the machine can neither read nor replace.

A file is refused if it is a symbolic link, or if another user made it. Functions that get a folder
as a descriptor work in that folder, even if another user renames it meanwhile.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vumi.errors import ReportedError

FOLDER_MODE = 0o700
FILE_MODE = 0o600
UMASK = 0o077
"""The rights that no new file or folder gives to other users."""
ROOT = 0
"""The id of the user who can replace every file."""


class UnsafeFileError(ReportedError):
    """Another user may control a file or a folder. The message says how to fix that."""


def check_owner(folder: Path) -> None:
    """Raise `UnsafeFileError` if a folder belongs to neither this user nor root."""
    owner = folder.stat().st_uid
    if owner not in {ROOT, os.geteuid()}:
        raise UnsafeFileError(
            f"{folder}/ belongs to another user (id {owner}): run vu-mi as that user, or set DATA"
            " to a folder of your own"
        )


def check_entry(path: Path, opened: int | None = None) -> None:
    """Raise `UnsafeFileError` if a file or folder is a link, special, or another user's.

    The user of this program, the owner of the folder that it is in, and root may have made it.
    """
    found = path.lstat() if opened is None else os.fstat(opened)
    if stat.S_ISLNK(found.st_mode):
        raise UnsafeFileError(f"{path} is a symbolic link: replace it by what it points to")
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        raise UnsafeFileError(f"{path} is not a regular file: remove it")
    if found.st_uid not in {ROOT, os.geteuid(), path.parent.stat().st_uid}:
        raise UnsafeFileError(
            f"{path} belongs to another user (id {found.st_uid}): remove it, or give it to the user"
            " that runs vu-mi by `chown`"
        )


def open_file(path: Path, flags: int) -> int:
    """Open a regular file; a new one is for its owner only. Raises `UnsafeFileError`, `OSError`."""
    try:
        opened = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, mode=FILE_MODE)
    except OSError as error:
        if error.errno == errno.ELOOP:
            check_entry(path)
        raise
    try:
        check_entry(path, opened)
    except BaseException:
        os.close(opened)
        raise
    return opened


def new_file(name: str, folder: int) -> int:
    """Make a file, for its owner only, where nothing may be yet."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    return os.open(name, flags, mode=FILE_MODE, dir_fd=folder)


@contextmanager
def open_folder(path: Path | str, within: int | None = None) -> Iterator[int]:
    """Open a folder. A name within another folder may not be a link."""
    flags = os.O_RDONLY | os.O_DIRECTORY | (0 if within is None else os.O_NOFOLLOW)
    opened = os.open(path, flags, dir_fd=within)
    try:
        yield opened
    finally:
        os.close(opened)


@contextmanager
def new_folder(name: str, within: int) -> Iterator[int]:
    """Make a folder, for its owner only, and open it. Raises `UnsafeFileError`, `OSError`."""
    os.mkdir(name, mode=FOLDER_MODE, dir_fd=within)
    with open_folder(name, within) as opened:
        if not is_private(opened) or os.listdir(opened):  # noqa: PTH208  a Path has no descriptor
            raise UnsafeFileError(f"another user has replaced the new folder {name}: try again")
        yield opened


def is_private(folder: int) -> bool:
    """Return whether only this user and root may use a folder."""
    found = os.fstat(folder)
    return found.st_uid == os.geteuid() and not found.st_mode & UMASK


def others_may_rename(folder: int) -> bool:
    """Return whether a user other than this one and root may rename the entries of a folder."""
    found = os.fstat(folder)
    is_shared = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX
    return bool(is_shared) or found.st_uid not in {ROOT, os.geteuid()}


def empty_folder(folder: int) -> None:
    """Remove all entries of a folder."""
    for name in os.listdir(folder):
        if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            shutil.rmtree(name, dir_fd=folder)
        else:
            os.unlink(name, dir_fd=folder)
