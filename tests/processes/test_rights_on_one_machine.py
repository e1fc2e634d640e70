"""The data folder of `python -m vumi` among other users of the machine."""

from __future__ import annotations

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

from chalicelib.events.sender import new_secret
from tests.processes.programs import run, running, succeed
from tests.unit.vumi.operate.backups.test_making import STRANGER, needs_root
from tests.unit.vumi.operate.check.test_check import snapshot
from vumi import tokens
from vumi.folder import LOCK
from vumi.storage.database import FILE
from vumi.storage.file_format import SHM, WAL

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


@pytest.mark.usefixtures("umask")
def test_all_that_the_server_makes_is_for_its_user_only(place: Path) -> None:
    """The file of the first start has the first token, which opens a wallet."""
    folder = place / "new" / "data"
    with running(folder) as server:
        server.badge("a")
        server.wait_for("a", 1)
        token = (folder / tokens.FIRST_FILE).read_text().strip()
        user = {"user_id": "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11"}
        assert server.ask("POST", "/api/v1/wallets", user, token)[0] == 200
        found = modes(folder)
        assert {FILE, FILE + WAL, FILE + SHM, LOCK, tokens.FIRST_FILE} <= found.keys()
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
@pytest.mark.parametrize("folder_mode", [0o700, 0o777])
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
        said = succeed(sys.executable, "-c", AS_A_STRANGER, str(STRANGER), *paths)
        assert said == "Permission denied\n" * len(paths)
        assert len(paths) >= 5


def test_a_server_warns_of_what_others_can_read_or_reach(place: Path) -> None:
    """The environment takes precedence over the file."""
    path, data = place / "settings.toml", place / "data"
    path.write_text(f'IDS = ["owner/*"]\nPORT = 1\nWEBHOOK_SECRETS = ["{new_secret()}"]\n')
    path.chmod(0o644)
    data.mkdir()
    data.chmod(0o755)
    with running(data, SETTINGS=str(path), HOST="0.0.0.0") as server:  # noqa: S104
        assert str(server.badge("other/a")["message"]).startswith("this id is not counted here")
        logged = {str(one["message"]): one for one in server.log()}
    assert {*logged} == {"folder_not_private", "plain_http_exposed", "settings_file_not_private"}
    subprocess.run(str(logged["folder_not_private"]["fix"]).split(), check=True)  # noqa: S603
    assert run(data, "check")[0] == 0


def test_a_command_refuses_a_planted_link(place: Path) -> None:
    for name in ("data", "victim"):
        with running(place / name) as server:
            server.stop()
    (place / "data" / FILE).unlink()
    (place / "data" / FILE).symlink_to(place / "victim" / FILE)
    before = snapshot(place)
    status, _, err = run(place / "data", "fold")
    assert status == 1
    assert f"{place / 'data' / FILE} is a symbolic link: replace it by what it points to" in err
    assert snapshot(place) == before


def test_no_core_file_is_written(place: Path) -> None:
    """The operator's shell allows core files."""
    before = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (before[1], before[1]))
    with running(place / "data") as server:
        limits = Path(f"/proc/{server.process.pid}/limits").read_text()
        server.process.send_signal(signal.SIGABRT)
    resource.setrlimit(resource.RLIMIT_CORE, before)
    assert re.search(r"^Max core file size +0 ", limits, re.MULTILINE)
