"""The program `vumi` as a test runs it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chalicelib.storage.ports import Table
from simulation.clocks import NOON, Clock
from simulation.installation import MemoryInstallation, invoke_on
from simulation.storage import MemoryTable
from vumi.cli.options import Invocation
from vumi.cli.program import execute


class Vumi:
    """The program on an installation in memory, or with an `invocation` of its own.

    `out` and `err` have what the last command printed.
    """

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.clock = Clock(NOON)
        self.installation = MemoryInstallation(clock=self.clock)
        self.invocation: Invocation | None = None
        self.out = self.err = ""
        self._capsys = capsys

    @property
    def memory(self) -> MemoryTable:
        return self.installation.memory

    @property
    def table(self) -> Table:
        return self.installation.table

    def __call__(self, *arguments: str) -> int:
        """Run a command, and return its exit status."""
        self._capsys.readouterr()
        status = execute(arguments, self.invocation or invoke_on(self.installation))
        self.out, self.err = self._capsys.readouterr()
        return status

    def json(self, *arguments: str) -> list[dict[str, Any]]:
        """Run a command, and return the lines of JSON that it prints."""
        self(*arguments, "--json")
        return [json.loads(line) for line in self.out.splitlines()]
