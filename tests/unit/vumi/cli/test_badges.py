"""The commands for one badge, over a table with views, and those for bans."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from chalicelib.counting import badge_count, bans
from chalicelib.counting.summary import read
from chalicelib.counting.view import View
from chalicelib.http.tokens import digest
from chalicelib.owners import finding
from chalicelib.ulids import new_ulid
from chalicelib.units import to_milliseconds
from simulation.clocks import NOON
from simulation.storage import FaultyTable, once
from simulation.views import fold, put_summary, shown, store
from tests.unit.vumi.commands import Vumi
from vumi.cli import badges

DAY = 86_400
HOURS = "--from 2026-11-20T00 --to 2026-11-20T23"


@pytest.fixture(autouse=True)
def _views(vumi: Vumi) -> None:
    """Give `a/b` three views of today, two of yesterday and four of a month before that."""
    take(vumi, NOON - 30 * DAY, 4)
    take(vumi, NOON - DAY, 2)
    fold(vumi.table, NOON, "a/b")
    take(vumi, NOON - 10, 3)


def take(vumi: Vumi, at: float, views: int) -> None:
    taken = [View("a/b", new_ulid(to_milliseconds(at))) for _ in range(views)]
    assert store(vumi.table, *taken, now=at) == {}


def test_show_has_the_count_the_periods_and_all_that_is_set(vumi: Vumi) -> None:
    vumi("set", "a/b", "--base", "1000")
    vumi("rename", "a/b", "a/c")
    [badge] = vumi.json("show", "a/b")
    assert badge == {
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
    assert vumi("show", "a/c") == 0
    lines = dict(line.split(maxsplit=1) for line in vumi.out.splitlines())
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
def test_an_id_without_a_badge_is_refused(vumi: Vumi, command: str) -> None:
    before = dict(vumi.memory.items)
    filled = command.format("typo") if "{}" in command else f"{command} typo"
    assert vumi(*filled.split()) == 1
    told = "Error: there is no badge typo: nobody has visited, imported or claimed it\n"
    assert vumi.err == told
    assert vumi.memory.items == before


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
    vumi: Vumi, command: str, left: int
) -> None:
    assert vumi("claim", "a/b") == 0
    assert vumi("delete", "a/b", "--yes") == 0
    for gone in ("show a/b", "freeze a/b", "delete a/b --yes"):
        assert vumi(*gone.split()) == 1
    take(vumi, NOON + 20, 2)
    vumi.clock.now += 30
    assert vumi(*command.split()) == 0
    assert shown(vumi.table, "a/b") == left


def test_the_base_of_a_deleted_badge_may_be_set_beside_a_visit(vumi: Vumi) -> None:
    assert vumi("delete", "a/b", "--yes") == 0
    visit = once(lambda: put_summary(vumi.table, "a/b", version=99, deleted="operator"))
    owned = finding.look_up(vumi.table, "a/b")
    table = FaultyTable(vumi.table, before_write=visit)
    assert not badges.reopen(table, owned, NOON).deleted
    assert not read(vumi.table, "a/b").deleted


def test_set_adds_a_base_also_to_a_new_badge(vumi: Vumi) -> None:
    assert vumi("set", "a/b", "--base", "100") == 0
    assert vumi("set", "new", "--base", "7") == 0
    assert (shown(vumi.table, "a/b"), shown(vumi.table, "new")) == (109, 7)


def test_freeze_stops_views_and_off_takes_them_again(vumi: Vumi) -> None:
    for options, is_frozen in (([], True), (["--off"], False)):
        assert vumi("freeze", "a/b", *options) == 0
        assert badge_count.read(vumi.table, "a/b").summary.frozen is is_frozen


@pytest.mark.parametrize("command", ["reset", "delete"])
def test_a_loss_is_announced_and_needs_agreement(vumi: Vumi, command: str) -> None:
    assert vumi(command, "a/b", "--dry-run") == 0
    assert vumi.out.startswith("a/b shows 9\nThese badges ")
    assert vumi(command, "a/b") == 2
    assert "give --yes, because there is no terminal to ask on" in vumi.err
    assert shown(vumi.table, "a/b") == 9
    assert vumi(command, "a/b", "--yes") == 0
    assert shown(vumi.table, "a/b") == 0


def test_claim_hands_out_a_secret_for_any_badge_and_release_takes_it_back(vumi: Vumi) -> None:
    secrets = []
    for _ in range(2):
        assert vumi("claim", "a/b") == 0
        [secret] = re.findall(r"shown only once: (\S+)$", vumi.out)
        secrets.append(secret)
    assert finding.look_up(vumi.table, "a/b").digest == digest(secrets[1]) != digest(secrets[0])
    assert vumi("claim", "a/b", "--digest", digest("of my own")) == 0
    assert vumi.out == "a/b has a new owner\n"
    assert finding.look_up(vumi.table, "a/b").digest == digest("of my own")
    assert vumi("release", "a/b", "a/b") == 0
    assert vumi.out == "a/b has no owner now.\na/b had no owner.\n"
    assert not finding.look_up(vumi.table, "a/b").is_claimed
    assert shown(vumi.table, "a/b") == 9


def test_views_of_hours_are_removed_from_a_badge_that_nobody_owns(vumi: Vumi) -> None:
    day = datetime.fromtimestamp(NOON - DAY, UTC)
    hours = ("--from", f"{day:%Y-%m-%dT00}", "--to", f"{day:%Y-%m-%dT23}")
    for removed in ("2 views", "0 views"):
        assert vumi("remove-views", "a/b", *hours, "--yes") == 0
        assert vumi.out.endswith(f"Removed {removed}; a/b shows 7 now.\n")
    assert vumi("remove-views", "a/b", *hours) == 2


AT = "2026-03-14T12:00:00.000Z"


def test_bans_are_set_listed_and_lifted(vumi: Vumi) -> None:
    def run(*arguments: str) -> tuple[int, str]:
        return vumi(*arguments), vumi.out

    assert run("ban", "spammer/*", "--reason", "spam") == (0, "spammer/* is banned.\n")
    assert run("ban", "e\u0301") == (0, "\u00e9 is banned.\n")
    assert vumi.json("bans") == [
        {"pattern": "spammer/*", "reason": "spam", "by": "vumi ban", "at": AT},
        {"pattern": "\u00e9", "reason": "", "by": "vumi ban", "at": AT},
    ]
    assert run("bans")[1].splitlines()[1].split() == ["spammer/*", "spam", "vumi", "ban", AT]
    assert run("unban", "spammer/*") == (0, "spammer/* is not banned any more.\n")
    assert run("unban", "spammer/*")[0] == 1
    assert [one.pattern for one in bans.read_all(vumi.table)] == ["\u00e9"]
