"""The zip of a package and its compiled files have the same bytes for the same sources."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from deploy import bytecode, release, template
from deploy.package import (
    PROJECT,
    describe_package,
    describe_standalone,
    normalize,
    read_lock,
)
from deploy.template import ROOT

HERE = str(sys.implementation.cache_tag)
SOURCE = b"""NAME = "tea"


def brew(self=None, os=NAME):
    return NAME, os
"""


def made(folder: Path, files: dict[str, bytes], python: str | None = sys.executable) -> list[str]:
    """Unpack the zip of files, compiled by a Python, as Lambda does; return their names."""
    with ZipFile(folder / "given.zip", "w") as given:
        for name, content in files.items():
            given.writestr(name, content)
    normalize(folder / "given.zip", folder / "made.zip", python)
    with ZipFile(folder / "made.zip") as unpacked:
        unpacked.extractall(folder / "task")
        return unpacked.namelist()


def run(folder: Path, program: str, **environment: str) -> str:
    finished = subprocess.run(  # noqa: S603  our own words
        [sys.executable, "-P", "-c", program],
        env={**os.environ, "PYTHONPATH": str(folder), **environment},
        cwd=template.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return finished.stdout + finished.stderr


def test_the_runtime_is_the_one_that_is_deployed() -> None:
    parts = template.load()["Resources"].values()
    runtimes = {part["Properties"].get("Runtime") for part in parts if "Properties" in part}
    assert runtimes - {None} == {f"python{bytecode.VERSION}"}


def test_each_source_is_compiled_for_the_runtime_beside_it(tmp_path: Path) -> None:
    files = {"app.py": SOURCE, "chalicelib/counting/view.py": b"", "data.json": b"{}", "py": b""}
    assert made(tmp_path, files) == [
        f"__pycache__/app.{HERE}.pyc",
        "app.py",
        f"chalicelib/counting/__pycache__/view.{HERE}.pyc",
        "chalicelib/counting/view.py",
        "data.json",
        "py",
    ]


def test_the_python_of_lambda_makes_the_compiled_files(tmp_path: Path) -> None:
    """The other Python only starts it."""
    python = bytecode.find_python(os.environ)
    if python is None:
        pytest.skip(f"no Python {bytecode.VERSION} on this machine")
    assert made(tmp_path, {"app.py": SOURCE}, python)[0] == "__pycache__/app.cpython-313.pyc"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home, on a machine whose search path and whose Python are of another version."""
    monkeypatch.setattr(sys, "executable", install(tmp_path / "here", "cpython 3 12"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}/bin")
    return tmp_path


def install(program: Path, version: str = "cpython 3 13") -> str:
    """Make a program that prints the version of a Python."""
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f"#!/bin/sh\necho {version}\n")
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize(
    "path",
    [
        ".pyenv/versions/3.13.0/bin/python3.13",
        ".local/share/uv/python/cpython-3.13.2-x/bin/python3.13",
    ],
)
def test_a_python_of_lambda_is_found_where_pyenv_and_uv_install_it(home: Path, path: str) -> None:
    installed = install(home / path)
    install(home / "bin" / "python3.13", "pyenv: a shim without a version")
    assert bytecode.find_python({"HOME": str(home)}) == installed


def test_the_setting_names_the_python_or_is_an_error(home: Path) -> None:
    install(home / "bin" / "python3.13")
    named = install(home / "mine")
    assert bytecode.find_python({"HOME": str(home), "LAMBDA_PYTHON": named}) == named
    for wrong in (install(home / "other", "pypy 3 13"), "/no/python"):
        with pytest.raises(bytecode.WrongPythonError, match=f"LAMBDA_PYTHON={wrong} is no Python"):
            bytecode.find_python({"LAMBDA_PYTHON": wrong})


def test_python_runs_the_compiled_file_without_checking_its_source(tmp_path: Path) -> None:
    """An unpacked source has a time that no compiled file has."""
    made(tmp_path, {"package/tea.py": SOURCE})
    (tmp_path / "task" / "package" / "tea.py").write_text("raise SystemExit('compiled again')")

    assert run(tmp_path / "task", "from package.tea import NAME; print(NAME)") == "tea\n"


@pytest.mark.parametrize("before", ["", "NAME = 'tea'; exec(compile(s, 'x', 'exec'))"])
def test_the_bytes_depend_on_nothing_but_the_source(before: str) -> None:
    """They do not depend on the hash seed or on earlier compilations."""
    program = f"s = {SOURCE!r}; {before}\nfrom deploy.bytecode import compile_source\n"
    program += "print(compile_source('tea.py', s).hex())"
    seen = {run(template.ROOT, program, PYTHONHASHSEED=seed) for seed in ("0", "1")}
    assert seen == {bytecode.compile_source("tea.py", SOURCE).hex() + "\n"}


# ---- the zip

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


# ---- the locks


PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
GROUPS: dict[str, list[str | dict[str, str]]] = PYPROJECT["dependency-groups"]
EXACT = re.compile(r"==[^*,]+")


def lock_of(group: str) -> Path:
    return ROOT / f"requirements/{group}.txt"


def direct(group: str) -> set[str]:
    """Return the requirements of a group and of those that it includes."""
    found: set[str] = set()
    for entry in GROUPS[group]:
        found |= {entry} if isinstance(entry, str) else direct(entry["include-group"])
    return found


