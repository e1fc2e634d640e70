"""The commands for one badge, over a table with views."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from chalicelib.counting import badge_count
from chalicelib.counting.folding import BadgeFold
from chalicelib.counting.resources import Counting
from chalicelib.counting.storing import store
from chalicelib.counting.summary import read
from chalicelib.counting.view import View
from chalicelib.counting.windows import Windows
from chalicelib.http.tokens import digest
from chalicelib.owners import finding
from chalicelib.ulids import new_ulid
from chalicelib.units import to_milliseconds
from simulation.clocks import NOON
from simulation.installation import MemoryInstallation, invoke_on
from simulation.tables import FaultyTable, once
from simulation.views import put_summary
from vumi.cli.program import execute
from vumi.operate.admin import badge

DAY = 86_400
HOURS = "--from 2026-11-20T00 --to 2026-11-20T23"


@pytest.fixture
def installation() -> MemoryInstallation:
    """Give `a/b` three views of today, two of yesterday and four of a month before that."""
    installation = MemoryInstallation(clock=lambda: NOON)
    take(installation, NOON - 30 * DAY, 4)
    take(installation, NOON - DAY, 2)
    BadgeFold(installation.counting, "a/b").fold_all()
    take(installation, NOON - 10, 3)
    return installation


def take(installation: MemoryInstallation, at: float, views: int) -> None:
    taken = [View("a/b", new_ulid(to_milliseconds(at))) for _ in range(views)]
    assert store(Counting(installation.table, Windows(), lambda: at), taken) == {}


def run(installation: MemoryInstallation, *arguments: str) -> int:
    return execute(arguments, invoke_on(installation))


def shown(installation: MemoryInstallation, badge_id: str = "a/b") -> int:
    return badge_count.read(installation.table, badge_id).shown


def test_show_has_the_count_the_periods_and_all_that_is_set(
    installation: MemoryInstallation, capsys: pytest.CaptureFixture[str]
) -> None:
    run(installation, "set", "a/b", "--base", "1000")
    run(installation, "rename", "a/b", "a/c")
    capsys.readouterr()
    assert run(installation, "show", "a/b", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "id": "a/c",
        "names": ["a/b", "a/c"],
        "count": 1009,
        "base": 1000,
        "today": 3,
        "month": 5,
        "frozen": False,
        "claimed": None,
        "reset": None,
    }
    assert run(installation, "show", "a/c") == 0
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert (lines["count"], lines["names"], lines["frozen"], lines["reset"]) == (
        "1,009",
        "a/b, a/c",
        "no",
        "-",
    )


@pytest.mark.parametrize(
    "command",
    [
        "show",
        "freeze",
        "reset --yes",
        "rename {} new",
        "delete --yes",
        f"remove-views {HOURS} --yes",
    ],
)
def test_an_id_without_a_badge_is_refused(
    installation: MemoryInstallation, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    before = dict(installation.memory.items)
    filled = command.format("typo") if "{}" in command else f"{command} typo"
    assert run(installation, *filled.split()) == 1
    told = "Error: there is no badge typo: nobody has visited, imported or claimed it\n"
    assert capsys.readouterr().err == told
    assert installation.memory.items == before


@pytest.mark.parametrize(
    ("command", "left"),
    [
        ("show a/b", 2),
        ("set a/b --base 40", 42),
        ("freeze a/b", 2),
        ("reset a/b --yes", 0),
        ("rename a/b a/c", 2),
        ("delete a/b --yes", 0),
    ],
)
def test_a_deleted_badge_that_visitors_made_again_can_be_changed(
    installation: MemoryInstallation, command: str, left: int
) -> None:
    assert run(installation, "claim", "a/b") == 0
    assert run(installation, "delete", "a/b", "--yes") == 0
    for gone in ("show a/b", "freeze a/b", "delete a/b --yes"):
        assert run(installation, *gone.split()) == 1
    take(installation, NOON + 20, 2)
    assert run(replace(installation, clock=lambda: NOON + 30), *command.split()) == 0
    assert shown(installation) == left


def test_the_base_of_a_deleted_badge_may_be_set_beside_a_visit(
    installation: MemoryInstallation,
) -> None:
    assert run(installation, "delete", "a/b", "--yes") == 0
    visit = once(lambda: put_summary(installation.table, "a/b", version=99, deleted="operator"))
    owned = finding.look_up(installation.table, "a/b")
    table = FaultyTable(installation.table, before_write=visit)
    assert not badge.reopen(table, owned, NOON).deleted
    assert not read(installation.table, "a/b").deleted


@pytest.mark.parametrize("badge_id", ["", "x" * 201, "a\nb"])
def test_a_wrong_id_is_wrong_usage(
    installation: MemoryInstallation, capsys: pytest.CaptureFixture[str], badge_id: str
) -> None:
    assert run(installation, "show", badge_id) == 2
    assert "Invalid value for 'ID'" in capsys.readouterr().err


def test_set_adds_a_base_also_to_a_new_badge(installation: MemoryInstallation) -> None:
    assert run(installation, "set", "a/b", "--base", "100") == 0
    assert run(installation, "set", "new", "--base", "7") == 0
    assert run(installation, "set", "new", "--base", "-1") == 2
    assert (shown(installation), shown(installation, "new")) == (109, 7)


def test_freeze_stops_views_and_off_takes_them_again(installation: MemoryInstallation) -> None:
    for options, is_frozen in (([], True), (["--off"], False)):
        assert run(installation, "freeze", "a/b", *options) == 0
        assert badge_count.read(installation.table, "a/b").summary.frozen is is_frozen


@pytest.mark.parametrize("command", ["reset", "delete"])
def test_a_loss_is_announced_and_needs_agreement(
    installation: MemoryInstallation, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert run(installation, command, "a/b", "--dry-run") == 0
    assert capsys.readouterr().out.startswith("a/b shows 9\nThese badges ")
    assert run(installation, command, "a/b") == 2
    assert "give --yes, because there is no terminal to ask on" in capsys.readouterr().err
    assert shown(installation) == 9
    assert run(installation, command, "a/b", "--yes") == 0
    assert shown(installation) == 0


def test_claim_hands_out_a_secret_for_any_badge_and_release_takes_it_back(
    installation: MemoryInstallation, capsys: pytest.CaptureFixture[str]
) -> None:
    table = installation.table
    secrets = []
    for _ in range(2):
        assert run(installation, "claim", "a/b") == 0
        [secret] = re.findall(r"shown only once: (\S+)$", capsys.readouterr().out)
        secrets.append(secret)
    assert finding.look_up(table, "a/b").digest == digest(secrets[1]) != digest(secrets[0])
    assert run(installation, "claim", "a/b", "--digest", digest("of my own")) == 0
    assert capsys.readouterr().out == "a/b has a new owner\n"
    assert finding.look_up(table, "a/b").digest == digest("of my own")
    assert run(installation, "claim", "a/b", "--digest", "mine") == 2
    assert run(installation, "release", "a/b", "a/b") == 0
    assert capsys.readouterr().out == "a/b has no owner now.\na/b had no owner.\n"
    assert not finding.look_up(table, "a/b").is_claimed
    assert shown(installation) == 9


def test_views_of_hours_are_removed_from_a_badge_that_nobody_owns(
    installation: MemoryInstallation, capsys: pytest.CaptureFixture[str]
) -> None:
    day = datetime.fromtimestamp(NOON - DAY, UTC)
    hours = ("--from", f"{day:%Y-%m-%dT00}", "--to", f"{day:%Y-%m-%dT23}")
    for removed in ("2 views", "0 views"):
        assert run(installation, "remove-views", "a/b", *hours, "--yes") == 0
        assert capsys.readouterr().out.endswith(f"Removed {removed}; a/b shows 7 now.\n")
    assert run(installation, "remove-views", "a/b", *hours) == 2
    assert run(installation, "remove-views", "a/b", *hours[:3], "tomorrow", "--yes") == 2
    assert "give a whole hour in UTC like 2026-11-21T08:00Z" in capsys.readouterr().err
