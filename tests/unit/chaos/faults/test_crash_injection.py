"""A crash between two commits: in which thread, before which transaction, and what is stored."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from chaos.faults import crash_injection
from simulation.environment import ROOT

PROGRAM = """
import os, signal, sqlite3, sys, threading
from pathlib import Path
from chaos.faults.crash_injection import CrashInjection

CrashInjection(Path(sys.argv[1])).install()
sqlite3.connect(":memory:").close()
file = sqlite3.connect(sys.argv[2], isolation_level=None, check_same_thread=False)
file.execute("CREATE TABLE steps (thread TEXT, step INTEGER)")
os.kill(os.getpid(), signal.SIGUSR1)


def work():
    name = threading.current_thread().name
    for step in range(3):
        file.execute("BEGIN IMMEDIATE")
        file.execute("INSERT INTO steps VALUES (?, ?)", (name, step))
        file.execute("COMMIT")


for name in ("put_views", "expiry"):
    thread = threading.Thread(target=work, name=name)
    thread.start()
    thread.join()
"""


def committed(folder: Path, thread: str, begins: int) -> tuple[int, list[tuple[str, int]]]:
    """Run the program; return how it ends and the contents of its file."""
    crash_injection.write(folder / "crash", thread, begins)
    file = folder / "file.sqlite3"
    finished = subprocess.run(  # noqa: S603  our own words
        [sys.executable, "-c", PROGRAM, folder / "crash", file], cwd=ROOT, check=False
    )
    with closing(sqlite3.connect(file)) as connection:
        return finished.returncode, connection.execute("SELECT thread, step FROM steps").fetchall()


BEFORE = [("put_views", step) for step in range(3)]


@pytest.mark.parametrize("begins", [1, 2, 3])
def test_the_process_ends_when_a_thread_begins_one_more_transaction(
    tmp_path: Path, begins: int
) -> None:
    """Its own commits stay, whatever other threads commit meanwhile."""
    own = [("expiry", step) for step in range(begins - 1)]
    assert committed(tmp_path, "expiry", begins) == (-signal.SIGKILL, BEFORE + own)


def test_the_process_continues_if_the_thread_begins_no_transaction(tmp_path: Path) -> None:
    status, steps = committed(tmp_path, "fold_views", 1)
    assert status == 0
    assert len(steps) == 6
