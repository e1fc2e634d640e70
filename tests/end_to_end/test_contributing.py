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
COPIED = (
    *("chalicelib", "simulation", "tests", "vumi", "deploy", "docs", "examples"),
    *("app.py", "pyproject.toml"),
)
TESTS = [
    "tests/unit/pages/test_badge_routes.py",
    "tests/unit/badges/test_options.py",
    "tests/unit/test_description.py",
    "tests/unit/test_gallery.py",
    "tests/unit/test_http_reference.py",
]
WRITERS = ("tests.http_reference", "tests.gallery")


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
        fits = source.count(before) == 1
        assert fits, f"write CONTRIBUTING.md by the code: {name} has this not once:\n{before}"
        (copy / name).write_text(source.replace(before, after))
    for writer in WRITERS:
        run(copy, writer)
    tested = run(copy, "pytest", "-q", "-p", "no:cacheprovider", *TESTS)
    assert int(re.findall(r"(\d+) passed", tested)[0]) > len(TESTS)


def run(copy: Path, *module: str) -> str:
    """Run a module in the copy; return its output."""
    finished = subprocess.run(  # noqa: S603  programs of this project
        [sys.executable, "-m", *module], cwd=copy, capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout
