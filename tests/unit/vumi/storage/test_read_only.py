"""A reader of the file sees one moment, whatever a server does meanwhile."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from chalicelib.storage.errors import UnavailableError
from vumi.storage.database import FILE, Database
from vumi.storage.read_only import SHM, WAL, beside, has_wal, open_read_only, open_without_locks
from vumi.storage.table import SqliteTable, all_items

BADGES = 2_000
STEP_PAGES = 5


def put(path: Path, base: int) -> None:
    """Write every badge, as a server does that starts and stops."""
    with closing(Database(path)) as database:
        SqliteTable(database).put_all(
            [{"PK": f"USER#{n}", "SK": "VIEWS", "base": base} for n in range(BADGES)]
        )


def copy_meanwhile(source: sqlite3.Connection, to: Path, change: Callable[[], None]) -> None:
    """Copy the file step by step; it changes after the first step."""
    remaining: list[int] = []

    def progress(_: int, pages: int, __: int) -> None:
        remaining.append(pages)
        if len(remaining) == 1:
            change()

    source.execute("PRAGMA user_version").fetchall()
    with closing(sqlite3.connect(to)) as copy:
        source.backup(copy, pages=STEP_PAGES, progress=progress)
    assert remaining[0] > STEP_PAGES


def bases(path: Path) -> set[object]:
    with closing(Database(path)) as database:
        return {item["base"] for item in all_items(database)}


def put_elsewhere(path: Path, base: int) -> None:
    """Write every badge in another process, because SQLite's locks are those of a process."""
    code = f"from {__name__} import Path, put; put(Path({str(path)!r}), {base})"
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603  the text above


def stop(path: Path) -> None:
    put(path, 1)


def kill(path: Path, *, commits: bool = True) -> None:
    """Leave what a killed server leaves: the file, its WAL and the index of it."""
    alive = path.with_name("alive") / FILE
    alive.parent.mkdir()
    put(alive, 0 if commits else 1)
    with closing(Database(alive)) as database:
        if commits:
            put(alive, 1)
        database.read("SELECT 1 FROM items")
        for suffix in ("", WAL, SHM):
            shutil.copyfile(beside(alive, suffix), beside(path, suffix))
    assert has_wal(path) == commits


def kill_before_a_commit(path: Path) -> None:
    kill(path, commits=False)


def leave_without_index(path: Path) -> None:
    kill(path)
    beside(path, SHM).unlink()


@pytest.mark.parametrize("leave", [stop, kill, kill_before_a_commit])
def test_a_copy_is_of_one_moment_if_a_server_starts_meanwhile(
    tmp_path: Path, leave: Callable[[Path], None]
) -> None:
    path = tmp_path / FILE
    leave(path)
    with open_read_only(path) as connection:
        copy_meanwhile(connection, tmp_path / "copy", lambda: put_elsewhere(path, 2))
    assert bases(tmp_path / "copy") == {1}
    assert bases(path) == {2}
    assert sorted(found.name for found in tmp_path.glob("vu-mi*")) == [FILE]


@pytest.mark.parametrize("leave", [stop, leave_without_index])
def test_a_file_that_changes_while_it_is_read_without_locks_is_not_used(
    tmp_path: Path, leave: Callable[[Path], None]
) -> None:
    path = tmp_path / FILE
    leave(path)
    with open_without_locks(path) as connection:
        assert connection.execute("SELECT count(*) FROM items").fetchone() == (BADGES,)
    with (
        pytest.raises(UnavailableError, match="changed while it was read; try again"),
        open_without_locks(path) as connection,
    ):
        copy_meanwhile(connection, tmp_path / "copy", lambda: put_elsewhere(path, 2))
