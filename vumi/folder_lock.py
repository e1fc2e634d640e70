"""The lock of a data folder, which one process at a time may hold."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import IO

from vumi.check.rights import LOCK
from vumi.errors import ReportedError
from vumi.storage.private_files import FILE_MODE, open_file


class AlreadyRunningError(ReportedError):
    """Another process holds the folder."""


def lock_folder(folder: Path) -> IO[str]:
    """Lock the folder until the process ends: two engines would deliver each message twice."""
    lock = os.fdopen(open_file(folder / LOCK, os.O_RDWR | os.O_CREAT), "r+")
    os.fchmod(lock.fileno(), FILE_MODE)  # whoever can open a file can also lock it
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        process = lock.read().strip()
        lock.close()
        raise AlreadyRunningError(
            f"vu-mi already runs on {folder}/ (process {process}): stop it, or set DATA to"
            " another folder"
        ) from None
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    return lock
