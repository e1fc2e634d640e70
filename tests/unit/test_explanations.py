"""The documents that explain: they are short, and their answers repeat figures of their tables."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MOST_WORDS = {
    "architecture.md": 2_500,
    "cost.md": 1_600,
    "scale.md": 1_400,
    "mutants.md": 1_500,
    "chaos.md": 1_500,
    "attacks.md": 1_000,
}
MOST_WORDS_OF_A_DECISION = 500
BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
PRINTED = re.compile(r"<!-- printed by .*?<!-- until here -->", re.DOTALL)


def read(document: str) -> str:
    return (DOCS / document).read_text(encoding="utf-8")


def words(text: str) -> int:
    """Count the texts between spaces, without code blocks and the tables that a program prints."""
    return len(PRINTED.sub("", BLOCK.sub("", text)).split())


def answer(document: str) -> str:
    """Return the text before the first section, in one line."""
    return " ".join(read(document).partition("\n## ")[0].split())


def rows(document: str, section: str) -> list[list[str]]:
    """Return the cells of the first table of a section, without its head."""
    text = read(document).partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.parametrize("document", MOST_WORDS)
def test_a_document_is_read_in_one_sitting(document: str) -> None:
    assert words(read(document)) <= MOST_WORDS[document]


@pytest.mark.parametrize(
    "decision", sorted((DOCS / "decisions").glob("*.md")), ids=lambda d: d.stem
)
def test_a_decision_is_a_page(decision: Path) -> None:
    text = decision.read_text(encoding="utf-8")
    assert words(text) <= MOST_WORDS_OF_A_DECISION
    if decision.stem != "README":
        sections = re.findall(r"^## (.*)$", text, re.MULTILINE)
        expected = ["Context", "Decision", "Weighed", "Measured", "Reasons to reconsider"]
        assert sections in (expected, [*expected, "Sources"])


def test_the_list_of_decisions_is_complete() -> None:
    pages = {page.name for page in (DOCS / "decisions").glob("*.md")} - {"README.md"}
    assert set(re.findall(r"\]\(([\w-]+\.md)\)", read("decisions/README.md"))) == pages


def test_the_results_of_mutants_add_up() -> None:
    *modules, together = [
        [int(cell.replace(",", "")) for cell in cells]
        for _, *cells in rows("mutants.md", "Results")
    ]
    assert [sum(column) for column in zip(*modules, strict=True)] == together
    mutants, killed, _, explained = together
    assert killed + explained == mutants
    assert f"Of {mutants:,} mutants, the unit tests killed {killed:,}.** The other {explained}" in (
        answer("mutants.md")
    )
    changed = read("mutants.md").partition("## Results")[2].count("` † |")
    assert f"In {changed} of the {len(modules)} rows" in answer("mutants.md")


def test_the_modules_and_tests_of_mutants_exist() -> None:
    """If one is missing, mutmut runs no test at all."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    mutmut = project["tool"]["mutmut"]
    mutated, tests = mutmut["only_mutate"], mutmut["pytest_add_cli_args_test_selection"]
    assert [path for path in (*mutated, *tests) if not (ROOT / path).is_file()] == []
    measured = [module.strip("`† ‡") for module, *_ in rows("mutants.md", "Results")[:-1]]
    assert [part for part in measured if not any(path.startswith(part) for path in mutated)] == []
