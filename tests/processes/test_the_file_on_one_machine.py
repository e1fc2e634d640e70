"""The file of one machine: full, locked, broken, newer, checked, backed up and restored.

A later program on the data of this one migrates the file, which this one then refuses.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from chaos.faults import limit, unlimit
from simulation.environment import ROOT
from tests.processes.programs import PATIENCE_SECONDS, finish, read_row, run, running, start
from tests.unit.vumi.operate.check.test_check import break_page, snapshot
from vumi.storage.database import FILE, WAY_BACK
from vumi.storage.file_format import SHM, VERSION, WAL


@pytest.mark.parametrize(
    ("size", "says"),
    [
        (0, "can't be opened: it is empty, and vu-mi never leaves it so: restore a backup"),
        (9_000, f"can't be opened: SQLite: database disk image is malformed; {WAY_BACK}"),
    ],
)
def test_a_file_that_can_not_be_used_is_refused_in_one_line_and_left_byte_for_byte(
    folder: Path, size: int, says: str
) -> None:
    os.truncate(folder / FILE, size)
    before = snapshot(folder)
    status, out, err = run(folder)
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("Error: ")
    assert says in err
    after = snapshot(folder)
    assert after[FILE] == before[FILE]
    assert {FILE + WAL, FILE + SHM}.isdisjoint(after)
    status, out, _ = run(folder, "check")
    assert status == 3
    assert "wrong: " in out
    assert snapshot(folder) == after


def test_a_wal_without_its_file_is_not_used_with_a_new_file(folder: Path) -> None:
    """Otherwise SQLite would take its pages for those of the new file."""
    with running(folder) as server:
        server.visit("a", 1)
        server.kill()
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


def run_by(program: str, folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Run a text of Python on a folder; return its exit status and what it printed."""
    settings = {"DATA": str(folder), "PORT": "0"}
    ended = finish(sys.executable, "-B", "-c", program, *arguments, env=settings)
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.parametrize(
    ("file_mode", "folder_mode", "says"),
    [
        (0o444, 0o755, "it can't be written; let this user write the file and its folder"),
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
    status, _, err = run_by(WITHOUT_RIGHTS, folder, "serve")
    folder.chmod(0o755)
    path.chmod(0o644)
    assert (status, err.count("\n")) == (1, 1)
    assert says in err
    assert snapshot(folder)[FILE] == before[FILE]


def test_a_folder_that_can_not_be_written_is_backed_up(folder: Path, tmp_path: Path) -> None:
    """SQLite's locks need a file in the folder, so it is read without them."""
    before = snapshot(folder)
    folder.chmod(0o555)
    status, _, err = run_by(WITHOUT_RIGHTS, folder, "backup", str(tmp_path / "one"))
    folder.chmod(0o755)
    assert (status, err) == (0, "")
    assert snapshot(folder) == before


@pytest.mark.parametrize(("size", "views"), [(0, 3), (512, 0)])
def test_a_full_disk_at_the_start_is_reported_and_leaves_no_partial_file(
    folder: Path, tmp_path: Path, size: int, views: int
) -> None:
    """No file of the process may grow, or there is space for the lock file but for no page."""
    place = folder if views else tmp_path / "new"
    status, _, err = limited(place, size)
    assert (status, err.count("\n")) == (1, 1)
    assert "make room on" in err
    assert (place / FILE).exists() is (views > 0)
    with running(place) as server:
        assert server.peek("a") == views


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
from vumi.cli.program import main
sys.exit(main(sys.argv[2:]))
"""


def limited(folder: Path, size: int, *command: str) -> tuple[int, str, str]:
    """Run a command, or the server, that can't write larger files."""
    return run_by(LIMITED, folder, str(size), *(command or ("serve",)))


def test_a_badge_reports_a_full_disk_and_counts_again_when_there_is_space(folder: Path) -> None:
    with running(folder) as server:
        limit(server.process.pid, 1_000)
        badge = server.badge("a")
        assert badge["isError"]
        assert "not counted" in badge["message"]
        assert server.peek("a") == 3
        unlimit(server.process.pid)
        server.visit("a", 2)
        assert "make room on" in server.stop()[2]
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
    with running(folder) as server:
        with locked(folder), locked(elsewhere), ThreadPoolExecutor(12) as visitors:
            begun = time.monotonic()
            starting = start(elsewhere)
            badges = list(visitors.map(lambda _: server.badge("a"), range(12)))
            assert time.monotonic() - begun < 15
            assert all("not counted" in str(badge["message"]) for badge in badges)
            assert server.peek("a") == 3
            _, err = starting.communicate(timeout=PATIENCE_SECONDS)
            assert (starting.returncode, err.count("\n")) == (1, 1)
            assert "database is locked; another program holds it locked; let that end" in err
        server.visit("a", 1)
        assert server.peek("a") == 4
        assert "another program holds it locked" in server.stop()[2]


def test_a_file_that_breaks_while_it_is_served_becomes_read_only(folder: Path) -> None:
    """The index of expiring items breaks: counts are shown, no view counts, and healthz says so."""
    with running(folder) as server:
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
        lines = server.log()
    [told] = [line for line in lines if line["message"] == "file_corrupt"]
    assert told["fix"] == WAY_BACK
    assert sum(line["message"] == "loop_paused" for line in lines) < 20


# ---- a later program

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
