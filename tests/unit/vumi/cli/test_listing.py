"""The commands list and top: the busiest badges as a table, as JSON, and live in a terminal."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from simulation.environment import ROOT
from simulation.views import AT_NOON, put_summary, put_views
from tests.unit.vumi.commands import Vumi
from vumi.cli import listing
from vumi.cli.listing import ENTER, LEAVE, Terminal, follow
from vumi.operate.admin.overview import By
from vumi.storage.database import Database
from vumi.storage.table import SqliteTable


@pytest.fixture(autouse=True)
def _badges(vumi: Vumi) -> None:
    """Put three badges: the busiest in total, today and now differ."""
    put_summary(vumi.memory, "old", count=9_000, created=1_700_000_000, frozen=1)
    put_summary(vumi.memory, "today", count=50, today={"day": "2026-03-14", "h01": 50})
    put_views(vumi.memory, AT_NOON, AT_NOON - 1, badge_id="now")


def test_badges_are_listed_with_aligned_numbers(vumi: Vumi) -> None:
    assert vumi("list") == 0
    assert vumi.out.splitlines() == [
        "NOW  TODAY  MONTH  TOTAL  CREATED             BADGE",
        "  0      0      0  9,000  2023-11-14  frozen  old",
        "  0     50     50     50  -                   today",
        "  2      2      2      2  -                   now",
    ]
    assert vumi.err == "3 of 3 badges; 9,052 views\n"


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        (["--sort", "now"], ["now", "old", "today"]),
        (["--sort", "today", "--limit", "1"], ["today"]),
        (["--sort", "month", "--limit", "2"], ["today", "now"]),
        (["--search", "O"], ["old", "today", "now"]),
        (["--search", "tod"], ["today"]),
    ],
)
def test_json_has_a_badge_on_each_line(vumi: Vumi, options: list[str], ids: list[str]) -> None:
    first, *others = vumi.json("list", *options)
    assert [badge["id"] for badge in (first, *others)] == ids
    assert {"name", "total", "month", "today", "now", "frozen", "owned", "names"} <= first.keys()


def test_an_id_cant_steer_the_terminal(vumi: Vumi) -> None:
    put_summary(vumi.memory, "\x1b[2Jgone\u202e", count=1)
    assert vumi("list", "--search", "gone") == 0
    assert "\\x1b[2Jgone\\u202e" in vumi.out


@pytest.mark.parametrize("option", [["--limit", "0"], ["--limit", "100001"], ["--sort", "name"]])
def test_other_options_are_wrong_usage(vumi: Vumi, option: list[str]) -> None:
    assert vumi("list", *option) == 2


def test_the_frame_has_the_sums_and_the_busiest_badges(vumi: Vumi) -> None:
    lines = [*listing.read(vumi.installation, By.NOW, 2).lines()]
    assert lines[0] == "vu-mi  12:00:00 UTC  3 badges, by now"
    assert lines[1] == "views: 2 now  52 today  52 this month  9,052 in total"
    assert lines[3].split() == ["NOW", "TODAY", "MONTH", "TOTAL", "CREATED", "BADGE"]
    assert [line.split()[-1] for line in lines[4:]] == ["now", "old"]


class Keyboard(Terminal):
    """A terminal on which an operator presses these keys, and which keeps what it shows."""

    def __init__(self, keys: str) -> None:
        self.keys, self.frames = iter(keys), [""]

    def draw(self, lines: object) -> None:
        self.frames.append(str(lines))

    def key(self, seconds: float) -> str:
        if not seconds:
            return ""
        key = next(self.keys)
        if key == "q":
            raise listing.QuitError
        return key


def test_keys_change_the_order_and_q_quits(vumi: Vumi) -> None:
    keyboard = Keyboard("tTdq")
    with pytest.raises(listing.QuitError):
        follow(vumi.installation, By.NOW, 10, keyboard)
    sorts = [frame.partition("badges, by ")[2].split("'")[0] for frame in keyboard.frames[2:]]
    assert sorts == ["now", "total", "total", "today"]


# ---- a real terminal


@pytest.fixture
def folder(path: Path, table: SqliteTable, database: Database) -> Path:
    put_summary(table, "octocat", count=7)
    database.close()
    return path.parent


PATIENCE_SECONDS = 60.0
"""The limit for steps that take a second on an idle machine."""


@contextmanager
def in_terminal(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], int, int]]:
    """Run `vumi top` in a terminal; yield its process and both ends of the terminal."""
    ours, its = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "vumi", "top"],
        cwd=ROOT,
        env={**os.environ, "DATA": str(folder)},
        stdin=its,
        stdout=its,
        stderr=its,
    )
    try:
        yield process, ours, its
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(its)


def read_until(terminal: int, text: str) -> str:
    shown = ""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while text not in shown:
        ready, _, _ = select.select([terminal], [], [], PATIENCE_SECONDS)
        assert ready, f"the terminal shows {shown!r}"
        assert time.monotonic() < deadline, f"the terminal shows {shown!r}"
        shown += os.read(terminal, 4_096).decode()
    return shown


@pytest.mark.parametrize("how", ["q", "SIGINT"])
def test_top_leaves_the_terminal_as_it_was(folder: Path, how: str) -> None:
    with in_terminal(folder) as (process, ours, its):
        before = termios.tcgetattr(its)
        shown = read_until(ours, "octocat")
        assert shown.startswith(ENTER)
        read_until(ours, "q quit")
        if how == "q":
            os.write(ours, b"q")
        else:
            process.send_signal(signal.SIGINT)
        assert read_until(ours, LEAVE).endswith(LEAVE)
        assert process.wait(PATIENCE_SECONDS) == 0
        assert termios.tcgetattr(its) == before


@pytest.mark.parametrize(("options", "says"), [([], "1 badge, by now"), (["--json"], '"total":7')])
def test_without_a_terminal_it_prints_once(folder: Path, options: list[str], says: str) -> None:
    out = subprocess.check_output(  # noqa: S603  our own program
        [sys.executable, "-m", "vumi", "top", *options],
        cwd=ROOT,
        env={**os.environ, "DATA": str(folder)},
        text=True,
    )
    assert says in out
    assert "\x1b" not in out
