"""The imports: of each process, and of the tests that a change affects."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.affected import ROOT, affected

COMMANDS = r"vumi\.cli\.(?!(options|output|program|serve)$).+"
OTHERS = rf"{COMMANDS}|vumi\.operate\.(exchange|backups|check)|boto3"
HISTORY = r"chalicelib\..*(\.history\.history|chart|colors)"
PAGES = r"chalicelib\..*(preview|history\.history|http\.page)"


@pytest.mark.parametrize(
    ("imported", "names"),
    [
        ("vumi.cli.program, vumi.cli.serve", OTHERS),
        ("chalicelib.history.routes", HISTORY),
        ("chalicelib.pages.badge_page", PAGES),
    ],
)
def test_a_module_is_imported_by_the_processes_that_use_it(imported: str, names: str) -> None:
    program = f"import sys, {imported}; print(*sys.modules)"
    out = subprocess.check_output([sys.executable, "-c", program], cwd=ROOT, text=True)  # noqa: S603  the text above
    assert imported.rsplit(", ", maxsplit=1)[-1] in out.split()
    assert [name for name in out.split() if re.fullmatch(names, name)] == []


def test_a_change_affects_the_tests_that_import_it_directly_or_through_others() -> None:
    found = {test.name for test in affected([ROOT / "chalicelib/counting/folding.py"])}
    assert {"test_folding.py", "test_consumers.py"} <= found
    assert not found & {"test_svg.py", "test_urls.py"}
