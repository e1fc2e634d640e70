"""The archive in a folder. Each object is a file, complete or absent."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.ports import check_object_name

FOLDER = "archive"
"""The folder of the objects, next to the file."""
UNFINISHED = ".part"
"""The name of an unfinished object; no object's name begins with a dot."""


class FolderArchive:
    """A `ports.Archive` in one folder, which is created when needed. Only one thread may put.

    An object survives a power cut once `put` has returned. An error of the disk raises
    `UnavailableError`, because the same put works after the disk is repaired.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, name: str, body: bytes) -> None:
        check_object_name(name)
        file = self._folder / name
        with _translate_errors():
            file.parent.mkdir(parents=True, exist_ok=True)
            self._write(file, body)
            parents = [*file.parents]  # up to that of the archive, any may have a new entry
            for folder in parents[: parents.index(self._folder.parent) + 1]:
                sync_folder(folder)

    def read_all(self) -> Iterator[tuple[str, bytes]]:
        """Yield the name and the content of each object. Raises `UnavailableError`."""
        with _translate_errors():
            for file in sorted(self._folder.rglob("*")):
                if file.is_file() and not file.name.startswith("."):
                    yield file.relative_to(self._folder).as_posix(), file.read_bytes()

    def _write(self, file: Path, body: bytes) -> None:
        """Write under a fixed name first, which overwrites the rest of a killed process."""
        unfinished = self._folder / UNFINISHED
        with unfinished.open("wb") as opened:
            opened.write(body)
            opened.flush()
            os.fsync(opened.fileno())
        unfinished.replace(file)


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to the disk (fsync(2))."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UnavailableError(f"the archive failed: {error}") from error
