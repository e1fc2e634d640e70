"""The units of systemd: correct and hardened, according to systemd itself.

`test_running_units.py` runs them.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from simulation.environment import ROOT
from tests.processes.programs import require

UNITS = ROOT / "examples" / "systemd"
SERVICES = sorted(path.name for path in UNITS.glob("*.service"))
PROGRAM = "/opt/vu-mi/bin/vumi"
MAX_EXPOSURE = 1.5
ANALYZE = "systemd-analyze"


def analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    require(ANALYZE)
    return subprocess.run(  # noqa: S603  our own words
        [ANALYZE, *arguments], capture_output=True, text=True, check=False
    )


@pytest.fixture
def installed(tmp_path: Path) -> list[Path]:
    """Return copies of the units that start a program of this machine."""
    for unit in (*UNITS.glob("*.service"), *UNITS.glob("*.socket"), *UNITS.glob("*.timer")):
        text = unit.read_text().replace(PROGRAM, sys.executable)
        (tmp_path / unit.name).write_text(text)
    return sorted(tmp_path.iterdir())


def test_systemd_finds_nothing_wrong_in_the_units(installed: list[Path]) -> None:
    verified = analyze("verify", "--man=no", *installed)
    assert (verified.returncode, verified.stdout, verified.stderr) == (0, "", "")


@pytest.mark.parametrize("unit", SERVICES)
def test_a_service_is_exposed_at_most_so_much(unit: str) -> None:
    analyzed = analyze("security", "--offline=yes", "--no-pager", UNITS / unit)
    [exposure] = re.findall(r"Overall exposure level for \S+: ([\d.]+)", analyzed.stdout)
    assert float(exposure) <= MAX_EXPOSURE
