"""The commands `list` and `top`: badges as a table, as JSON, and live in a terminal."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from simulation.views import AT_NOON, put_summary, put_views
from tests.unit.vumi.commands import Vumi
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


def test_without_a_terminal_top_prints_the_busiest_badges_once(vumi: Vumi) -> None:
    assert vumi("top", "--limit", "2") == 0
    assert [line.split()[-1] for line in vumi.out.splitlines()] == ["BADGE", "now", "old"]
    assert [badge["id"] for badge in vumi.json("top", "--by", "today", "--limit", "1")] == ["today"]


def test_on_a_terminal_top_draws_again_until_it_is_interrupted(
    path: Path, table: SqliteTable, database: Database
) -> None:
    put_summary(table, "octocat", count=7)
    database.close()
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "vumi", "top"],
        env={**os.environ, "DATA": str(path.parent), "TERM": "xterm"},
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        seen = ""
        while seen.count("octocat") < 2:
            seen += os.read(ours, 1_000).decode()
        process.send_signal(signal.SIGINT)
        assert process.wait(60.0) == 0
    os.close(ours)
