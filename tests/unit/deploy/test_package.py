"""A normalized zip has the same bytes for the same files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import pytest

from deploy.package import normalize

FILES = {
    "app.py": b"print('app')\n",
    "chalicelib/counting/view.py": b"put = 1\n" * 400,
    "chalicelib/__init__.py": b"",
    "chalicelib-1.0.dist-info/RECORD": bytes(range(256)),
}


def zipped(
    path: Path,
    files: Mapping[str, bytes],
    time: tuple[int, int, int, int, int, int] = (2026, 3, 14, 12, 0, 2),
    mode: int = 0o600,
    system: int = 3,
) -> Path:
    with ZipFile(path, "w", ZIP_STORED) as written:
        for name, content in files.items():
            entry = ZipInfo(name, time)
            entry.external_attr = mode << 16
            entry.create_system = system
            written.writestr(entry, content)
    return path


def normalized(folder: Path, files: Mapping[str, bytes], **made: Any) -> Path:
    normalize(zipped(folder / "given.zip", files, **made), folder / "made.zip", None)
    return folder / "made.zip"


def test_a_zip_has_sorted_files_of_one_time_that_all_may_read_without_bytecode(
    tmp_path: Path,
) -> None:
    """Bytecode contains the time of its source and works with one version of Python.

    The user of Lambda is not the owner of the files and not in their group.
    """
    extra = {"chalicelib/": b"", "chalice/__pycache__/app.cpython-311.pyc": b"x", "old.pyc": b"x"}
    with ZipFile(normalized(tmp_path, FILES | extra)) as made:
        assert made.testzip() is None
        entries = made.infolist()
        assert {entry.filename: made.read(entry) for entry in entries} == FILES
    assert [entry.filename for entry in entries] == sorted(FILES)
    assert {entry.date_time for entry in entries} == {(1980, 1, 1, 0, 0, 0)}
    assert {entry.external_attr >> 16 for entry in entries} == {0o644}
    assert sum(entry.compress_size for entry in entries) < sum(map(len, FILES.values())) / 2


@pytest.mark.parametrize(
    "made",
    [
        {"time": (1999, 12, 31, 23, 59, 58)},
        {"mode": 0o755},
        {"mode": 0o100644},
        {"system": 0},  # MS-DOS, as Python on Windows writes it
    ],
)
def test_a_zip_made_elsewhere_of_the_same_files_becomes_the_same_bytes(
    tmp_path: Path, made: dict[str, Any]
) -> None:
    first = normalized(tmp_path, FILES).read_bytes()
    assert normalized(tmp_path, FILES, **made).read_bytes() == first
