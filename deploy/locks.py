"""The locks: files of exact versions of packages, with the hashes of the files of each release."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = "vu-mi"
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})\b")
NEEDED_BY = re.compile(r"^    # (?:via |  )(?!-c )(\S+)", re.MULTILINE)
"""A name in the comment in which uv says who needs a package."""
ENTRY = re.compile(r"^(?=[^\s#])", re.MULTILINE)


@dataclass(frozen=True)
class LockedPackage:
    """A package of a lock, with the SHA-256 hashes of its files and the packages that need it."""

    requirement: Requirement
    hashes: tuple[str, ...]
    needed_by: tuple[str, ...]

    @property
    def name(self) -> str:
        return canonicalize_name(self.requirement.name)

    @property
    def version(self) -> str:
        return str(self.requirement.specifier).removeprefix("==")

    def is_direct(self) -> bool:
        """Return whether the project itself needs it."""
        return PROJECT in self.needed_by

    def is_installed(self) -> bool:
        """Return whether this Python on this platform gets it."""
        marker = self.requirement.marker
        return marker is None or marker.evaluate()


def read(lock: Path) -> list[LockedPackage]:
    """Read the packages of a lock."""
    return [_parse(entry) for entry in ENTRY.split(lock.read_text())[1:]]


def _parse(entry: str) -> LockedPackage:
    line = entry.partition("\n")[0].partition(" --hash")[0].removesuffix("\\")
    return LockedPackage(
        Requirement(line), tuple(HASH.findall(entry)), tuple(NEEDED_BY.findall(entry))
    )
