"""The overview's file finds, sorts and pages badges; a process makes it, and not too often."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from simulation.clocks import Clock
from simulation.logs import logged_events
from vumi.operate.admin import overview_file
from vumi.operate.admin.overview import BadgeOverview, By, Totals
from vumi.operate.admin.overview_file import (
    AGAIN_SECONDS,
    FRESH_FACTOR,
    FRESH_SECONDS,
    OLD_SECONDS,
    WATCH_SECONDS,
    BadgePage,
    Overview,
    OverviewStamp,
    read_page,
)

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


def ids(page: BadgePage) -> list[str]:
    return [badge.badge_id for badge in page.badges]


def test_the_file_has_its_time_its_sums_and_the_badges(file: Path) -> None:
    assert overview_file.read_stamp(file) == OverviewStamp(
        1_000.0, 2.5, Totals(3, 19, 9, 7, 5, (7, *[0] * 26, 10, 0, 4))
    )
    page = read_page(file)
    assert sorted(page.badges, key=lambda badge: badge.badge_id) == list(BADGES)
    assert page.found == 3
    assert [badge.badge_id for badge in page.bursts] == ["c%_'", "b"]
    assert overview_file.read_stamp(file.with_name("none")) is None


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
    assert ids(read_page(file, "", by)) == order
    assert ids(read_page(file, "", by, offset=1, limit=1)) == order[1:2]
    with closing(sqlite3.connect(file)) as connection:
        sql = f"EXPLAIN QUERY PLAN SELECT * FROM badges ORDER BY {by} DESC, rowid LIMIT 1 OFFSET 9"  # noqa: S608  a fixed name
        [(*_, plan)] = connection.execute(sql)
    assert plan == f"SCAN badges USING INDEX by_{by}"


@pytest.mark.parametrize(
    ("searched", "found"),
    [("older/", ["a"]), ("NAME", ["a"]), ("%", ["c%_'"]), ("_'", ["c%_'"]), ("x", [])],
)
def test_a_search_finds_a_text_in_any_name(file: Path, searched: str, found: list[str]) -> None:
    assert ids(read_page(file, searched)) == found
    assert read_page(file, searched, limit=1).found == len(found)


def test_a_new_file_replaces_the_one_before_and_what_a_killed_process_left(file: Path) -> None:
    file.with_name(f"{overview_file.FILE}.1{overview_file.NEW}").write_text("half a file")
    overview_file.write(file, BADGES[:1], 2_000.0, lambda: 0.0)
    assert ids(read_page(file)) == ["a"]
    assert [path.name for path in file.parent.iterdir()] == [overview_file.FILE]


# ---- the process, when somebody asks

NOW = 1_000_000.0
BADGE = BadgeOverview("octocat", ("octocat",), 3, 2, 1, 0)
MAKE = (
    "import sys; from pathlib import Path; from vumi.operate.admin import overview_file;"
    "path = Path(sys.argv[1]); (path / 'runs').open('a').write('.');"
    "overview_file.write(path / overview_file.FILE, [], float(sys.argv[2]), lambda: 0)"
)
BURST = MAKE.replace("[]", "[BadgeOverview('octocat', ('octocat',), 5000, 1, 1, 1, hour=5000)]")
BURST = f"from vumi.operate.admin.overview import BadgeOverview; {BURST}"
FAIL = "raise OSError('the disk is full')"
HANG = "import time; time.sleep(600)"


def make(folder: Path, at: float = NOW, took: float = 0.0) -> None:
    overview_file.write(folder / overview_file.FILE, [BADGE], at, iter([0.0, took]).__next__)


def overview_by(program: str, folder: Path, clock: Clock) -> Overview:
    return Overview(folder, clock, (sys.executable, "-c", program))


def refresh_until_made(overview: Overview, now: float) -> float:
    """Ask until the overview of a time is there."""
    while (made := overview.refresh(now)) is None or made.at != now:
        assert not overview.failure
    return made.at


def test_the_first_who_asks_begins_it_and_others_get_it(tmp_path: Path) -> None:
    overview = overview_by(MAKE, tmp_path, Clock(NOW))
    assert refresh_until_made(overview, NOW) == NOW
    assert overview.refresh(NOW + 1) is not None
    assert (tmp_path / "runs").read_text() == "."
    assert read_page(overview.path).found == 0


@pytest.mark.parametrize(
    ("took", "age", "is_made_again"),
    [
        (0.0, FRESH_SECONDS - 1, False),
        (0.0, FRESH_SECONDS, True),
        (1.0, FRESH_FACTOR - 1, False),
        (1.0, FRESH_FACTOR, True),
        (1.0, -1, True),
    ],
)
def test_it_is_made_again_when_it_is_not_fresh(
    tmp_path: Path, took: float, age: float, *, is_made_again: bool
) -> None:
    make(tmp_path, took=took)
    overview = overview_by(HANG, tmp_path, Clock(NOW + age))
    made = overview.refresh(NOW + age)
    assert made is not None
    assert (made.at, overview.is_making) == (NOW, is_made_again)
    overview.stop()
    assert not overview.is_making


def test_whoever_asks_waits_for_a_new_overview_instead_of_an_old_one(tmp_path: Path) -> None:
    make(tmp_path)
    clock = Clock(NOW + OLD_SECONDS + 1)
    assert refresh_until_made(overview_by(MAKE, tmp_path, clock), clock.now) == clock.now


def test_a_failure_is_said_logged_and_not_repeated_for_a_minute(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock(NOW)
    overview = overview_by(FAIL, tmp_path, clock)
    while not overview.failure:
        assert overview.refresh(NOW) is None
    assert overview.failure == "OSError: the disk is full"
    clock.now += AGAIN_SECONDS - 1
    overview.refresh(NOW)
    assert caplog.messages.count("overview_failed") == 1
    make(tmp_path, clock.now - FRESH_SECONDS)
    clock.now += 1
    overview.refresh(NOW)
    assert overview.is_making
    overview.stop()


def test_the_hourly_watch_logs_each_burst_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock(NOW)
    overview = overview_by(BURST, tmp_path, clock)

    def watch() -> float:
        while (rest := overview.watch(clock.now)) == WATCH_SECONDS:
            pass
        return rest

    assert watch() == 3_600 - NOW % 3_600 + 60
    clock.now += 600
    watch()
    assert [fields for _, _, fields in logged_events(caplog)] == [
        {"badge": "octocat", "hour": "1970-01-12T12:00:00.000Z", "views": 5000, "mean_hour": 0.0}
    ]
    clock.now += 3_000
    watch()
    assert [event for _, event, _ in logged_events(caplog)] == ["badge_burst"] * 2
    assert (tmp_path / "runs").read_text() == "..."
