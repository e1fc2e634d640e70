"""The wheel: the same bytes from every build, and a server where nothing else is installed."""

from __future__ import annotations

import os
import shutil
import sys
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

from chalicelib import VERSION
from simulation.environment import NO_CLIENT_LIMITS, ROOT
from tests.processes import offline_pip
from tests.processes.programs import succeed
from tests.processes.server import serving

PACKAGES = ("chalicelib", "vumi")
EXAMPLES = ("examples/Caddyfile", "examples/nginx.conf", "examples/systemd")
"""The examples that `vumi init` writes."""
FILES = ("LICENSE", "README.md", "pyproject.toml")
"""The files that the wheel is made of, beside its packages and examples."""
TIME = 1_000_000_000
DATE = (2001, 9, 9, 1, 46, 40)


def run(*command: str | Path) -> None:
    """Run a module of Python, which finds packages in a folder alone."""
    environment = {**offline_pip.environment(), "SOURCE_DATE_EPOCH": str(TIME)}
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


@pytest.fixture(scope="module")
def vumi(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the program in an environment that has only the wheel and its dependencies.

    uv installs it, which is faster. pip does so in `test_containerfile.py`.
    """
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    run("uv", "pip", "install", "--quiet", "--python", folder / "bin" / "python", wheel)
    return folder / "bin" / "vumi"


def test_the_installed_program_serves_badges_and_the_page(vumi: Path, tmp_path: Path) -> None:
    """It runs in a folder that has nothing, and keeps its data in the home of its user."""
    settings = {"HOME": str(tmp_path), "PORT": "0", **NO_CLIENT_LIMITS}
    with serving(vumi, "serve", cwd=tmp_path, env=settings) as server:
        server.visit("installed", 3)
        status, _, badge = server.request("/api/v1/views.svg?id=installed&logo=github")
        assert (status, badge[:4]) == (200, b"<svg")
        status, _, page = server.request("/")
        assert (status, page[:15].lower()) == (200, b"<!doctype html>")
        assert server.stop()[0] == 0
    assert (tmp_path / ".local" / "share" / "vu-mi").is_dir()
