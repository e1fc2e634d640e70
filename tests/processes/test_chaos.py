"""`make chaos` for a few seconds: the fault harness works and finds no error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from chaos.__main__ import main
from chaos.checker import history
from simulation.environment import ROOT


def chaos(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603  our own words
        [sys.executable, "-m", "chaos", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_short_run_loses_nothing_and_its_history_can_be_judged_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A quota limits the disk, because a mount requires more rights than a test may have.

    With this seed, the clock jumps and the server is killed while the disk is full, all within 2 s.
    """
    folder = tmp_path / "chaos"
    done = chaos("--seed", "8904", "--seconds", "2", "--folder", str(folder), "--quota")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| wrong answers: lost" in done.stdout
    assert "RLIMIT_FSIZE" in done.stdout
    assert len(history.read(folder / "machine.jsonl")) > 200
    assert main(["--check", str(folder / "machine.jsonl")]) == 0
    assert capsys.readouterr().out.endswith(", 0 wrong\n")