def merged(requirements: Iterable[Requirement]) -> dict[str, tuple[str, set[str]]]:
    """Return the version and the extras of each package: a group may add extras to another's."""
    found: dict[str, tuple[str, set[str]]] = {}
    for one in requirements:
        _, extras = found.setdefault(canonicalize_name(one.name), (str(one.specifier), set()))
        extras |= one.extras
    return found


def versions(group: str) -> dict[str, str]:
    return {package.name: package.version for package in read_lock(lock_of(group))}


def test_every_group_has_a_lock_and_every_lock_a_group() -> None:
    assert {lock_of(group) for group in GROUPS} == {*ROOT.glob("requirements/*.txt")}


@pytest.mark.parametrize("group", GROUPS)
def test_a_lock_has_the_packages_of_its_group_and_what_they_need_with_hashes(group: str) -> None:
    """If this fails, run `make lock`."""
    locked = read_lock(lock_of(group))
    found = merged(one.requirement for one in locked if PROJECT in one.needed_by)
    wanted = merged(map(Requirement, direct(group)))
    assert {name: of[0] for name, of in found.items()} == {
        name: of[0] for name, of in wanted.items()
    }
    for name, (_, extras) in wanted.items():
        assert extras <= found[name][1]  # another package may need more of them
    known = {PROJECT, *versions(group)}
    for package in locked:
        assert EXACT.fullmatch(str(package.requirement.specifier)), package.requirement
        assert package.hashes, package.requirement
        assert package.needed_by, package.requirement
        assert set(map(canonicalize_name, package.needed_by)) <= known


@pytest.mark.parametrize("group", ["standalone", "mutants"])
def test_the_locks_of_one_environment_have_the_same_versions(group: str) -> None:
    """The tests run on the versions that users get."""
    locked, dev = versions(group), versions("dev")
    shared = locked.keys() & dev.keys()
    assert shared in (locked.keys(), dev.keys())
    assert {name: locked[name] for name in shared} == {name: dev[name] for name in shared}


@pytest.mark.parametrize(
    ("required", "group"),
    [
        (PYPROJECT["build-system"]["requires"], "build"),
        (PYPROJECT["project"]["dependencies"], "standalone"),
        (PYPROJECT["project"]["optional-dependencies"]["aws"], "deploy"),
    ],
)
def test_the_wheel_allows_the_versions_that_the_tests_run_on(
    required: list[str], group: str
) -> None:
    """It requires every direct package of one machine."""
    pinned = {Requirement(one).name: Requirement(one) for one in direct(group)}
    for requirement in map(Requirement, required):
        [pin] = pinned[requirement.name].specifier
        assert requirement.specifier.contains(pin.version), requirement
    if group == "standalone":
        assert {Requirement(one).name for one in required} == pinned.keys()


def test_every_installation_of_the_makefile_requires_hashes_and_wheels() -> None:
    makefile = (ROOT / "Makefile").read_text()
    commands = re.findall(r"(?:pip|PIP\)|PIP,\S+) (?:install|download|wheel).*", makefile)
    wheel, *others = commands
    assert " --no-index --find-links $(VENV)/wheels --no-deps " in wheel
    assert others == ["PIP) install $(OPTIONS_OF_PIP)", "PIP) download $(OPTIONS_OF_PIP)"]
    options = "--quiet --disable-pip-version-check --require-hashes $(WHEELS)"
    assert f"\nOPTIONS_OF_PIP = {options}\n" in makefile
    assert "\nWHEELS := --only-binary :all:\n" in makefile


# ---- the bills of materials


LOCKED = read_lock(template.ROOT / "requirements" / "standalone.txt")


def needs(bill: dict[str, Any], name: str) -> set[str]:
    """Return the references, without versions, to the packages that a part needs."""
    [found] = [entry for entry in bill["dependencies"] if entry["ref"].split("@")[0] == name]
    return {ref.split("@")[0].removeprefix("pkg:pypi/") for ref in found.get("dependsOn", [])}


def test_the_bill_of_a_zip_is_valid_has_its_hash_and_the_same_bytes_again(tmp_path: Path) -> None:
    package, bill = tmp_path / "deployment.zip", tmp_path / "deployment.cdx.json"
    package.write_bytes(b"a zip")
    bill.write_text(describe_package(package))
    release.validate_bill(bill)
    assert bill.read_text() == describe_package(package)
    described = json.loads(bill.read_text())
    digest = hashlib.sha256(b"a zip").hexdigest()
    assert needs(described, "vu-mi") == {"boto3", "botocore", "chalice", "python"}
    assert described["metadata"]["component"]["hashes"] == [{"alg": "SHA-256", "content": digest}]


def test_one_machine_has_each_package_with_a_licence_and_the_hashes_of_its_lock() -> None:
    bill = json.loads(describe_standalone())
    locked = {part.name: part for part in LOCKED}
    assert needs(bill, "vu-mi") == {part.name for part in LOCKED if PROJECT in part.needed_by}
    assert needs(bill, "pkg:pypi/granian") == {"click"}
    assert {part["name"] for part in bill["components"]} <= locked.keys()
    for part in bill["components"]:
        assert part["version"] == locked[part["name"]].version
        assert part["purl"] == f"pkg:pypi/{part['name']}@{part['version']}"
        assert part["licenses"]
        [files] = part["externalReferences"]
        assert {found["content"] for found in files["hashes"]} == {*locked[part["name"]].hashes}
