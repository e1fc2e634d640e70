"""The commands of docs/backups.md, run as they are written, on folders of the test.

`systemctl` is a stub. The lines with other programs, such as restic, are left out.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from simulation.environment import ROOT
from tests.end_to_end.server import PATIENCE_SECONDS, running
from tests.readme import fences

TEXT = (ROOT / "docs" / "backups.md").read_text()
FOLDERS = ("/var/lib/vu-mi", "/backup", "/tmp/drill", "/tmp/recovered")  # noqa: S108  those of the document
BACKUPS = ("vu-mi-2026-11-21T171500Z", "vu-mi-2026-11-22T171500Z")
VIEWS = 250


def blocks(language: str) -> list[str]:
    """Return the blocks of a language in the document, in their order."""
    return [fence.content for fence in fences(TEXT) if fence.info == language]


def normalised(text: str) -> str:
    """Replace times, numbers and spaces, which differ from run to run."""
    text = re.sub(r"\d{4}-\d\d-\d\dT\d{6}Z", "TIME", text)
    return " ".join(re.sub(r"\d[\d,-]*", "N", text).split())


class Machine:
    """A machine with the folders of the document, and the programs that it calls."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("bin", "tmp"):
            (root / name).mkdir(parents=True)
        self._install("vumi", f'cd "{ROOT}" && exec "{sys.executable}" -m vumi "$@"')
        self._install("systemctl", f'echo "$@" >> "{root}/systemctl"')

    def _install(self, name: str, script: str) -> None:
        path = self.root / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def at(self, text: str) -> str:
        """Return a text with the folders of this machine."""
        return re.sub(
            "|".join(rf"(?<![\w.]){one}\b" for one in FOLDERS), rf"{self.root}\g<0>", text
        )

    def folder(self, name: str) -> Path:
        return Path(self.at(name))

    def run(self, command: str) -> str:
        """Run a line of the shell; return its output and its errors. It must succeed."""
        finished = subprocess.run(  # noqa: S603  the document's and our own words
            ["/bin/sh", "-c", self.at(command)],
            env={**os.environ, "PATH": f"{self.root / 'bin'}:{os.environ['PATH']}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )
        assert finished.returncode == 0, command + finished.stdout
        return finished.stdout


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folders of a machine with a badge of 250 views in two backups, and of 8 views."""
    given = Machine(tmp_path_factory.mktemp("used"))
    given.folder("/backup").mkdir()
    data = given.folder("/var/lib/vu-mi")
    data.parent.mkdir(parents=True)
    with running(data) as server:
        server.badge("octocat/hello")
        server.wait_for("octocat/hello", 1)
        assert server.stop()[0] == 0
    given.run(f"DATA=/var/lib/vu-mi vumi set octocat/hello --base {VIEWS - 1}")
    first, second = (given.folder("/backup") / name for name in BACKUPS)
    given.run(f"DATA=/var/lib/vu-mi vumi backup /backup/{BACKUPS[0]}")
    shutil.copytree(first, second)
    given.run("DATA=/var/lib/vu-mi vumi set octocat/hello --base 7")
    return given.root


@pytest.fixture
def machine(used: Path, tmp_path: Path) -> Machine:
    """Return a machine with a copy of these folders."""
    given = Machine(tmp_path / "machine")
    for name in ("var", "backup"):
        shutil.copytree(used / name, given.root / name)
    return given


def test_each_command_prints_what_the_document_says(machine: Machine) -> None:
    sessions = [re.split(r"^\$ ", block, flags=re.MULTILINE)[1:] for block in blocks("console")]
    steps = [step.partition("\n") for session in sessions for step in session]
    for command, _, printed in steps:
        assert normalised(machine.run(command)) == normalised(machine.at(printed)), command
    assert (machine.root / "systemctl").read_text() == "stop vu-mi\nstart vu-mi\n"
    shown = machine.run("DATA=/var/lib/vu-mi vumi list")
    assert shown.endswith(f"1 of 1 badges; {VIEWS + 1} views\n")  # the base, and the one view


def test_a_fresh_backup_is_found_and_an_old_one_is_not(machine: Machine) -> None:
    [watch] = [block for block in blocks("") if block.startswith("find ")]
    assert set(machine.run(watch).split()) == {machine.at(f"/backup/{one}") for one in BACKUPS}
    for name in BACKUPS:
        os.utime(machine.folder("/backup") / name, (0, 0))
    assert machine.run(f"! {watch}") == ""


@pytest.mark.parametrize("way", [".recover", ".dump"])
def test_the_way_back_without_a_backup_recovers_the_counts(machine: Machine, way: str) -> None:
    [block] = [block for block in blocks("") if ".recover" in block]
    [recovery] = [line for text in blocks("") for line in text.splitlines() if way in line]
    if shutil.which("sqlite3") is None:
        pytest.skip("there is no sqlite3 on this machine")
    damage(machine.folder("/var/lib/vu-mi") / "vu-mi.sqlite3")
    *copies, _, check, restore = block.splitlines()
    for line in (*copies, recovery):
        machine.run(line)
    if not (machine.folder("/tmp/recovered") / "vu-mi.sqlite3").stat().st_size:  # noqa: S108
        pytest.skip("the sqlite3 of this machine has no .recover")
    assert "has no errors" in machine.run(check)
    machine.run(restore)
    assert machine.run("DATA=/var/lib/vu-mi vumi list").endswith("1 of 1 badges; 8 views\n")


def damage(file: Path) -> None:
    """Overwrite a page without rows, so that everything else can be recovered."""
    with closing(sqlite3.connect(file)) as connection:
        ((size,),) = connection.execute("PRAGMA page_size")
        ((page,),) = connection.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'messages'"
        )
    with file.open("r+b") as opened:
        opened.seek((page - 1) * size)
        opened.write(b"x" * size)


@pytest.mark.parametrize(
    ("said", "command"),
    [
        ("is not empty", f"vumi restore /backup/{BACKUPS[0]}"),
        ("is not a backup", "vumi restore --aside /backup"),
    ],
)
def test_a_message_of_the_table_is_printed(machine: Machine, said: str, command: str) -> None:
    assert f"| `{said}` |" in TEXT
    assert said in machine.run(f"! DATA=/var/lib/vu-mi {command}")


def test_a_server_that_runs_is_named_as_the_table_says(machine: Machine) -> None:
    assert "| `already runs on` |" in TEXT
    command = f"! DATA=/var/lib/vu-mi vumi restore --aside /backup/{BACKUPS[0]}"
    with running(machine.folder("/var/lib/vu-mi")):
        assert "already runs on" in machine.run(command)
