"""The import command: its report, and its continuation after an error."""

from __future__ import annotations

import pytest

from chalicelib.storage.errors import UnavailableError
from simulation.clocks import NOON, FakeTime
from simulation.memory_table import MemoryTable
from simulation.tables import FaultyTable, raising
from vumi.cli import importing
from vumi.operate.admin.counts_file import ImportedCount
from vumi.operate.admin.importing import Import

ROWS = [ImportedCount(line, f"b{line}", line) for line in range(1, 251)]


def test_the_report_counts_every_outcome(capsys: pytest.CaptureFixture[str]) -> None:
    table = MemoryTable()
    importing.run(ROWS, Import(table, map, lambda: NOON))
    changed = [ImportedCount(7, "b7", 70), *ROWS[:3]]
    importing.run(changed, Import(table, map, lambda: NOON))
    out, err = capsys.readouterr()
    assert out == (
        "250 imported\n0 unchanged\n0 replaced\n0 kept\n"
        "b7 kept: its base is 7, and the import has 70\n"
        "0 imported\n3 unchanged\n0 replaced\n1 kept\n"
    )
    assert err == ""


@pytest.mark.parametrize(
    ("failures", "reason"),
    [
        ([UnavailableError("throttled")] * 9, "throttled"),
        ([KeyboardInterrupt()], "it was interrupted"),
    ],
)
def test_a_failed_or_interrupted_import_says_how_far_it_came_and_how_to_continue(
    failures: list[BaseException], reason: str
) -> None:
    faulty = FaultyTable(MemoryTable(), before_write=raising(*[None] * 100, *failures))
    job = Import(faulty, map, lambda: NOON, patience=FakeTime().retry(attempts=2))
    with pytest.raises(importing.InterruptedImportError) as cut:
        importing.run(ROWS, job)
    assert str(cut.value) == (
        f"the import stopped after 100 of 250 badges: {reason}; run it again to import the rest"
    )
