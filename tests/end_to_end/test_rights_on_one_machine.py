"""The data folder of `python -m vumi` among other users of the machine."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.server import PATIENCE_SECONDS, Server, running, start
from tests.unit.vumi.operate.backups.test_making import STRANGER, needs_root
from tests.unit.vumi.operate.check.test_check import snapshot
from vumi import secrets
from vumi.folder import LOCK
from vumi.storage.archive import FOLDER
from vumi.storage.database import FILE
from vumi.storage.read_only import SHM, WAL

AS_A_STRANGER = """
import fcntl, os, sys
os.setgroups([])
os.setgid(int(sys.argv[1]))
os.setuid(int(sys.argv[1]))
for path in sys.argv[2:]:
    try:
        fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
        print("opened", path)
    except OSError as error:
        print(error.strerror)
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """Return a folder that every user can reach and write, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        place.chmod(0o1777)
        yield place


@pytest.fixture(params=[0o000, 0o022])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    """Set the rights that the shell of the operator takes from new files."""
    before = os.umask(request.param)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in (folder, *folder.rglob("*"))}


def run(folder: Path, *command: str) -> tuple[int, str, str]:
    process = start(folder, *command)
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    return process.returncode, out, err


def open_a_wallet(server: Server, folder: Path) -> None:
    """Open a wallet by the first token, which the file of the first start has."""
    token = (folder / secrets.FIRST_TOKEN).read_text().strip()
    body = json.dumps({"user_id": "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11"})
    bearer = {"Authorization": f"Bearer {token}"}
    assert server.request("/api/v1/wallets", "POST", body, bearer)[0] == 200


@pytest.mark.usefixtures("umask")
def test_all_that_the_server_makes_is_for_its_user_only(place: Path) -> None:
    folder = place / "new" / "data"
    with running(folder) as server:
        server.badge("a")
        server.wait_for("a", 1)
        open_a_wallet(server, folder)
        found = modes(folder)
        assert {FILE, FILE + WAL, FILE + SHM, LOCK, secrets.FIRST_TOKEN} <= found.keys()
        assert found.pop("data") == 0o700
        assert set(found.values()) == {0o600}
        assert folder.parent.stat().st_mode & 0o777 == 0o700
        assert run(folder, "backup", str(place / "backup"))[0] == 0
        server.stop()
    assert modes(place / "backup")[FILE] == 0o600
    status, out, _ = run(folder, "check")
    assert f"ok: no other user has rights to {folder}/\n" in out
    assert status == 0


@needs_root
@pytest.mark.usefixtures("umask")
@pytest.mark.parametrize("folder_mode", [0o700, 0o755, 0o777])
def test_another_user_can_neither_read_the_files_nor_hold_the_lock(
    place: Path, folder_mode: int
) -> None:
    """The operator may give others rights to the folder, but the files keep theirs."""
    folder = place / "data"
    with running(folder) as server:
        server.badge("a")
        server.stop()
    (folder / LOCK).chmod(0o666)  # by hand; the next start takes this right back
    folder.chmod(folder_mode)
    with running(folder) as server:
        server.badge("a")
        paths = [str(path) for path in folder.iterdir()]
        command = [sys.executable, "-c", AS_A_STRANGER, str(STRANGER), *paths]
        said = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
        assert said.stdout == "Permission denied\n" * len(paths)
        assert len(paths) >= 5


def test_a_folder_with_rights_of_others_is_reported_once_with_the_fix(place: Path) -> None:
    folder = place / "data"
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    with running(folder) as server:
        server.badge("a")
        [line] = server.stop()[2].splitlines()
    logged = json.loads(line)
    assert (logged["message"], logged["folder"]) == ("folder_not_private", str(folder))
    assert (logged["mode"], logged["fix"]) == ("755", f"chmod -R go= {folder}")
    status, out, _ = run(folder, "check")
    assert f"note: other users have rights to {folder}/ (mode 755): run `chmod -R" in out
    assert status == 0
    folder.chmod(0o777)
    status, out, _ = run(folder, "check")
    assert f"wrong: other users have rights to {folder}/ (mode 777): run `chmod -R" in out
    assert status == 3
    subprocess.run(logged["fix"].split(), check=True)  # noqa: S603  our own words
    assert run(folder, "check")[0] == 0


@pytest.mark.parametrize("name", [LOCK, FILE, FOLDER])
def test_a_planted_link_is_refused_in_one_line(place: Path, name: str) -> None:
    victim = place / "victim"
    victim.write_text("of the operator")
    folder = place / "data"
    folder.mkdir(mode=0o700)
    (folder / name).symlink_to(victim)
    status, out, err = run(folder)
    assert (status, out) == (1, "")
    path = folder / name
    assert err == f"vu-mi: {path} is a symbolic link: replace it by what it points to\n"
    assert victim.read_text() == "of the operator"
    assert [path.name for path in folder.iterdir()] == [name]


@pytest.mark.parametrize("command", [["fold"], ["redrive"], ["backup", "elsewhere"]])
def test_a_command_refuses_a_planted_link(place: Path, command: list[str]) -> None:
    for name in ("data", "victim"):
        with running(place / name) as server:
            server.stop()
    (place / "data" / FILE).unlink()
    (place / "data" / FILE).symlink_to(place / "victim" / FILE)
    before = snapshot(place)
    status, _, err = run(place / "data", *command)
    assert status == 1
    assert f"{place / 'data' / FILE} is a symbolic link: replace it by what it points to" in err
    assert snapshot(place) == before


@needs_root
def test_a_planted_folder_is_refused(place: Path) -> None:
    """Its owner could read the secrets in it."""
    folder = place / "data"
    folder.mkdir()
    os.chown(folder, STRANGER, STRANGER)
    status, _, err = run(folder)
    assert status == 1
    assert err.startswith(f"vu-mi: {folder}/ belongs to another user (id {STRANGER}): run vu-mi as")
    assert list(folder.iterdir()) == []


def test_no_core_file_is_written(place: Path) -> None:
    """The operator's shell allows core files."""
    before = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (before[1], before[1]))
    with running(place / "data") as server:
        limits = Path(f"/proc/{server.process.pid}/limits").read_text()
        server.process.send_signal(signal.SIGABRT)
    resource.setrlimit(resource.RLIMIT_CORE, before)
    assert re.search(r"^Max core file size +0 ", limits, re.MULTILINE)
