"""The wheel: the same bytes from every build; `test_containerfile.py` installs and runs it."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from chalicelib import VERSION
from simulation.environment import ROOT
from tests.processes.programs import offline_pip, succeed

PACKAGES = ("chalicelib", "vumi")
EXAMPLES = ("examples/Caddyfile", "examples/nginx.conf", "examples/systemd")
"""The examples that `vumi init` writes."""
FILES = ("LICENSE", "README.md", "pyproject.toml")
"""The files that the wheel is made of, beside its packages and examples."""
TIME = 1_000_000_000
DATE = (2001, 9, 9, 1, 46, 40)


def run(*command: str | Path) -> None:
    """Run a module of Python, which finds packages in a folder alone."""
    environment = {**offline_pip(), "SOURCE_DATE_EPOCH": str(TIME)}
    succeed(sys.executable, "-m", *command, env=environment)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel that pip builds."""
    out = tmp_path_factory.mktemp("built")
    run("pip", "wheel", "--no-deps", "--wheel-dir", out, ROOT)
    [wheel] = out.iterdir()
    return wheel


def test_the_wheel_has_the_two_packages_with_their_data_and_nothing_else(wheel: Path) -> None:
    sources = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    data = {
        "chalicelib/http/head.html",
        "chalicelib/http/page.html",
        "chalicelib/pages/badge_page.html",
        "chalicelib/pages/own.html",
        "chalicelib/badges/logos.json",
        "vumi/storage/migrations/0001_initial.sql",
    }
    assert data <= sources
    examples = {
        f"vumi/{path.relative_to(ROOT)}"
        for example in map(ROOT.joinpath, EXAMPLES)
        for path in (example, *example.rglob("*"))
        if path.is_file()
    }
    described = f"vu_mi-{VERSION}.dist-info"
    names = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")
    with ZipFile(wheel) as zipped:
        assert set(zipped.namelist()) == sources | examples | {
            f"{described}/{name}" for name in names
        }


def test_every_build_has_the_same_bytes(wheel: Path, tmp_path: Path) -> None:
    """Neither uv, nor the folder, times, rights and caches of the sources change the wheel."""
    copy = tmp_path / "copy"
    for folder in (*PACKAGES, "examples"):
        shutil.copytree(ROOT / folder, copy / folder)
    for name in FILES:
        shutil.copy(ROOT / name, copy)
    for path in copy.rglob("*.py"):
        path.chmod(0o600)
        os.utime(path, (TIME / 2, TIME / 2))
    (copy / "vumi" / "__pycache__").mkdir(exist_ok=True)
    (copy / "vumi" / "__pycache__" / "x.cpython-311.pyc").write_bytes(b"compiled")
    run("uv", "build", "--quiet", "--wheel", "--out-dir", tmp_path / "built", copy)
    assert (tmp_path / "built" / wheel.name).read_bytes() == wheel.read_bytes()
    with ZipFile(wheel) as zipped:
        assert {entry.date_time for entry in zipped.infolist()} == {DATE}
