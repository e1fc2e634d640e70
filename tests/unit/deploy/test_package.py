"""A normalized zip has the same bytes for the same files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import pytest

from deploy.package import normalize

FILES = {
    "app.py": b"print('app')\n",
    "chalicelib/counting/view.py": b"put = 1\n" * 400,
    "chalicelib/__init__.py": b"",
    "chalicelib-1.0.dist-info/RECORD": bytes(range(256)),
}
LATER = (2026, 3, 14, 12, 0, 2)


@dataclass(frozen=True)
class Made:
    """The time, modes and system of the original zip."""

    time: tuple[int, int, int, int, int, int] = LATER
    mode: int = 0o600
    system: int = 3


def zipped(path: Path, files: Mapping[str, bytes], made: Made | None = None) -> Path:
    made = made or Made()
    with ZipFile(path, "w", ZIP_STORED) as written:
        for name, content in files.items():
            entry = ZipInfo(name, made.time)
            entry.external_attr = made.mode << 16
            entry.create_system = made.system
            written.writestr(entry, content)
    return path


def normalized(folder: Path, files: Mapping[str, bytes], made: Made | None = None) -> Path:
    normalize(zipped(folder / "given.zip", files, made), folder / "made.zip", None)
    return folder / "made.zip"


def contents(path: Path) -> dict[str, bytes]:
    with ZipFile(path) as opened:
        assert opened.testzip() is None
        return {name: opened.read(name) for name in opened.namelist()}


def test_all_files_are_kept_with_their_content_and_sorted_by_name(tmp_path: Path) -> None:
    made = contents(normalized(tmp_path, FILES))
    assert made == FILES
    assert list(made) == [
        "app.py",
        "chalicelib-1.0.dist-info/RECORD",
        "chalicelib/__init__.py",
        "chalicelib/counting/view.py",
    ]


def test_bytecode_made_elsewhere_and_folders_are_left_out(tmp_path: Path) -> None:
    """Bytecode contains the time of its source and works with one version of Python."""
    extra = {"chalicelib/": b"", "ulid/__pycache__/base32.cpython-311.pyc": b"x", "old.pyc": b"x"}
    assert contents(normalized(tmp_path, FILES | extra)) == FILES


def test_every_file_has_one_time_and_may_be_read_by_all_and_is_packed(tmp_path: Path) -> None:
    """The user of Lambda is not their owner and not in their group."""
    with ZipFile(normalized(tmp_path, FILES)) as made:
        entries = made.infolist()
    assert {entry.date_time for entry in entries} == {(1980, 1, 1, 0, 0, 0)}
    assert {entry.external_attr >> 16 for entry in entries} == {0o644}
    sizes = {entry.filename: (entry.file_size, entry.compress_size) for entry in entries}
    size, packed = sizes["chalicelib/counting/view.py"]
    assert size == 8 * 400
    assert packed < size / 10


@pytest.mark.parametrize(
    "other",
    [
        Made(time=(1999, 12, 31, 23, 59, 58)),
        Made(mode=0o755),
        Made(mode=0o100644),
        Made(system=0),  # MS-DOS, as Python on Windows writes it
    ],
)
def test_a_zip_made_elsewhere_of_the_same_files_becomes_the_same_bytes(
    tmp_path: Path, other: Made
) -> None:
    first = normalized(tmp_path, FILES).read_bytes()
    assert normalized(tmp_path, FILES, other).read_bytes() == first


def test_another_content_is_another_zip(tmp_path: Path) -> None:
    first = normalized(tmp_path, FILES).read_bytes()
    assert normalized(tmp_path, FILES | {"app.py": b"print('App')\n"}).read_bytes() != first
