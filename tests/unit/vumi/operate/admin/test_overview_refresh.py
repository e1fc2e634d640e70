"""The overview of a server is made by a process when somebody asks, and not too often."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from simulation.clocks import Clock
from simulation.logs import logged_events
from vumi.operate.admin import overview_file
from vumi.operate.admin.overview import BadgeOverview
from vumi.operate.admin.overview_file import (
    AGAIN_SECONDS,
    FRESH_FACTOR,
    FRESH_SECONDS,
    OLD_SECONDS,
    WATCH_SECONDS,
    BadgeQuery,
    Overview,
)

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
    assert overview.read(BadgeQuery()).found == 0


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


def test_stopping_ends_the_process(tmp_path: Path) -> None:
    make(tmp_path, NOW - FRESH_SECONDS)
    overview = overview_by(HANG, tmp_path, Clock(NOW))
    overview.refresh(NOW)
    assert overview.is_making
    overview.stop()
    assert not overview.is_making


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
