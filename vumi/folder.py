"""The data folder of one machine: its files, their rights, its lock, and its secret of webhooks."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO

from chalicelib import telemetry
from chalicelib.events import sender
from chalicelib.settings import Settings, SettingsError
from vumi.errors import ReportedError
from vumi.storage import archive
from vumi.storage.database import FILE
from vumi.storage.file_format import SHM, WAL
from vumi.storage.private_files import FILE_MODE, UMASK, check_entry, check_owner, open_file

SECRETS = "secrets.json"
OVERVIEW = "overview.sqlite3"
LOCK = "vu-mi.lock"
"""The lock file of a folder on which vu-mi has run."""
IN_CURRENT_FOLDER = Path("data")
ENTRIES = (FILE, FILE + WAL, FILE + SHM, LOCK, SECRETS, archive.FOLDER, OVERVIEW)


def default_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of a user who names none: the same one, wherever the program starts.

    A file in the folder `data` of the current folder goes on being used. Without a home, as in a
    service, there is no other place. Source: the XDG Base Directory Specification.
    """
    shared = Path(environment.get("XDG_DATA_HOME", ""))
    if not shared.is_absolute():
        shared = Path(environment.get("HOME", "")) / ".local" / "share"
    if not shared.is_absolute() or os.access(IN_CURRENT_FOLDER / FILE, os.F_OK):
        return IN_CURRENT_FOLDER
    return shared / "vu-mi"


def refuse_foreign(folder: Path) -> None:
    """Raise `UnsafeFileError` if another user made the folder, or a file that vu-mi uses in it."""
    check_owner(folder)
    refuse_foreign_entries(folder)


def refuse_foreign_entries(folder: Path) -> None:
    """Raise `UnsafeFileError` if a file that vu-mi uses is a link or another user's."""
    for path in entries(folder):
        check_entry(path)


def warn_of_others(folder: Path) -> None:
    """Log if users other than its owner have rights to a folder: their operator gave them."""
    if mode := rights_of_others(folder):
        telemetry.event(
            logging.WARNING,
            "folder_not_private",
            folder=str(folder),
            mode=mode,
            fix=fix_rights(folder),
        )


def entries(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder that vu-mi uses."""
    for name in ENTRIES:
        path = folder / name
        if path.exists() or path.is_symlink():
            yield path


def rights_of_others(folder: Path) -> str:
    """Return the mode of a folder, in octal, or "" if only its owner has rights."""
    mode = stat.S_IMODE(folder.stat().st_mode)
    return f"{mode:o}" if mode & UMASK else ""


def fix_rights(folder: Path) -> str:
    """Return the command that takes the rights from other users."""
    return f"chmod -R go= {folder}"


def lock_folder(folder: Path) -> IO[str]:
    """Lock the folder until the process ends: two engines would deliver each message twice."""
    lock = os.fdopen(open_file(folder / LOCK, os.O_RDWR | os.O_CREAT), "r+")
    os.fchmod(lock.fileno(), FILE_MODE)  # whoever can open a file can also lock it
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        process = lock.read().strip()
        lock.close()
        raise ReportedError(
            f"vu-mi already runs on {folder}/ (process {process}): stop it, or set DATA to"
            " another folder"
        ) from None
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    return lock


def prepare_secret(settings: Settings, folder: Path) -> Settings:
    """Complete the settings from the file.

    Raises `OSError`, and `SettingsError` if the file is malformed.
    """
    if settings.webhook_secrets:
        return settings
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / SECRETS
    if not path.exists():
        _write_secret(path, sender.new_secret())
    return replace(settings, webhook_secrets=(_read_secret(path),))


def _write_secret(path: Path, secret: str) -> None:
    unfinished = path.with_suffix(".new")
    unfinished.unlink(missing_ok=True)  # left by a killed start, with an unknown mode
    with os.fdopen(
        os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE), "w"
    ) as file:
        json.dump({"webhook_secret": secret}, file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)


def _read_secret(path: Path) -> str:
    """Return the secret in the file. Raises `SettingsError` if it has none."""
    try:
        secret = json.loads(path.read_text())["webhook_secret"]
        sender.Signer([secret])
    except (AttributeError, KeyError, TypeError, ValueError):
        raise SettingsError(
            f"{path} must have a valid webhook_secret; correct it, or remove it to generate a new"
            " one"
        ) from None
    return str(secret)
