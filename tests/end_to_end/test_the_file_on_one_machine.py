"""The file of one machine: full, locked, broken, newer, checked, backed up and restored."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from chaos.faults.disk import limit, unlimit
from tests.end_to_end.server import PATIENCE_SECONDS, Server, running, start
from tests.unit.vumi.operate.check.test_check import break_page, snapshot
from vumi.storage.database import FILE, WAY_BACK
from vumi.storage.file_format import VERSION
from vumi.storage.read_only import SHM, WAL


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a stopped vu-mi: one badge with 3 views."""
    folder = tmp_path_factory.mktemp("stopped") / "data"
    with running(folder) as server:
        visit(server, 3)
        assert server.stop()[0] == 0
    return folder


@pytest.fixture
def folder(stopped: Path, tmp_path: Path) -> Path:
    """Return a copy of that folder, which the test may change."""
    return shutil.copytree(stopped, tmp_path / "data")


def visit(server: Server, times: int, badge_id: str = "a") -> None:
    before = server.peek(badge_id)
    for _ in range(times):
        server.badge(badge_id)
    server.wait_for(badge_id, before + times)


def run(folder: Path, *command: str) -> tuple[int, str, str]:
    """Run a command; return its exit status, standard output and standard error."""
    process = start(folder, *command)
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    return process.returncode, out, err


def check_refused(folder: Path, says: str) -> None:
    """Check that vu-mi does not start, gives the reason in one line, and changes no file."""
    before = (folder / FILE).read_bytes()
    status, out, err = run(folder)
    assert (status, out) == (1, "")
    assert err.startswith("vu-mi: ")
    assert says in err
    assert err.count("\n") == 1
    assert (folder / FILE).read_bytes() == before


@contextmanager
def drained(folder: Path, **settings: str) -> Iterator[tuple[Server, list[str]]]:
    """Run a server; yield it with the lines of its log as they are written."""
    with running(folder, **settings) as server:
        lines: list[str] = []
        stream = server.process.stderr
        assert stream is not None
        reader = threading.Thread(target=lambda: lines.extend(stream), daemon=True)
        reader.start()
        yield server, lines


def empty(path: Path) -> None:
    path.write_bytes(b"")


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:9_000])


def break_header(path: Path) -> None:
    path.write_bytes(b"\x99" * 64 + path.read_bytes()[64:])


def make_newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")


def replace_by_another(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE diary (day)")


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (empty, "can't be opened: it is empty, and vu-mi never leaves it so: restore a backup"),
        (cut_short, f"can't be opened: SQLite: database disk image is malformed; {WAY_BACK}"),
        (break_header, f"can't be opened: SQLite: file is not a database; {WAY_BACK}"),
        (make_newer, f"the file has format {VERSION + 1}, this program knows {VERSION}: run a"),
        (replace_by_another, "it is a SQLite file, but not one of vu-mi: set DATA to another"),
    ],
)
def test_a_file_that_can_not_be_used_is_refused_in_one_line_and_left_byte_for_byte(
    folder: Path, damage: Callable[[Path], None], says: str
) -> None:
    damage(folder / FILE)
    check_refused(folder, says)
    assert {FILE + WAL, FILE + SHM}.isdisjoint(snapshot(folder))
    before = snapshot(folder)
    status, out, _ = run(folder, "check")
    assert status == 3
    assert "wrong: " in out
    assert snapshot(folder) == before


def test_a_wal_without_its_file_is_not_used_with_a_new_file(folder: Path) -> None:
    """Otherwise SQLite would take its pages for those of the new file."""
    with running(folder) as server:
        visit(server, 1)
        server.process.kill()
        server.process.wait()
    (folder / FILE).rename(folder / "elsewhere")
    status, _, err = run(folder)
    assert status == 1
    assert f"{FILE}-wal is there without {FILE}: put that back beside it" in err
    assert not (folder / FILE).exists()
    (folder / "elsewhere").rename(folder / FILE)
    with running(folder) as server:
        assert server.peek("a") == 4


WITHOUT_RIGHTS = """
import ctypes, os, sys
for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH (capabilities(7)); 24 drops one
    ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)
os.execv(sys.executable, [sys.executable, "-m", "vumi", *sys.argv[1:]])
"""
"""A command that runs as a user who is not root, so that the modes of files apply."""


