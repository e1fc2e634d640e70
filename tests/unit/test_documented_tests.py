"""The tests that the documents name: each of them exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "examples" / "README.md"]
NAMED = re.compile(r"`(?:[\w/]*/)?(test_\w+(?:\.py)?)`")
DEFINED = re.compile(r"^ *(?:async )?def (test_\w+)", re.MULTILINE)
BEHAVIOURS = "## What was tried"


@cache
def known() -> set[str]:
    """Return the names of all files of tests, and of the tests in them."""
    files = list((ROOT / "tests").rglob("test_*.py"))
    return {file.name for file in files} | {
        name for file in files for name in DEFINED.findall(file.read_text())
    }


def rows(document: str, heading: str) -> Iterator[list[str]]:
    """Yield the cells of each row of the first table under a heading."""
    text = (ROOT / "docs" / document).read_text().partition(f"\n{heading}\n")[2]
    table = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)[0]
    for line in table.splitlines()[2:]:
        yield [cell.strip() for cell in line.strip("|").split("|")]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda one: one.relative_to(ROOT).as_posix())
def test_each_test_that_a_document_names_exists(document: Path) -> None:
    assert set(NAMED.findall(document.read_text())) <= known()


@pytest.mark.parametrize(
    ("document", "heading", "column"),
    [
        ("stack.md", "## Requests through API Gateway", 3),
        ("stack.md", BEHAVIOURS, 2),
    ],
)
def test_each_behaviour_of_aws_names_a_test_or_says_that_there_is_none(
    document: str, heading: str, column: int
) -> None:
    table = list(rows(document, heading))
    assert len(table) > 15
    for cells in table:
        assert len(cells) == len(table[0]), cells[0]
        assert NAMED.findall(cells[column]) or cells[column] == "none", cells[0]
