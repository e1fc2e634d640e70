"""The worked example of CONTRIBUTING.md: its changes fit the code, and its tests pass."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from simulation.environment import ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text()
COPIED = ("chalicelib", "simulation", "tests", "vumi", "deploy", "docs", "app.py", "pyproject.toml")
TESTS = [
    "tests/unit/views/test_routes.py",
    "tests/unit/badges/test_options.py",
    "tests/unit/test_description.py",
]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of the sources."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tmp_path / name)
    return tmp_path


def changes() -> list[tuple[str, str, str]]:
    """Return each change of the example: its file, the text before it, and the text after it."""
    found = []
    for block in re.findall(r"^```diff\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL):
        head, _, body = block.partition("\n")
        for hunk in body.split("@@\n"):
            lines = hunk.splitlines(keepends=True)
            before = "".join(line[1:] or line for line in lines if not line.startswith("+"))
            after = "".join(line[1:] or line for line in lines if not line.startswith("-"))
            found.append((head.removeprefix("--- a/"), before, after))
    return found


def test_the_changes_of_the_example_fit_and_its_tests_pass(copy: Path) -> None:
    for name, before, after in changes():
        source = (copy / name).read_text()
        assert source.count(before) == 1, f"{name}: {before}"
        (copy / name).write_text(source.replace(before, after))
    options = ["-q", "-p", "no:cacheprovider", "-k", "readers or characters"]
    finished = subprocess.run(  # noqa: S603  tests of this project
        [sys.executable, "-m", "pytest", *options, *TESTS],
        cwd=copy,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout
    assert int(re.findall(r"(\d+) passed", finished.stdout)[0]) > len(
        ["readers", "most", "control"]
    )
