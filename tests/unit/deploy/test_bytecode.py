"""Compiled files, which Python loads instead of a source, have the same bytes on every machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml

from deploy import bytecode, template
from deploy.package import normalize

HERE = str(sys.implementation.cache_tag)
SOURCE = b"""NAME = "tea"


def brew(self=None, os=NAME):
    return NAME, os
"""


def made(folder: Path, files: dict[str, bytes], runtime: str = HERE) -> list[str]:
    """Unpack the zip of files for a runtime, as Lambda does; return their names."""
    with ZipFile(folder / "given.zip", "w") as given:
        for name, content in files.items():
            given.writestr(name, content)
    normalize(folder / "given.zip", folder / "made.zip", runtime)
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
    resources = yaml.safe_load((template.ROOT / ".chalice" / "resources.yaml").read_text())
    runtimes = {
        resource["Properties"]["Runtime"]
        for resource in resources["Resources"].values()
        if "Runtime" in resource.get("Properties", {})
    }
    assert runtimes == {"python3.13"}
    assert bytecode.RUNTIME == "cpython-313"


def test_each_source_is_compiled_for_the_runtime_beside_it(tmp_path: Path) -> None:
    files = {"app.py": SOURCE, "chalicelib/views/view.py": b"", "data.json": b"{}", "py": b""}
    assert made(tmp_path, files) == [
        f"__pycache__/app.{HERE}.pyc",
        "app.py",
        f"chalicelib/views/__pycache__/view.{HERE}.pyc",
        "chalicelib/views/view.py",
        "data.json",
        "py",
    ]


def test_another_python_compiles_nothing(tmp_path: Path) -> None:
    assert made(tmp_path, {"app.py": SOURCE}, "cpython-27") == ["app.py"]


def test_python_runs_the_compiled_file_without_checking_its_source(tmp_path: Path) -> None:
    """An unpacked source has a time that no compiled file has."""
    made(tmp_path, {"package/tea.py": SOURCE})
    (tmp_path / "task" / "package" / "tea.py").write_text("raise SystemExit('compiled anew')")

    assert run(tmp_path / "task", "from package.tea import NAME; print(NAME)") == "tea\n"


@pytest.mark.parametrize("before", ["", "NAME = 'tea'; exec(compile(s, 'x', 'exec'))"])
def test_the_bytes_depend_on_nothing_but_the_source(before: str) -> None:
    """They do not depend on the hash seed or on earlier compilations."""
    program = f"s = {SOURCE!r}; {before}\nfrom deploy.bytecode import compile_source\n"
    program += "print(compile_source('tea.py', s).hex())"
    seen = {run(template.ROOT, program, PYTHONHASHSEED=seed) for seed in ("0", "1")}
    assert seen == {bytecode.compile_source("tea.py", SOURCE).hex() + "\n"}


def test_a_source_that_is_not_python_is_an_error() -> None:
    with pytest.raises(SyntaxError):
        bytecode.compile_source("tea.py", b"no python")
