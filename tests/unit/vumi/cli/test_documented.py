"""docs/command-line.md has every command and every exit status."""

from __future__ import annotations

import re
from pathlib import Path

from vumi.cli.check import CheckFailedError
from vumi.cli.program import COMMANDS, FAILED, INTERRUPTED

TEXT = (Path(__file__).parents[4] / "docs" / "command-line.md").read_text()


def test_the_table_of_commands_has_each_command() -> None:
    rows = re.findall(r"^\| `vumi ([a-z-]+)", TEXT, re.MULTILINE)
    assert sorted(rows) == sorted(COMMANDS)


def test_the_table_of_exit_statuses_has_each_status() -> None:
    rows = re.findall(r"^\| (\d+) \|", TEXT, re.MULTILINE)
    assert [int(row) for row in rows] == [0, FAILED, 2, CheckFailedError.status, INTERRUPTED]
