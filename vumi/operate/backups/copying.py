"""The copy of a data folder under a hidden name, checked before it gets its final name.

The file is copied before the archive, so an entry that moves to the archive meanwhile is in one of
them. The copy may be in a folder in which other users can write, such as `/tmp`: names of
unfinished copies are random, and nothing of another user is followed, written or removed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from urllib.parse import quote

from chalicelib.storage.errors import StorageError
from vumi.errors import ReportedError
from vumi.folder import SECRETS, refuse_foreign_entries
from vumi.operate.check import check
from vumi.operate.check.items import FindingKind
from vumi.storage import archive
from vumi.storage.database import FILE, to_storage_error
from vumi.storage.file_format import FORMAT, open_read_only, open_without_locks
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

RANDOM_BYTES = 16
ADVICE = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "; make room on the disk"),
    errno.EACCES: "; run it as a user who may write the folder around it",
}


@dataclass(slots=True)
class Copy:
    """A copy under a random name: its open folder, that around it, and the number of objects."""

    path: Path
    opened: int
    parent: int
    objects: int = 0

    def put_in_place(self, name: str) -> None:
        """Give the copy its name, which nothing or an empty folder may have. Raises `OSError`."""
        os.rename(self.path.name, name, src_dir_fd=self.parent, dst_dir_fd=self.parent)
        os.fsync(self.parent)
        found = os.stat(name, dir_fd=self.parent, follow_symlinks=False)
        if not os.path.samestat(found, os.fstat(self.opened)):
            raise ReportedError(
                f"another user has replaced {name}; give a folder in which only you can write"
            )


def clean_up_on_sigterm() -> None:
    """Interrupt the command by SIGTERM as by SIGINT, so that it removes its unfinished copy."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@contextmanager
def reporting(failed: str) -> Iterator[None]:
    """Raise `ReportedError` in place of an error of the disk or of SQLite."""
    try:
        yield
    except (OSError, UnsafeFileError, StorageError, sqlite3.Error) as error:
        reason = to_storage_error(error) if isinstance(error, sqlite3.Error) else error
        advice = ADVICE.get(error.errno or 0, "") if isinstance(error, OSError) else ""
        raise ReportedError(f"{failed}: {reason}{advice}") from error


@contextmanager
def make_copy(
    source: Path,
    target: Path,
    on_file_copied: Callable[[], None] = lambda: None,
    *,
    migrates: bool = False,
) -> Iterator[Copy]:
    """Copy a data folder beside a target, and check the copy; remove it if the block fails.

    A folder with the name of the target is complete, because the copy is renamed last. The next
    copy removes what a killed one left. `on_file_copied` is called between the file and the
    archive. An older file is refused, unless its copy `migrates`. Raises `ReportedError`,
    `OSError`, `UnsafeFileError` and `sqlite3.Error`.
    """
    refuse_foreign_entries(source)
    with _make_unfinished(target) as copy:
        _copy_database(source / FILE, copy, migrates=migrates)
        on_file_copied()
        if (source / SECRETS).exists():
            _copy_file(source / SECRETS, copy.opened)
        copy.objects = _copy_archive(source / archive.FOLDER, copy.opened)
        os.fsync(copy.opened)
        _check(source, copy.path)
        yield copy


@contextmanager
def _make_unfinished(target: Path) -> Iterator[Copy]:
    """Make and lock the folder of a copy, and remove it if the block fails."""
    with open_folder(target.parent) as parent:
        remove_left(re.escape(target.name), parent)
        path = target.with_name(hidden_name(target.name, "part"))
        with new_folder(path.name, parent) as opened:
            lock_if_possible(opened, fcntl.LOCK_EX)
            try:
                yield Copy(path, opened, parent)
            except BaseException:
                remove(path.name, opened, parent)
                raise


def lock_if_possible(opened: int, operation: int) -> bool:
    """Lock a folder, and return False if another process has locked it.

    A network disk may have no locks of folders; then commands don't wait for each other.
    """
    try:
        fcntl.flock(opened, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def hidden_name(name: str, suffix: str) -> str:
    """Return a random name for a folder that is not complete yet, or no longer."""
    return f".{name}.{token_hex(RANDOM_BYTES)}.{suffix}"


def remove_left(names: str, parent: int) -> None:
    """Remove what killed commands left of folders whose names match a pattern.

    Nothing is removed where another user may have put it.
    """
    if others_may_rename(parent):
        return
    pattern = re.compile(rf"\.{names}\.[0-9a-f]{{{2 * RANDOM_BYTES}}}\.(part|old)")
    for left in filter(pattern.fullmatch, os.listdir(parent)):
        with suppress(OSError), open_folder(left, parent) as opened:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails if a command is writing it
            if is_private(opened):
                remove(left, opened, parent)


def remove(name: str, opened: int, parent: int) -> None:
    """Remove an open folder; another folder that has its name by now keeps what it contains."""
    empty_folder(opened)
    with suppress(OSError):
        os.rmdir(name, dir_fd=parent)


def _copy_database(source: Path, unfinished: Copy, *, migrates: bool) -> None:
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
        with (
            open_read_only(source) as connection,
            closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as copy,
        ):
            FORMAT.examine(connection, migrates=migrates)
            copy.execute("PRAGMA synchronous = OFF")
            connection.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
            copy.execute("PRAGMA journal_mode = MEMORY")  # a migration makes no file beside it
            FORMAT.migrate(copy)
        os.fsync(made)
    os.rename(name, FILE, src_dir_fd=unfinished.opened, dst_dir_fd=unfinished.opened)


def _copy_archive(source: Path, to: int) -> int:
    """Copy the archive, if there is one; return the number of its objects.

    Finished objects never change, and a hidden name means unfinished.
    """
    if not source.exists():
        return 0
    objects = 0
    with new_folder(source.name, to) as copy:
        for path in source.iterdir():
            if path.name.startswith("."):
                continue
            if path.is_dir() and not path.is_symlink():
                objects += _copy_archive(path, copy)
            else:
                _copy_file(path, copy)
                objects += 1
        os.fsync(copy)
    return objects


def _copy_file(source: Path, to: int) -> None:
    with (
        os.fdopen(open_file(source, os.O_RDONLY), "rb") as original,
        os.fdopen(new_file(source.name, to), "wb") as copy,
    ):
        shutil.copyfileobj(original, copy)
        copy.flush()
        os.fsync(copy.fileno())


def _check(source: Path, copy: Path) -> None:
    """Check the content of a copy. Raises `ReportedError` if it is wrong."""
    findings = check.check_content(copy, open_without_locks)
    wrong = [one.message for one in findings if one.kind is FindingKind.WRONG]
    if wrong:
        raise ReportedError(
            f"the copy of {source} was removed because its check failed: {wrong[0]}; run"
            f" `DATA={source} vumi check` to see all errors"
        )
