"""A year of GitHub's numbers, on both engines: every number is as GitHub has told it."""

from __future__ import annotations

import json
from contextlib import ExitStack
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from chalicelib.history import github
from simulation.clocks import Clock
from simulation.exchange_world import ENGINES, ExchangeWorld, export, outcomes, restore
from vumi.operate.exchange.restoring import RestoreOutcome
from vumi.operate.kinds import check

OLD, NEW = "octocat/hello", "octocat/renamed"
BEGIN = datetime(2026, 1, 1, 5, tzinfo=UTC)
DAYS = 365
WINDOW = 15
RENAMED, MOVED, RESET = 100, 200, 250
EXPECTED_UNKNOWN = 5


class GitHub:
    """The traffic of a repository; some days have none. `told` has what the owner has told."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.days = [
            {kind: [random.choice([0, 3, 40]), 0] for kind in github.NAMES} for _ in range(DAYS)
        ]
        self.told: dict[str, dict[str, int]] = {}
        self.uniques = 0

    def respond(self, today: int, kind: str) -> dict[str, Any]:
        """Return a response; the present day is not over, and its numbers grow until it is."""
        listed = []
        for day in range(max(0, today + 1 - WINDOW), today + 1):
            count = self.days[day][kind][0] // (2 if day == today else 1)
            if count:
                listed.append(self._day(day, kind, count))
        return {"count": 1, "uniques": self.random.randint(1, 99), kind: listed}

    def _day(self, day: int, kind: str, count: int) -> dict[str, Any]:
        name = f"{(BEGIN + timedelta(days=day)).date()}"
        for known, value in zip(github.NAMES[kind], (count, count // 3), strict=True):
            told = self.told.setdefault(name, {})
            told[known] = max(value, told.get(known, 0))
        return {"timestamp": f"{name}T00:00:00Z", "count": count, "uniques": count // 3}


def days_told(random: Random) -> list[int]:
    """Return the days on which the workflow runs: most of them, with gaps of up to 20 days."""
    days, day = [], 0
    while day < DAYS:
        days.append(day)
        day += random.choice([1] * 20 + [2, 9, 20])
    return [*days, DAYS - 1]


def ask(world: ExchangeWorld, target: str) -> Any:
    return json.loads(world.ask("GET", target).body)


def check_numbers(world: ExchangeWorld, name: str, truth: GitHub) -> None:
    """Check every day, both badges, and the form of all items."""
    first, last = f"{BEGIN.date()}", f"{(BEGIN + timedelta(days=DAYS)).date()}"
    found = ask(world, f"/api/v1/views/history?id={name}&from={first}&to={last}")["github"]
    known = {
        day["day"]: {name: day[name] for name in github.NUMBERS if day[name] is not None}
        for day in found
    }
    assert known == truth.told
    [visitors] = ask(world, f"/api/v1/views/counts?id={name}&show=visitors")["counts"]
    assert visitors["count"] == truth.uniques
    [clones] = ask(world, f"/api/v1/views/counts?id={name}&show=clones")["counts"]
    assert clones["count"] == sum(day.get("clones", 0) for day in truth.told.values())
    for item in world.items():
        check(item)


@pytest.mark.parametrize(("source", "target"), [("file", "memory"), ("memory", "file")])
def test_a_year_of_a_repository(tmp_path: Path, source: str, target: str) -> None:
    """It has gaps, a rename, a move to the other engine and a reset; some runs tell twice."""
    random, clock = Random(39), Clock(BEGIN.timestamp())  # noqa: S311  a history that repeats
    truth, name = GitHub(random), OLD
    with ExitStack() as stack:
        world = ExchangeWorld(stack.enter_context(ENGINES[source](clock, tmp_path)), clock)
        world.claim(OLD)
        moved = False
        for today in days_told(random):
            clock.now = (BEGIN + timedelta(days=today)).timestamp()
            if name == OLD and today >= RENAMED:
                world.change(OLD, rename=NEW)
                name = NEW
            if not moved and today >= MOVED:
                exported, before = export(world.installation), world.known
                other = stack.enter_context(ENGINES[target](clock, tmp_path))
                world = ExchangeWorld(other, clock, before)
                assert outcomes(restore(other, exported)) == {RestoreOutcome.IMPORTED}
                check_numbers(world, name, truth)
                moved = True
            if today in range(RESET, RESET + 30):
                world.change(name, reset=True)
            told = {kind: truth.respond(today, kind) for kind in github.NAMES}
            views = told["views"]
            truth.uniques = views["uniques"]
            for _ in range(random.choice([1, 2])):
                assert world.tell(name, **told).status == 200
        check_numbers(world, name, truth)
        check_numbers(world, OLD, truth)
        unknown = {BEGIN.date() + timedelta(days=day) for day in range(DAYS)} - {
            date.fromisoformat(day) for day in truth.told
        }
        assert len(unknown) >= EXPECTED_UNKNOWN
        world.delete(name)
        assert ask(world, f"/api/v1/views/history?id={name}&days=300")["github"] == []
