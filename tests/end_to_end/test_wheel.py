"""The wheel: the same bytes from every build, and a server where nothing else is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator, Mapping
from email.message import Message
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest

from chalicelib.version import VERSION
from simulation.environment import NO_CLIENT_LIMITS, ROOT
from simulation.server_process import killed
from tests.end_to_end import offline_pip
from tests.end_to_end.server import Server

PACKAGES = ("chalicelib", "vumi")
FILES = ("LICENSE", "README.md", "pyproject.toml")
"""The files that the wheel is made of, beside its packages."""
TIME = 1_000_000_000
DATE = (2001, 9, 9, 1, 46, 40)


def run(*command: str | Path) -> None:
    """Run a module of Python, which finds packages in a folder alone."""
    finished = subprocess.run(  # noqa: S603  our own words
        [sys.executable, "-m", *command],
        env={**offline_pip.environment(), "SOURCE_DATE_EPOCH": str(TIME)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr


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
        "chalicelib/http/page.html",
        "chalicelib/pages/badge_page.html",
        "chalicelib/badges/logos.json",
        "vumi/storage/migrations/0001_initial.sql",
    }
    assert data <= sources
    described = f"vu_mi-{VERSION}.dist-info"
    names = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")
    with ZipFile(wheel) as zipped:
        assert set(zipped.namelist()) == sources | {f"{described}/{name}" for name in names}


def metadata(wheel: Path) -> Message:
    with ZipFile(wheel) as zipped:
        return Parser().parsestr(zipped.read(f"vu_mi-{VERSION}.dist-info/METADATA").decode())


def test_the_version_is_that_of_the_program(wheel: Path) -> None:
    assert wheel.name == f"vu_mi-{VERSION}-py3-none-any.whl"
    assert metadata(wheel)["Version"] == VERSION


def test_boto3_is_only_in_the_extra_aws(wheel: Path) -> None:
    described = metadata(wheel)
    required = described.get_all("Requires-Dist", [])
    assert described.get_all("Provides-Extra") == ["aws"]
    assert [one for one in required if "extra ==" in one] == [
        one for one in required if one.startswith("boto3")
    ]


def test_every_build_has_the_same_bytes(wheel: Path, tmp_path: Path) -> None:
    """Neither uv, nor the folder, times, rights and caches of the sources change the wheel."""
    copy = tmp_path / "copy"
    for package in PACKAGES:
        shutil.copytree(ROOT / package, copy / package)
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


SETTINGS: Mapping[str, str] = {"PORT": "0", **NO_CLIENT_LIMITS}


@pytest.fixture
def server(vumi: Path, tmp_path: Path) -> Iterator[Server]:
    """Return the installed server, in a folder that has nothing."""
    process = subprocess.Popen(  # noqa: S603  our own words
        [vumi, "serve"],
        cwd=tmp_path,
        env=SETTINGS,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    with killed(process):
        yield Server(process)


def test_the_installed_program_serves_badges_and_the_page(server: Server, tmp_path: Path) -> None:
    assert [server.badge("installed")["message"] for _ in range(3)] == ["0", "1", "2"]
    status, _, badge = server.request("/api/v1/views.svg?id=installed&logo=github")
    assert (status, badge[:4]) == (200, b"<svg")
    status, _, page = server.request("/")
    assert (status, page[:15].lower()) == (200, b"<!doctype html>")
    assert server.stop()[0] == 0
    assert (tmp_path / "data").is_dir()
