"""The index of the examples: it has each of them, and their READMEs link to what exists."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from simulation.environment import ROOT

EXAMPLES = ROOT / "examples"
READMES = sorted(EXAMPLES.rglob("README.md"))
INDEX = (EXAMPLES / "README.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| \[([^]]+)]\(\1\) \|.*\| .*`test_\w+\.py`.* \|$", re.MULTILINE)
LINK = re.compile(r"]\((?!\w+:)([^)#]+)")


def test_the_index_has_each_example_with_its_tests() -> None:
    there = [
        path.name for path in EXAMPLES.iterdir() if path.name not in {"README.md", "__pycache__"}
    ]
    assert sorted(ROW.findall(INDEX)) == sorted(there)


@pytest.mark.parametrize("readme", READMES, ids=lambda path: path.parent.name)
def test_the_links_of_an_example_lead_to_files(readme: Path) -> None:
    links = LINK.findall(readme.read_text(encoding="utf-8"))
    assert [link for link in links if not (readme.parent / link).exists()] == []


def test_the_receiver_needs_the_version_of_its_library_that_the_tests_use() -> None:
    [needed] = (EXAMPLES / "webhook-receiver" / "requirements.txt").read_text().split()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert needed in project["dependency-groups"]["dev"]
