"""The units of systemd: correct and hardened, according to systemd itself, and run by a systemd.

It boots over this machine's files in namespaces, and `vumi init` writes and installs the units. It
sees what the machine has, writes to memory alone, and has a network of its own.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simulation.environment import ROOT
from tests.processes.programs import finish, offline_pip, require, succeed

UNITS = ROOT / "examples" / "systemd"
SERVICES = sorted(path.name for path in UNITS.glob("*.service"))
PROGRAM = "/opt/vu-mi/bin/vumi"
MAX_EXPOSURE = 1.5
SYSTEM_PYTHON = "/usr/bin/python3"
"""Services can't read a Python in a home."""
NSPAWN = "systemd-nspawn"
BOOT = """
mkdir writes root
mount -t tmpfs tmpfs writes
mkdir writes/upper writes/work writes/nspawn
mkdir -p /run/systemd/nspawn
mount --bind writes/nspawn /run/systemd/nspawn
mount -t overlay overlay -o lowerdir=/,upperdir=writes/upper,workdir=writes/work root
mkdir -p root/opt/vu-mi root/shared
cp shared/test.service shared/test.target root/etc/systemd/system/
systemd-nspawn --quiet --directory=root --machine=vu-mi-$$ --register=no --keep-unit \\
    --private-network --bind="$PWD/shared:/shared" --bind-ro="$PWD/opt:/opt/vu-mi" \\
    --boot -- systemd.unit=test.target
"""
TARGET = """
[Unit]
Requires=basic.target
Wants=test.service
"""
SERVICE = """
[Unit]
After=basic.target
[Service]
Type=oneshot
ExecStart=/bin/bash -x /shared/steps
ExecStopPost=/bin/systemctl --force exit
StandardOutput=file:/shared/output
StandardError=file:/shared/log
"""
# A proxy is another user, and no command may give the data to one while the server runs.
STEPS = """
/opt/vu-mi/bin/vumi init --systemd --out /root/setup | sh -ex >&2
view() {
    runuser --user www-data -- curl --silent --write-out '\\n' --unix-socket /run/vumi/vumi.sock \\
        "http://localhost/api/v1/views?id=unit$1"
}
view
view
systemctl start vu-mi-backup.service
view
systemctl show vu-mi-backup.service --property Result --value
stat --format %U /var/lib/vu-mi/vu-mi.sqlite3
ls /var/lib/vu-mi-backups | wc --lines
vumi show unit --json
stat --format %U /var/lib/vu-mi/vu-mi.sqlite3
vumi settings --json | head --lines=1
systemctl restart vu-mi.service &
for _ in $(seq 50); do view; done | tail --lines=1
wait
systemctl stop vu-mi.socket vu-mi.service
systemctl show vu-mi.service --property Result --value
systemctl start vu-mi-backup.service
systemctl start vu-mi.service
view "&peek=1"
ls /var/lib/vu-mi-backups | wc --lines
systemctl status vu-mi.service vu-mi-backup.service >&2
"""


def analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    require("systemd-analyze")
    return finish("systemd-analyze", *arguments)


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


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Path]:
    """Make a folder with the steps and an installed vu-mi for /opt/vu-mi, which others may read.

    The program sets the mask of the process, so a test before this one may have done so.
    """
    before = os.umask(0o022)
    require(NSPAWN)
    if os.geteuid():
        pytest.skip("only root may boot a systemd")
    _install(tmp_path / "opt")
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "test.target").write_text(TARGET)
    (shared / "test.service").write_text(SERVICE)
    (shared / "steps").write_text(STEPS)
    yield tmp_path
    os.umask(before)


def _install(environment: Path) -> None:
    version = "import sys; print(sys.version_info[:2])"
    if _run(SYSTEM_PYTHON, "-c", version) != f"{sys.version_info[:2]}\n":
        pytest.skip(f"{SYSTEM_PYTHON} is another version than that of the tests")
    _run(SYSTEM_PYTHON, "-m", "venv", "--without-pip", environment)
    install = ("install", "--quiet", "--compile-bytecode", "--python", environment / "bin/python")
    _run(sys.executable, "-m", "uv", "pip", *install, ROOT)
    program = environment / "bin" / "vumi"
    program.write_text(program.read_text().replace(str(environment), "/opt/vu-mi"))


def _run(*command: str | Path) -> str:
    return succeed(*command, env=offline_pip())


def message(line: str) -> str:
    badge: dict[str, Any] = json.loads(line)
    return str(badge["message"])


def test_the_units_serve_back_up_and_stop_under_systemd(machine: Path) -> None:
    """The backup reads the server's data as the same user, while the server runs or not."""
    booted = finish("unshare", "--mount", "sh", "-ec", BOOT, cwd=machine, given="")
    log = machine / "shared" / "log"
    said = log.read_text() if log.exists() else repr(booted.stdout + booted.stderr)
    lines = (machine / "shared" / "output").read_text().splitlines() if log.exists() else []
    assert len(lines) == 13, said
    assert [message(line) for line in lines[:3]] == ["0", "1", "2"], said
    assert lines[3:6] == ["success", "vu-mi", "1"], said
    assert (json.loads(lines[6])["count"], lines[7]) == (3, "vu-mi"), said
    assert json.loads(lines[8])["value"] == "unix:/run/vumi/vumi.sock", said
    assert message(lines[9]) == "52", said  # during a restart
    assert (lines[10], message(lines[11]), lines[12]) == ("success", "53", "2"), said
