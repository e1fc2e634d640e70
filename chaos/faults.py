"""Faults: a clock that jumps, and a disk that gets full.

The engine takes its clock as an argument, so a process gets this one. Any process with its file can
set it, and the offset stays when the process is killed. The disk is a small file system if the
process may mount one, otherwise a quota; the report says which.
"""

from __future__ import annotations

import mmap
import resource
import struct
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeAlias

SECONDS = struct.Struct("d")
DAY_SECONDS = 86_400


class Jump(NamedTuple):
    """A jump at a monotonic time, and the seconds that the clock showed before and after it."""

    at: float
    before: float
    after: float


class OffsetClock:
    """A clock: seconds since 1970 plus the offset in the file, which is made if it is missing.

    `jumps` has the jumps by this object; the first one changes nothing.
    """

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(SECONDS.pack(0.0))
        with path.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), SECONDS.size)
        self.jumps = [Jump(time.monotonic(), self(), self())]

    def __call__(self) -> float:
        return time.time() + self.offset

    @property
    def offset(self) -> float:
        """The seconds by which the clock is ahead."""
        [offset] = SECONDS.unpack_from(self._shared)
        return float(offset)

    def jump(self, seconds: float) -> None:
        """Set every clock on this file, forwards or backwards."""
        before = self()
        SECONDS.pack_into(self._shared, 0, self.offset + seconds)
        self.jumps.append(Jump(time.monotonic(), before, self()))

    def jump_before_midnight(self, seconds: float) -> None:
        """Set every clock forward to some seconds before a midnight (UTC)."""
        self.jump((-self() - seconds) % DAY_SECONDS)


SIZE = 128 * 2**20
"""The bytes of the small file system; a run stores some megabytes in it."""
BLOCK = 2**16


class SmallDisk:
    """A file system in memory; an extra file fills it."""

    name = f"tmpfs of {SIZE // 2**20} MiB"

    def __init__(self, folder: Path) -> None:
        """Mount the file system. Raises `OSError` if that is not allowed."""
        self._mounted = folder
        folder.mkdir(parents=True, exist_ok=True)
        mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)]
        if subprocess.run(mount, capture_output=True, check=False).returncode:  # noqa: S603
            raise OSError("no file system can be mounted")
        self.folder = folder / "data"
        self._ballast = folder / "ballast"

    def fill(self, _: int, spare: int) -> None:
        """Leave the process about `spare` bytes to write."""
        with self._ballast.open("wb", buffering=0) as ballast:
            with suppress(OSError):
                while ballast.write(bytes(BLOCK)) == BLOCK:
                    pass
            ballast.truncate(max(0, ballast.tell() - spare))

    def free(self, _: int) -> None:
        """Let the process write again."""
        self._ballast.unlink(missing_ok=True)

    def close(self) -> None:
        """Remove everything but the folder."""
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
        """Do nothing, because the limit ends with its process."""


def limit(pid: int, size: int) -> None:
    """Limit the size of each file that a process writes; Linux can set this from outside.

    Source: prlimit(2), `RLIMIT_FSIZE`; CPython ignores SIGXFSZ, so a write then fails with EFBIG.
    """
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))


def unlimit(pid: int) -> None:
    """Remove the limit of a process."""
    with suppress(ProcessLookupError):  # the process has ended
        _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))


def unmount(folder: Path) -> None:
    """Unmount what this run, or one that was killed, has mounted in a folder."""
    if folder.is_mount():
        subprocess.run(["umount", "--lazy", str(folder)], check=True)  # noqa: S603, S607


Disk: TypeAlias = SmallDisk | Quota
"""The disk with the machine's file."""


def small_disk(folder: Path, *, mounted: bool = True) -> Disk:
    """Return the small file system if possible, otherwise the quota."""
    if mounted:
        with suppress(OSError):
            return SmallDisk(folder)
    return Quota(folder)
