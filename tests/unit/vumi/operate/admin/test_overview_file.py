"""The overview's file: it finds, sorts and pages badges, and the process that makes it."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from simulation.views import put_summary
from vumi.operate.admin import overview_file
from vumi.operate.admin.overview import BadgeOverview, By, Totals
from vumi.operate.admin.overview_file import BadgeQuery, Made
from vumi.storage.database import Database
from vumi.storage.table import SqliteTable

BADGES = (
    BadgeOverview("a", ("a", "Older/Name"), 5, 4, 3, 2, frozen=True, owned=True, created=7),
    BadgeOverview("b", ("b",), 9, 1, 1, 0, days=(*[0] * 27, 10, 0, 1), hour=1_001),
    BadgeOverview("c%_'", ("c%_'",), 5, 4, 3, 3, days=(7, *[0] * 28, 3), hour=1_002),
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / overview_file.FILE
    overview_file.write(path, BADGES, 1_000.0, iter([10.0, 12.5]).__next__)
    return path


def ids(file: Path, query: BadgeQuery) -> list[str]:
    return [badge.badge_id for badge in overview_file.read_page(file, query).badges]


def test_the_file_has_its_time_its_sums_and_the_badges(file: Path) -> None:
    assert overview_file.read_made(file) == Made(
        1_000.0, 2.5, Totals(3, 19, 9, 7, 5, (7, *[0] * 26, 10, 0, 4))
    )
    page = overview_file.read_page(file, BadgeQuery())
    assert sorted(page.badges, key=lambda badge: badge.badge_id) == list(BADGES)
    assert page.found == 3
    assert [badge.badge_id for badge in page.bursts] == ["c%_'", "b"]
    assert overview_file.read_made(file.with_name("none")) is None


@pytest.mark.parametrize(
    ("by", "order"),
    [
        (By.TOTAL, ["b", "a", "c%_'"]),
        (By.MONTH, ["a", "c%_'", "b"]),
        (By.TODAY, ["a", "c%_'", "b"]),
        (By.NOW, ["c%_'", "a", "b"]),
    ],
)
def test_badges_are_sorted_by_a_number_and_then_by_id(file: Path, by: By, order: list[str]) -> None:
    """No page sorts all badges."""
    assert ids(file, BadgeQuery(by=by)) == order
    assert ids(file, BadgeQuery(by=by, offset=1, limit=1)) == order[1:2]
    with closing(sqlite3.connect(file)) as connection:
        sql = f"EXPLAIN QUERY PLAN SELECT * FROM badges ORDER BY {by} DESC, rowid LIMIT 1 OFFSET 9"  # noqa: S608  a fixed name
        [(*_, plan)] = connection.execute(sql)
    assert plan == f"SCAN badges USING INDEX by_{by}"


@pytest.mark.parametrize(
    ("searched", "found"),
    [("older/", ["a"]), ("NAME", ["a"]), ("%", ["c%_'"]), ("_'", ["c%_'"]), ("x", [])],
)
def test_a_search_finds_a_text_in_any_name(file: Path, searched: str, found: list[str]) -> None:
    assert ids(file, BadgeQuery(searched)) == found
    assert overview_file.read_page(file, BadgeQuery(searched, limit=1)).found == len(found)


def test_a_new_file_replaces_the_one_before_and_what_a_killed_process_left(file: Path) -> None:
    file.with_name(f"{overview_file.FILE}.1{overview_file.NEW}").write_text("half a file")
    overview_file.write(file, BADGES[:1], 2_000.0, lambda: 0.0)
    assert ids(file, BadgeQuery()) == ["a"]
    assert [path.name for path in file.parent.iterdir()] == [overview_file.FILE]


def test_a_process_makes_the_file_while_the_server_has_its_own_open(
    path: Path, database: Database, table: SqliteTable
) -> None:
    put_summary(table, "octocat", count=3)
    command = [
        sys.executable,
        "-m",
        "vumi.operate.admin.overview_file",
        str(path.parent),
        "1000000.5",
    ]
    subprocess.run(command, check=True)  # noqa: S603  a module of this project
    made = overview_file.read_made(path.parent / overview_file.FILE)
    assert made is not None
    assert (made.at, made.totals.badges, made.totals.total) == (1_000_000.5, 1, 3)
    assert database.read("SELECT count(*) FROM items") == [(1,)]
