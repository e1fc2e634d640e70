"""A later program on the data of this one: commands refuse the file, and the server migrates it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from simulation.environment import ROOT
from tests.processes.programs import read_row, run, running
from vumi.storage.database import FILE
from vumi.storage.file_format import VERSION

LATER = f"{VERSION + 1:04}_colors.sql"
COPY = f"{FILE}.format-{VERSION}"


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment of a program that has one more migration."""
    sources = tmp_path_factory.mktemp("later")
    for package in ("chalicelib", "vumi"):
        shutil.copytree(ROOT / package, sources / package)
    script = sources / "vumi" / "storage" / "migrations" / LATER
    script.write_text("CREATE TABLE colors (name TEXT);\n")
    return {"PYTHONSAFEPATH": "1", "PYTHONPATH": str(sources)}


def version(folder: Path) -> int:
    return int(read_row(folder, "PRAGMA user_version")[0])


def test_the_server_migrates_an_older_file_and_keeps_a_copy_of_it(
    later: dict[str, str], folder: Path
) -> None:
    with running(folder, **later) as server:
        assert server.peek("a") == 3
        status, _, err = server.stop()
    assert status == 0
    [logged] = [json.loads(line) for line in err.splitlines() if "file_migrated" in line]
    assert (logged["from_format"], logged["to_format"]) == (VERSION, VERSION + 1)
    assert version(folder) == VERSION + 1
    assert run(folder, "check", **later)[0] == 0

    status, _, err = run(folder)
    assert status == 1
    assert f"has format {VERSION + 1}, this program knows {VERSION}: run a newer vu-mi" in err
    (folder / COPY).rename(folder / FILE)
    with running(folder) as server:
        assert server.peek("a") == 3


def test_a_backup_of_an_older_file_is_migrated_when_it_is_restored(
    later: dict[str, str], folder: Path, tmp_path: Path
) -> None:
    backup, data = tmp_path / "backup", tmp_path / "restored"
    assert run(folder, "backup", str(backup))[0] == 0
    status, _, err = run(data, "restore", str(backup), **later)
    assert status == 0, err
    assert (version(backup), version(data)) == (VERSION, VERSION + 1)
    assert {path.name for path in data.iterdir()} == {FILE, "secrets.json"}
    with running(data, **later) as server:
        assert server.peek("a") == 3
