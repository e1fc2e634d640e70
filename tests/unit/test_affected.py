"""The choice of tests for a change: all that import it, and no others."""

from __future__ import annotations

import pytest

from tests.affected import ROOT, affected


def names(*changed: str) -> set[str]:
    return {test.name for test in affected(ROOT / file for file in changed)}


def test_a_change_affects_the_tests_that_import_it_directly_or_through_others() -> None:
    found = names("chalicelib/counting/folding.py")
    assert {"test_folding.py", "test_buckets.py"} <= found
    assert not found & {"test_svg.py", "test_urls.py"}


@pytest.mark.parametrize(
    ("changed", "test"),
    [
        ("tests/unit/counting/test_folding.py", "test_folding.py"),
        ("tests/conftest.py", "test_svg.py"),
        ("chalicelib/badges/logos.json", "test_logos.py"),
    ],
)
def test_a_change_of_a_test_its_fixtures_or_data_affects_it(changed: str, test: str) -> None:
    assert test in names(changed)


def test_a_document_affects_the_tests_that_read_documents() -> None:
    found = names("docs/cost.md")
    assert {"test_documents.py", "test_readme.py"} <= found
    assert not found & {"test_folding.py", "test_svg.py"}
