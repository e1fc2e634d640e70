"""The files of a release: the same bytes from every build, and what is in them.

`test_containerfile.py` installs and runs the wheel, and `make release` makes all files.
"""

from __future__ import annotations

import os
import shutil
import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest

from chalicelib import VERSION
from deploy import bytecode, release
from deploy.package import PackagingError, run
from simulation.environment import ROOT
from tests.processes.programs import WHEELS, offline_pip, succeed


@pytest.fixture(scope="module")
def sdists(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return the sdists of two clones of the commit with different rights."""
    work = tmp_path_factory.mktemp("release")
    tools = release.prepare_tools(ROOT, work / "tools", WHEELS)
    builds = ((work / name, umask) for name, umask in release.BUILDS)
    return [release.build_sdist(ROOT, folder, umask, tools) for folder, umask in builds]


def test_the_sdist_has_the_same_bytes_from_every_clone(sdists: list[Path]) -> None:
    one, other = sdists
    assert one.name == other.name == f"vu_mi-{VERSION}.tar.gz"
    assert one.read_bytes() == other.read_bytes()


def test_the_sdist_has_all_committed_files_their_time_and_no_user(sdists: list[Path]) -> None:
    clone = sdists[0].parents[1] / "sources"
    committed = run(["git", "ls-files"], clone, os.environ).split()
    time = int(run(["git", "log", "-1", "--format=%ct"], clone, os.environ))
    with tarfile.open(sdists[0]) as sdist:
        members = sdist.getmembers()
    names = {member.name.partition("/")[2] for member in members}
    assert names == {*committed, "PKG-INFO"}
    assert "vumi/storage/migrations/0001_initial.sql" in names
    assert {(member.uid, member.uname, member.gname) for member in members} == {(0, "", "")}
    assert {member.mtime for member in members} == {time}


def test_the_zip_has_every_handler_of_its_template_and_no_other(
    packages: dict[str, Path], tmp_path: Path
) -> None:
    python = bytecode.find_python(os.environ)
    if python is None:
        pytest.skip(f"no Python {bytecode.VERSION} on this machine")
    package, stack = (packages["prod"] / name for name in ("deployment.zip", "sam.yaml"))
    release.import_handlers(package, stack, python)
    other = tmp_path / "stack.yaml"
    other.write_text(stack.read_text().replace("get_views.handler", "gone.handler"))
    with pytest.raises(PackagingError, match=r"No module named 'chalicelib\.aws\.gone'"):
        release.import_handlers(package, other, python)


# ---- the wheel

PACKAGES = ("chalicelib", "vumi")
EXAMPLES = ("examples/Caddyfile", "examples/nginx.conf", "examples/systemd")
"""The examples that `vumi init` writes."""
FILES = ("LICENSE", "README.md", "pyproject.toml")
"""The files that the wheel is made of, beside its packages and examples."""
TIME = 1_000_000_000
DATE = (2001, 9, 9, 1, 46, 40)


def build(*command: str | Path) -> None:
    """Run a module of Python, which finds packages in a folder alone."""
    environment = {**offline_pip(), "SOURCE_DATE_EPOCH": str(TIME)}
    succeed(sys.executable, "-m", *command, env=environment)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel that pip builds."""
    out = tmp_path_factory.mktemp("built")
    build("pip", "wheel", "--no-deps", "--wheel-dir", out, ROOT)
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
    build("uv", "build", "--quiet", "--wheel", "--out-dir", tmp_path / "built", copy)
    assert (tmp_path / "built" / wheel.name).read_bytes() == wheel.read_bytes()
    with ZipFile(wheel) as zipped:
        assert {entry.date_time for entry in zipped.infolist()} == {DATE}
