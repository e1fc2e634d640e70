"""The rights of a data folder: nobody else may read it, write it, or plant a file in it."""

from __future__ import annotations

import logging
import stat
from collections.abc import Iterator
from pathlib import Path

from chalicelib import telemetry
from vumi import secrets
from vumi.admin import overview_file
from vumi.check.report import Finding, note, ok, wrong
from vumi.storage import archive
from vumi.storage.database import FILE
from vumi.storage.private_files import UMASK, UnsafeFileError, check_entry, check_owner
from vumi.storage.read_only import SHM, WAL

LOCK = "vu-mi.lock"
"""The lock file of a folder on which vu-mi has run."""
ENTRIES = (FILE, FILE + WAL, FILE + SHM, LOCK, secrets.FILE, archive.FOLDER, overview_file.FILE)


def refuse_foreign(folder: Path) -> None:
    """Raise `UnsafeFileError` if another user made the folder, or a file that vu-mi uses in it."""
    check_owner(folder)
    refuse_foreign_entries(folder)


def refuse_foreign_entries(folder: Path) -> None:
    """Raise `UnsafeFileError` if a file that vu-mi uses is a link or another user's."""
    for path in _entries(folder):
        check_entry(path)


def warn_of_others(folder: Path) -> None:
    """Log if users other than its owner have rights to a folder: their operator gave them."""
    if mode := _rights_of_others(folder):
        telemetry.event(
            logging.WARNING, "folder_not_private", folder=str(folder), mode=mode, fix=_fix(folder)
        )


def check(folder: Path) -> Iterator[Finding]:
    """Check the rights of a folder, and who made its files."""
    for path in _entries(folder):
        try:
            check_entry(path)
        except UnsafeFileError as error:
            yield wrong(str(error))
    if mode := _rights_of_others(folder):
        kind = wrong if folder.stat().st_mode & stat.S_IWOTH else note
        yield kind(f"other users have rights to {folder}/ (mode {mode}): run `{_fix(folder)}`")
    else:
        yield ok(f"no other user has rights to {folder}/")
    if (path := folder / secrets.FIRST_TOKEN).exists():
        yield note(f"{path} has the token of the first start: store it elsewhere, and remove it")


def _entries(folder: Path) -> Iterator[Path]:
    for name in ENTRIES:
        path = folder / name
        if path.exists() or path.is_symlink():
            yield path


def _rights_of_others(folder: Path) -> str:
    """Return the mode of a folder, in octal, or "" if only its owner has rights."""
    mode = stat.S_IMODE(folder.stat().st_mode)
    return f"{mode:o}" if mode & UMASK else ""


def _fix(folder: Path) -> str:
    return f"chmod -R go= {folder}"
