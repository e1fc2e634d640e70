"""Backups of a real server: made under load, restored, and killed at any moment."""

from __future__ import annotations

import json
import shutil
import signal
import time
from pathlib import Path

import pytest

from simulation.server_process import Process
from tests.processes.programs import PATIENCE_SECONDS, run, running, start
from tests.processes.test_one_machine import visiting
from tests.processes.test_the_file_on_one_machine import limited
from vumi.storage.database import FILE

OBJECTS = 400
"""Objects of an archive that take a while to copy."""


def backed_up(folder: Path, within: Path) -> Path:
    status, out, err = run(folder, "backup", "--keep", "2", "--json", str(within))
    assert (status, err) == (0, "")
    return Path(json.loads(out)["backup"])


def test_a_backup_under_load_is_restored_with_every_acknowledged_view(tmp_path: Path) -> None:
    folder, restored = tmp_path / "data", tmp_path / "restored"
    (tmp_path / "backups").mkdir(mode=0o700)
    with running(folder) as server, visiting(server, 8) as visitors:
        visitors.wait_for(20)
        backed_up(folder, tmp_path / "backups")
        visitors.wait_for(40)
        least = visitors.acknowledged
        made = backed_up(folder, tmp_path / "backups")
        most = visitors.attempted
        visitors.wait_for(most + 1)
    assert run(restored, "restore", str(made))[0] == 0
    status, out, _ = run(restored, "check")
    assert status == 0, out
    with running(restored) as server:
        assert least <= (shown := server.peek("hot")) <= most
        server.visit("hot", 3)
        assert server.peek("hot") == shown + 3


def test_a_server_that_is_killed_during_a_backup_changes_nothing_in_it(tmp_path: Path) -> None:
    folder, restored = tmp_path / "data", tmp_path / "restored"
    with running(folder) as server, visiting(server, 8) as visitors:
        visitors.wait_for(20)
        fill_archive(folder)
        least = visitors.acknowledged
        process = start(folder, "backup", str(tmp_path / "backup"))
        wait_for_part(process, tmp_path, "backup")
        server.process.kill()
        assert process.communicate(timeout=PATIENCE_SECONDS)[1] == ""
        assert process.returncode == 0
    assert run(restored, "restore", str(tmp_path / "backup"))[0] == 0
    with running(restored) as server:
        assert least <= server.peek("hot") <= visitors.attempted


def fill_archive(folder: Path) -> None:
    malformed = folder / "archive" / "journal" / "malformed"
    malformed.mkdir(parents=True)
    for number in range(OBJECTS):
        (malformed / f"{number}.jsonl.gz").touch()


def wait_for_part(process: Process, within: Path, name: str) -> None:
    """Wait until a command copies the archive."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not list(within.glob(f".{name}.*.part/archive")):
        assert time.monotonic() < deadline
        assert process.poll() is None


@pytest.fixture(scope="module")
def archived(stopped: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the folder of a stopped vu-mi with a large archive."""
    folder = shutil.copytree(stopped, tmp_path_factory.mktemp("archived") / "data")
    fill_archive(folder)
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_backup_leaves_no_backup_and_the_next_one_works(
    archived: Path, tmp_path: Path, how: signal.Signals
) -> None:
    process = start(archived, "backup", str(tmp_path / "backup"))
    wait_for_part(process, tmp_path, "backup")
    process.send_signal(how)
    process.communicate(timeout=PATIENCE_SECONDS)
    if how is signal.SIGKILL:
        assert not (tmp_path / "backup").exists()
    else:
        assert (process.returncode, names(tmp_path)) == (130, [])
    assert run(archived, "backup", str(tmp_path / "backup"))[0] == 0
    assert names(tmp_path) == ["backup"]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("is_used", [False, True])
def test_an_interrupted_restore_changes_nothing_and_the_next_one_works(
    archived: Path, tmp_path: Path, how: signal.Signals, *, is_used: bool
) -> None:
    """The backup of the operator is a data folder here; both are only read."""
    data = tmp_path / "data"
    if is_used:
        with running(data) as server:
            server.visit("b", 1)
            server.stop()
    before = names(data) if is_used else []
    process = start(data, "restore", "--aside", str(archived))
    wait_for_part(process, tmp_path, "data")
    process.send_signal(how)
    process.communicate(timeout=PATIENCE_SECONDS)
    assert data.exists() == is_used
    assert before == (names(data) if is_used else [])
    if how is signal.SIGTERM:
        assert (process.returncode, names(tmp_path)) == (130, ["data"] if is_used else [])
    assert run(data, "restore", "--aside", str(archived))[0] == 0
    assert len(names(tmp_path)) == 1 + is_used
    with running(data) as server:
        assert (server.peek("a"), server.peek("b")) == (3, 0)


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_a_full_disk_is_reported_and_leaves_nothing(
    archived: Path, tmp_path: Path, command: str
) -> None:
    new = tmp_path / "new"
    data, argument = (archived, new) if command == "backup" else (new, archived)
    size = (archived / FILE).stat().st_size // 2
    status, out, err = limited(data, size, command, str(argument))
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert "make room on" in err
    assert names(tmp_path) == []
