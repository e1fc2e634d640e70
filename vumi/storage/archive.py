"""The `Archive` in a folder: each object is a file, there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chalicelib.storage.errors import Unavailable
from chalicelib.storage.ports import check_object_name

FOLDER = "archive"
"""Where the objects lie, beside the file of the table."""
UNFINISHED = ".part"
"""No object's name begins with a dot."""


class FolderArchive:
    """A `ports.Archive` in one folder, which is made when it is needed; one thread puts at a time.

    What `put` has returned from survives a power cut. Anything wrong with the disk is
    `Unavailable`: once it is mended the same put works.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, name: str, body: bytes) -> None:
        check_object_name(name)
        file = self._folder / name
        with _translated():
            file.parent.mkdir(parents=True, exist_ok=True)
            self._write(file, body)
            for folder in self._folders(file):
                sync_folder(folder)

    def _write(self, file: Path, body: bytes) -> None:
        """One name for what is unfinished: what a killed process left behind is written over."""
        unfinished = self._folder / UNFINISHED
        with unfinished.open("wb") as opened:
            opened.write(body)
            opened.flush()
            os.fsync(opened.fileno())
        unfinished.replace(file)

    def _folders(self, file: Path) -> Iterator[Path]:
        """Every folder that may have got a new name in it, up to the one that the archive is in."""
        for folder in file.parents:
            yield folder
            if folder == self._folder.parent:
                return


def sync_folder(folder: Path) -> None:
    """A name is on the disk once its folder is (fsync(2))."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unavailable(f"the archive: {error}") from error
