"""`make chaos` for a few seconds: the fault harness works and finds no error."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from chaos.__main__ import main
from chaos.checker import history
from tests.processes.programs import succeed


def test_a_short_run_loses_nothing_and_its_history_can_be_judged_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A quota limits the disk, because a mount requires more rights than a test may have.

    With this seed, the clock jumps and the server is killed while the disk is full, all within 2 s.
    """
    folder = tmp_path / "chaos"
    options = ("--seed", "8904", "--seconds", "2", "--folder", folder, "--quota")
    printed = succeed(sys.executable, "-m", "chaos", *options)
    assert "| wrong answers: lost" in printed
    assert "RLIMIT_FSIZE" in printed
    assert len(history.read(folder / "machine.jsonl")) > 200
    assert main(["--check", str(folder / "machine.jsonl")]) == 0
    assert capsys.readouterr().out.endswith(", 0 wrong\n")
