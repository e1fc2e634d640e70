"""The unit tests that a change can affect: `python -m tests.affected [BASE]` prints their files.

A test is affected if it imports, directly or through other files, a file that differs from the
branch BASE. A file that is not Python counts as all modules of its folder. A document affects the
tests that read documents. pytest-testmon does not see such files, and would first run all tests,
measured, in each clone.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCUMENT = ".md"
IMPORT = re.compile(r"^ *(?:from ([\w.]+) )?import (\([^)]*\)|.+)", re.MULTILINE)
"""An import in a source. To parse all files takes eight times as long."""


def affected(changed: Iterable[Path]) -> list[Path]:
    """Return the unit tests that import any of these files, or read documents if one is here."""
    files = [*changed]
    modules = {file for file in files if file.suffix == ".py"}
    modules.update(*(file.parent.glob("*.py") for file in files if file.suffix != ".py"))
    is_documented = any(file.suffix == DOCUMENT for file in files)
    tests = sorted((ROOT / "tests" / "unit").rglob("test_*.py"))
    return [
        test
        for test in tests
        if modules & _reach(test) or (is_documented and DOCUMENT in test.read_text())
    ]


@cache
def _reach(test: Path) -> set[Path]:
    """Return a test, its fixtures, and all files that they import, directly or through others."""
    fixtures = (folder / "conftest.py" for folder in test.parents)
    reached, left = set[Path](), [test, *(file for file in fixtures if file.exists())]
    while left:
        file = left.pop()
        if file not in reached:
            reached.add(file)
            left += _imports_of(file)
    return reached


@cache
def _imports_of(file: Path) -> list[Path]:
    """Return the files of the project that a file imports, or names in a text as if it did."""
    names = {name for found in IMPORT.findall(file.read_text()) for name in _names(*found)}
    paths = (ROOT.joinpath(*name.split(".")).with_suffix(".py") for name in names)
    return [path for path in paths if path.exists()]


def _names(module: str, imported: str) -> Iterator[str]:
    names = re.findall(r"[\w.]+", imported)
    yield from (module, *(f"{module}.{name}" for name in names)) if module else names


def _changes_since(base: str) -> list[Path]:
    """Return the files that differ from the commit at which this branch left `base`."""
    tracked = ("diff", "--name-only", "--no-renames", "--merge-base", base)
    untracked = ("ls-files", "--others", "--exclude-standard")
    return [ROOT / name for command in (tracked, untracked) for name in _git(*command)]


def _git(*command: str) -> list[str]:
    return subprocess.check_output(["git", *command], cwd=ROOT, text=True).splitlines()  # noqa: S603, S607  ours


if __name__ == "__main__":
    print(  # noqa: T201  the tests are its output
        *(test.relative_to(ROOT) for test in affected(_changes_since(*sys.argv[1:]))), sep="\n"
    )
