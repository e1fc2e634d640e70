"""The choice of tests for a change: all that import it, and no others."""

from __future__ import annotations

from tests.affected import ROOT, affected


def test_a_change_affects_the_tests_that_import_it_directly_or_through_others() -> None:
    found = {test.name for test in affected([ROOT / "chalicelib/counting/folding.py"])}
    assert {"test_folding.py", "test_consumers.py"} <= found
    assert not found & {"test_svg.py", "test_urls.py"}
