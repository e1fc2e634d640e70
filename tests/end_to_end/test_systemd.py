"""The units of systemd: correct and hardened, according to systemd itself."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

from simulation.environment import ROOT
from vumi.given_settings import GivenSettings

UNITS = ROOT / "examples" / "systemd"
SERVICES = sorted(path.name for path in UNITS.glob("*.service"))
PROGRAM = "/opt/vu-mi/bin/vumi"
MAX_EXPOSURE = 1.5
ANALYZE = "systemd-analyze"


def analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    if shutil.which(ANALYZE) is None:
        missing = "systemd-analyze is missing: apt-get install systemd"
        (pytest.fail if "CI" in os.environ else pytest.skip)(missing)
    return subprocess.run(  # noqa: S603  our own words
        [ANALYZE, *arguments], capture_output=True, text=True, check=False
    )


def read(unit: str) -> ConfigParser:
    """Return a unit; of a setting that it has twice, the last one."""
    parser = ConfigParser(strict=False, interpolation=None, delimiters="=")
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    parser.read_string((UNITS / unit).read_text())
    return parser


@pytest.fixture
def installed(tmp_path: Path) -> list[Path]:
    """Return copies of the units that start a program of this machine."""
    for unit in (*UNITS.glob("*.service"), *UNITS.glob("*.timer")):
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


def test_the_backup_runs_as_the_user_whose_data_it_reads() -> None:
    """Services that name the same dynamic user get the same one from systemd."""
    server, backup = (read(f"{name}.service")["Service"] for name in ("vu-mi", "vu-mi-backup"))
    for name in ("User", "DynamicUser", "StateDirectoryMode", "UMask"):
        assert server[name] == backup[name]
    assert server["StateDirectory"] in backup["StateDirectory"].split()


def test_the_timer_makes_up_for_a_missed_backup() -> None:
    timer = read("vu-mi-backup.timer")["Timer"]
    assert (timer["Persistent"], timer["RandomizedDelaySec"]) == ("yes", "1h")


@pytest.mark.parametrize("unit", SERVICES)
def test_a_service_starts_the_program_that_the_document_installs(unit: str) -> None:
    assert read(unit)["Service"]["ExecStart"].startswith(f"{PROGRAM} ")
    assert f"{Path(PROGRAM).parent}/pip install" in (ROOT / "docs" / "install.md").read_text()


def test_the_server_accepts_the_example_settings() -> None:
    """The socket is in the folder that systemd makes for it."""
    settings = GivenSettings.read({"SETTINGS": str(UNITS / "settings.toml")}).parse()
    folder = read("vu-mi.service")["Service"]["RuntimeDirectory"]
    assert settings.unix_socket == Path("/run", folder, "vumi.sock")
