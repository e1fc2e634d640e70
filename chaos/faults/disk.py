"""A disk that gets full: a small file system where one may be mounted, else a quota.

Either is asked for while the run goes on, so the same run works as root, unprivileged and in a
container; the report says which it was.
"""

from __future__ import annotations

import resource
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Protocol

SIZE = 128 * 2**20
"""Bytes of the small file system: a run keeps some megabytes in it."""
BLOCK = 2**16


class Disk(Protocol):
    """Where the machine keeps its file."""

    name: str
    folder: Path

    def fill(self, pid: int, spare: int) -> None:
        """Leave the process so many bytes to write, about."""

    def free(self, pid: int) -> None:
        """Let it write again."""

    def close(self) -> None:
        """Leave nothing behind but the folder."""


class SmallDisk:
    """A file system in memory, filled by a file beside those of the machine."""

    name = f"tmpfs of {SIZE // 2**20} MiB"

    def __init__(self, folder: Path) -> None:
        """Mount it. Raises `OSError` where that is not allowed."""
        self._mounted = folder
        folder.mkdir(parents=True, exist_ok=True)
        mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)]
        if subprocess.run(mount, capture_output=True, check=False).returncode:  # noqa: S603
            raise OSError("no file system can be mounted")
        self.folder = folder / "data"
        self._ballast = folder / "ballast"

    def fill(self, pid: int, spare: int) -> None:
        del pid
        with self._ballast.open("wb", buffering=0) as ballast:
            with suppress(OSError):
                while ballast.write(bytes(BLOCK)) == BLOCK:
                    pass
            ballast.truncate(max(0, ballast.tell() - spare))

    def free(self, pid: int) -> None:
        del pid
        self._ballast.unlink(missing_ok=True)

    def close(self) -> None:
        unmount(self._mounted)


class Quota:
    """A limit on the size of the files that the process writes."""

    name = "RLIMIT_FSIZE"

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "data"
        self.folder.mkdir(parents=True)

    def fill(self, pid: int, spare: int) -> None:
        limit(pid, spare + BLOCK)

    def free(self, pid: int) -> None:
        unlimit(pid)

    def close(self) -> None:
        """Nothing is left: the limit ends with its process."""


def limit(pid: int, size: int) -> None:
    """Let a process write no byte of a file behind so many; Linux sets it from outside.

    Source: prlimit(2), `RLIMIT_FSIZE`; CPython ignores SIGXFSZ, so a write then fails with EFBIG.
    """
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))


def unlimit(pid: int) -> None:
    """Let it write again."""
    with suppress(ProcessLookupError):  # its limit ended with it
        _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))


def unmount(folder: Path) -> None:
    """Take away what a run, this one or one that was killed, has mounted here."""
    if folder.is_mount():
        subprocess.run(["umount", "--lazy", str(folder)], check=True)  # noqa: S603, S607


def small_disk(folder: Path, *, mounted: bool = True) -> Disk:
    """The best disk to be had here."""
    if mounted:
        with suppress(OSError):
            return SmallDisk(folder)
    return Quota(folder)
