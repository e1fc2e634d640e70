"""A backup of everything, made while vu-mi runs or not: a folder that can be its `DATA`.

The file comes first, then the archive: what leaves the table meanwhile is then in one of them.
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
from vumi.check.report import Kind
from vumi.storage import archive
from vumi.storage.archive import sync_folder
from vumi.storage.database import FILE, translated
from vumi.storage.read_only import reading

LOCK = "vu-mi.lock"
"""What a folder has once vu-mi runs on it."""
OWNERS_ALONE = 0o700
"""It has the secret that webhooks are signed with."""


class BackupError(Exception):
    """There is no backup; the message says why, and what stands is as it was."""


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
    meanwhile: Callable[[], None] = lambda: None,
) -> Backup:
    """Copy all of a data folder to a new one, or in the place of an older backup.

    It is made beside its place under a hidden name, checked, and then renamed, so that what has the
    name of a backup is one. What a killed one left is removed by the next. `meanwhile` is what
    others do once the file is copied. Raises `BackupError`.
    """
    target = target.absolute()
    _check_target(folder, target, replace=replace)
    begun = target.with_name(f".{target.name}.part")
    try:
        with _begun(begun):
            _copy_file(folder / FILE, begun / FILE)
            meanwhile()
            _copy_secrets(folder / secrets.FILE, begun / secrets.FILE)
            objects = _copy_archive(folder / archive.FOLDER, begun / archive.FOLDER)
            sync_folder(begun)
            _check(begun)
            _rename(begun, target)
    except OSError as error:
        raise BackupError(f"{target} is not made: {error}") from error
    except sqlite3.Error as error:
        raise BackupError(f"{target} is not made: {translated(error)}") from error
    return Backup(target, objects)


def _check_target(folder: Path, target: Path, *, replace: bool) -> None:
    if target.resolve() == folder.resolve() or target.resolve() in folder.resolve().parents:
        raise BackupError(f"{target} has the data itself; give another folder")
    if not target.exists() and not target.is_symlink():
        return
    if not replace:
        raise BackupError(f"{target} is there; give another name, or --replace to make it anew")
    if not (target / FILE).is_file() or (target / LOCK).exists():
        raise BackupError(f"{target} is no backup; give another name")


@contextmanager
def _begun(begun: Path) -> Iterator[None]:
    """A folder of this backup alone, which is gone where that fails."""
    begun.mkdir(mode=OWNERS_ALONE, exist_ok=True)
    opened = os.open(begun, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BackupError(f"another backup writes {begun}; let it end") from None
        _empty(begun)
        try:
            yield
        except BaseException:
            shutil.rmtree(begun, ignore_errors=True)
            raise
    finally:
        os.close(opened)


def _empty(folder: Path) -> None:
    """Remove what a killed backup left."""
    for entry in folder.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _copy_file(source: Path, copy: Path) -> None:
    """All pages at once, by SQLite's own backup: writers go on meanwhile, into the WAL.

    `VACUUM INTO` would build every index anew, which takes more of the processor that visitors
    wait for. Page by page it would begin anew whenever something is written. Source: sqlite.org,
    "Using the SQLite Online Backup API".
    """
    with reading(source) as connection, closing(sqlite3.connect(copy)) as made:
        made.execute("PRAGMA synchronous = OFF")
        connection.backup(made)
        made.execute("PRAGMA journal_mode = DELETE")
    _sync_file(copy)


def _copy_secrets(source: Path, copy: Path) -> None:
    if source.exists():
        copy.touch(mode=secrets.OWNERS_ALONE)
        _copy(source, copy)


def _copy_archive(source: Path, copy: Path) -> int:
    """Objects are never changed or removed; what has no name of one is unfinished."""
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


def _check(begun: Path) -> None:
    wrong = [one.what for one in check.check_content(begun) if one.kind is Kind.WRONG]
    if wrong:
        raise BackupError(
            f"the copy is not kept, for it is not right: {wrong[0]}; `python -m vumi check` says"
            " what else is wrong"
        )


def _rename(begun: Path, target: Path) -> None:
    """The backup from before goes only when the new one has its name."""
    before = target.with_name(f".{target.name}.before")
    shutil.rmtree(before, ignore_errors=True)
    if target.exists():
        target.rename(before)
    begun.rename(target)
    sync_folder(target.parent)
    shutil.rmtree(before, ignore_errors=True)
