"""The commands that set, list and lift bans."""

from __future__ import annotations

import pytest

from chalicelib.counting import bans
from chalicelib.counting.bans import Ban
from tests.unit.vumi.commands import Vumi

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


@pytest.mark.parametrize("wrong", [["", "--reason", "x"], ["a", "--reason", "x" * 201]])
def test_a_wrong_ban_is_refused(vumi: Vumi, wrong: list[str]) -> None:
    assert vumi("ban", *wrong) == 2
    assert bans.read_all(vumi.table) == []


def test_a_ban_knows_its_item() -> None:
    ban = Ban("a#b", "spam", "admin", 7)
    assert Ban.of(ban.item) == ban
