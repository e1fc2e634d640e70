"""A later program on the data of this one: commands refuse the file, and the server migrates it."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from simulation import server_process
from simulation.environment import ROOT
from simulation.server_process import Process, killed
from tests.processes.programs import PATIENCE_SECONDS
from tests.processes.server import Server, start
from vumi.storage.database import FILE
from vumi.storage.file_format import VERSION

LATER = f"{VERSION + 1:04}_colors.sql"
COPY = f"{FILE}.format-{VERSION}"


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the sources of a program that has one more migration."""
    sources = tmp_path_factory.mktemp("later")
    for package in ("chalicelib", "vumi"):
        shutil.copytree(ROOT / package, sources / package)
    script = sources / "vumi" / "storage" / "migrations" / LATER
    script.write_text("CREATE TABLE colors (name TEXT);\n")
    return sources


def launch(sources: Path, folder: Path, *command: str) -> Process:
    """Start a command of this program or of the later one."""
    if sources == ROOT:
        return start(folder, *command)
    return server_process.start(folder, ("vumi", *command), {}, sources=sources)


def run(sources: Path, folder: Path, *command: str) -> tuple[int, str, str]:
    """Run a command of a program; return its exit status, standard output and standard error."""
    with killed(launch(sources, folder, *command)) as process:
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
    return process.returncode, out, err


@contextmanager
def serving(sources: Path, folder: Path) -> Iterator[Server]:
    with killed(launch(sources, folder, "serve")) as process:
        yield Server(process)


def version(folder: Path) -> int:
    with closing(sqlite3.connect(folder / FILE)) as connection:
        [number] = connection.execute("PRAGMA user_version").fetchone()
    return int(number)


def test_the_server_migrates_an_older_file_and_keeps_a_copy_of_it(
    later: Path, folder: Path
) -> None:
    with serving(later, folder) as server:
        assert server.peek("a") == 3
        status, _, err = server.stop()
    assert status == 0
    [logged] = [json.loads(line) for line in err.splitlines() if "file_migrated" in line]
    assert (logged["from_format"], logged["to_format"]) == (VERSION, VERSION + 1)
    assert version(folder) == VERSION + 1
    assert run(later, folder, "check")[0] == 0

    status, _, err = run(ROOT, folder, "serve")
    assert status == 1
    assert f"has format {VERSION + 1}, this program knows {VERSION}: run a newer vu-mi" in err
    (folder / COPY).rename(folder / FILE)
    with serving(ROOT, folder) as server:
        assert server.peek("a") == 3


def test_a_backup_of_an_older_file_is_migrated_when_it_is_restored(
    later: Path, folder: Path, tmp_path: Path
) -> None:
    backup, data = tmp_path / "backup", tmp_path / "restored"
    assert run(ROOT, folder, "backup", str(backup))[0] == 0
    status, _, err = run(later, data, "restore", str(backup))
    assert status == 0, err
    assert (version(backup), version(data)) == (VERSION, VERSION + 1)
    assert {path.name for path in data.iterdir()} == {FILE, "secrets.json"}
    with serving(later, data) as server:
        assert server.peek("a") == 3
