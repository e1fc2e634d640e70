"""The kinds of items, and the lines of an export that items become."""

from __future__ import annotations

import pytest

from chalicelib.storage.items import Item
from vumi.operate.exchange import files
from vumi.operate.kinds import MOVING, WrongLineError, item_of, kind_of

ITEMS: list[tuple[str, Item]] = [
    ("badge", {"PK": "USER#a#b", "SK": "VIEWS", "count": 1, "today": {"day": "2026-03-14"}}),
    ("owner", {"PK": "USER#a", "SK": "OWNER", "digest": "0", "names": ["b", "c"]}),
    ("milestones", {"PK": "USER#a", "SK": "MILESTONES", "owner": "0", "milestones": []}),
    ("day", {"PK": "USER#a", "SK": "DAY#2026-03-14", "views": 1}),
    ("traffic", {"PK": "USER#a", "SK": "TRAFFIC#2026-03", "days": {"2026-03-14": {"views": 1}}}),
    ("view", {"PK": "USER#a", "SK": "VIEW#01KKP3FDG0PF3VEV91PWBK9YQ0"}),
    ("ban", {"PK": "BANS", "SK": "BAN#a#b*", "reason": "", "by": "x", "at": 1}),
    ("event", {"PK": "TIMER#e", "SK": "TIMER", "kind": "log", "attempts": [{"code": 500}]}),
    ("token", {"PK": "TOKEN#0", "SK": "TOKEN", "name": "\ud800 ü"}),
    ("wallet", {"PK": "WALLET#w", "SK": "WALLET", "balance": 2**63 - 1}),
    ("nonce", {"PK": "WALLET#w", "SK": "NONCE#n", "entry": "1"}),
    ("entry", {"PK": "WALLET#w", "SK": "TX#1", "kind": "deposit", "nonce": "n"}),
]


@pytest.mark.parametrize(("kind", "item"), ITEMS)
def test_an_item_survives_its_line(kind: str, item: Item) -> None:
    found = kind_of(item)
    line = files.decode(files.encode(found.to_line(item)))
    assert line["type"] == found.name == kind
    assert not {"PK", "SK"} & line.keys()
    assert item_of(line) == (found, item)


def test_all_kinds_are_shown_here() -> None:
    assert {kind for kind, _ in ITEMS} == set(MOVING)


def test_an_item_with_an_unknown_attribute_is_not_exported() -> None:
    with pytest.raises(WrongLineError, match="the badge a has 'id'; known: alias base count"):
        MOVING["badge"].to_line({"PK": "USER#a", "SK": "VIEWS", "id": "b"})