def run_without_rights(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603  the text above
        [sys.executable, "-c", WITHOUT_RIGHTS, *command],
        cwd=Path(__file__).parents[2],
        env={"DATA": str(folder), "PORT": "0"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("file_mode", "folder_mode", "says"),
    [
        (0o444, 0o755, "it can't be written; let this user write the file and its folder"),
        (0o000, 0o755, "it can't be written; let this user write the file and its folder"),
        (
            0o644,
            0o555,
            "attempt to write a readonly database; let this user write the file and its",
        ),
    ],
)
def test_a_read_only_file_or_folder_is_reported(
    folder: Path, file_mode: int, folder_mode: int, says: str
) -> None:
    path, before = folder / FILE, snapshot(folder)
    path.chmod(file_mode)
    folder.chmod(folder_mode)
    process = run_without_rights(folder, "serve")
    folder.chmod(0o755)
    path.chmod(0o644)
    assert process.returncode == 1
    assert says in process.stderr
    assert process.stderr.count("\n") == 1
    after = snapshot(folder)
    assert after[FILE] == before[FILE]


def test_a_folder_that_can_not_be_written_is_backed_up(folder: Path, tmp_path: Path) -> None:
    """SQLite's locks need a file in the folder, so it is read without them."""
    before = snapshot(folder)
    folder.chmod(0o555)
    process = run_without_rights(folder, "backup", str(tmp_path / "one"))
    folder.chmod(0o755)
    assert (process.returncode, process.stderr) == (0, "")
    assert snapshot(folder) == before


def test_a_full_disk_at_the_start_is_reported(folder: Path) -> None:
    """No file of the process may grow, as on a full disk."""
    status, _, err = limited(folder, 0)
    assert (status, err.count("\n")) == (1, 1)
    assert "make room on" in err
    with running(folder) as server:
        assert server.peek("a") == 3


def test_a_full_disk_at_the_first_start_leaves_no_partial_file(tmp_path: Path) -> None:
    """There is space for the lock file but for no page."""
    status, _, err = limited(tmp_path / "data", 512)
    assert (status, err.count("\n")) == (1, 1)
    assert "make room on" in err
    assert not (tmp_path / "data" / FILE).exists()
    with running(tmp_path / "data") as server:
        assert server.peek("a") == 0


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
from vumi.cli.program import main
sys.exit(main(sys.argv[2:]))
"""


def limited(folder: Path, size: int, *command: str) -> tuple[int, str, str]:
    """Run a command, or the server, that can't write larger files."""
    process = subprocess.run(  # noqa: S603  the text above
        [sys.executable, "-B", "-c", LIMITED, str(size), *(command or ("serve",))],
        cwd=Path(__file__).parents[2],
        env={"DATA": str(folder), "PORT": "0"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    return process.returncode, process.stdout, process.stderr


def test_a_badge_reports_a_full_disk_and_counts_again_when_there_is_space(
    folder: Path,
) -> None:
    with drained(folder) as (server, lines):
        limit(server.process.pid, 1_000)
        badge = server.badge("a")
        assert badge["isError"]
        assert "not counted" in badge["message"]
        assert server.peek("a") == 3
        unlimit(server.process.pid)
        visit(server, 2)
        server.stop()
    assert any("make room on" in line for line in lines)
    assert run(folder, "check")[0] == 0


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock the file as another program, until the block ends."""
    with closing(sqlite3.connect(folder / FILE, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield
        other.execute("ROLLBACK")


def test_while_another_program_locks_the_file_all_requests_are_answered_soon(
    folder: Path, stopped: Path, tmp_path: Path
) -> None:
    """The first request waits 5 s for the file. If all 12 did so in turn, they would wait 60 s.

    Meanwhile another instance starts on another locked file.
    """
    elsewhere = shutil.copytree(stopped, tmp_path / "elsewhere")
    with drained(folder) as (server, lines):
        badges: list[dict[str, object]] = []
        visitors = [
            threading.Thread(target=lambda: badges.append(server.badge("a"))) for _ in range(12)
        ]
        with locked(folder), locked(elsewhere):
            begun = time.monotonic()
            starting = start(elsewhere)
            for visitor in visitors:
                visitor.start()
            for visitor in visitors:
                visitor.join()
            assert time.monotonic() - begun < 15
            assert len(badges) == 12
            assert all("not counted" in str(badge["message"]) for badge in badges)
            assert server.peek("a") == 3
            _, err = starting.communicate(timeout=PATIENCE_SECONDS)
            assert (starting.returncode, err.count("\n")) == (1, 1)
            assert "database is locked; another program holds it locked; let that end" in err
        visit(server, 1)
        assert server.peek("a") == 4
        server.stop()
    assert any("another program holds it locked" in line for line in lines)


def test_a_file_that_breaks_while_it_is_served_becomes_read_only(
    folder: Path,
) -> None:
    """The index of expiring items breaks: counts are shown, no view counts, and healthz says so."""
    with drained(folder) as (server, lines):
        assert server.request("/healthz")[0] == 200
        break_page(folder / FILE, "expiring")
        badge = server.badge("b")  # the first view of a window puts a marker, which expires
        assert badge["isError"]
        assert "not counted" in badge["message"]
        assert server.peek("a") == 3
        assert server.request("/healthz")[0] == 503
        before = snapshot(folder)
        server.badge("b")
        after = snapshot(folder)
        assert (after[FILE], after[FILE + WAL]) == (before[FILE], before[FILE + WAL])
        server.stop()
    told = [line for line in lines if '"file_corrupt"' in line]
    assert len(told) == 1
    assert WAY_BACK.replace('"', '\\"') in told[0]
    assert sum('"loop_paused"' in line for line in lines) < 20


def test_a_backup_of_a_running_server_replaces_a_broken_file(folder: Path, tmp_path: Path) -> None:
    """This follows docs/backups.md: stop, restore, start.

    3 and 2 views come before the backup; 4 more come after it and are lost with the file.
    """
    with running(folder) as server:
        visit(server, 2)
        status, out, err = run(folder, "backup", str(tmp_path / "backup"))
        assert (status, err) == (0, "")
        assert out == (
            f"{tmp_path / 'backup'} has the file and 0 objects of the archive, and is correct.\n"
        )
        visit(server, 4)
        assert run(folder, "check")[0] == 0
        server.stop()
    break_page(folder / FILE)
    status, out, err = run(folder, "check")
    assert status == 3
    assert "database disk image is malformed" in out
    assert err.endswith(f"{WAY_BACK}\n")
    status, out, err = run(folder, "restore", "--aside", str(tmp_path / "backup"))
    assert (status, err) == (0, "")
    assert f"{folder} has the file and 0 objects of the archive, and is correct; start vu" in out
    with running(folder) as server:
        assert server.peek("a") == 5
        visit(server, 1)
        assert server.stop()[0] == 0
    assert run(folder, "check")[0] == 0


def recover(broken: Path, path: Path) -> None:
    """Recover the file as docs/backups.md says."""
    shell = f'sqlite3 "{broken}" .recover | sqlite3 "{path}"'
    subprocess.run(shell, shell=True, check=True, capture_output=True)  # noqa: S602  our own words


def test_a_file_that_sqlite_recovered_is_served_again(folder: Path, tmp_path: Path) -> None:
    """The index of expiring items breaks, but all items are still readable."""
    if shutil.which("sqlite3") is None:
        pytest.skip("there is no sqlite3 on this machine")
    recover(folder / FILE, tmp_path / "sound")
    if not (tmp_path / "sound").stat().st_size:
        pytest.skip("the sqlite3 of this machine has no .recover")
    break_page(folder / FILE, "expiring")
    (folder / FILE).rename(folder / "broken.sqlite3")
    recover(folder / "broken.sqlite3", folder / FILE)
    status, out, err = run(folder, "check")
    assert (status, err) == (0, ""), out
    with running(folder) as server:
        assert server.peek("a") == 3


@pytest.mark.parametrize("killed", [False, True])
def test_a_check_changes_and_creates_no_file(folder: Path, *, killed: bool) -> None:
    """The check may run beside a server, which gets no request meanwhile."""
    with running(folder) as server:
        visit(server, 1)
        if killed:
            server.process.kill()
            server.process.wait()
        before = snapshot(folder)
        assert run(folder, "check")[0] == 0
        after = snapshot(folder)
    assert after.keys() == before.keys()
    assert after[FILE] == before[FILE]
    assert after == before or not killed
