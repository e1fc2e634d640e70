"""Conditions on SQLite where engines differ; `tests/conformance` has what all of them share."""

from __future__ import annotations

import pytest

from chalicelib.storage.conditions import Condition, attr
from chalicelib.storage.items import Item
from vumi.storage.conditions import holds

ITEM: Item = {"PK": "p", "SK": "s", "five": 5, "digits": "5", "list": [1], "map": {"a": 1}}


@pytest.mark.parametrize(
    "condition",
    [
        attr("five") < "6",
        attr("digits") <= 5,
        attr("five") >= "5",
        attr("list") < [9],
        attr("map") >= {},
    ],
)
def test_values_of_two_types_lists_and_maps_are_in_no_order(condition: Condition) -> None:
    assert not holds(condition, ITEM)


def test_no_condition_always_holds() -> None:
    assert holds(None, ITEM)
    assert holds(None, None)


def test_an_item_that_does_not_exist_has_no_attributes() -> None:
    assert holds(attr("PK").missing(), None)
    assert holds(attr("five") != 5, None)
    assert not holds(attr("PK").exists(), None)
    assert not holds((attr("five") < 5) | (attr("five") >= 5), None)


def test_texts_are_in_the_order_of_their_code_points() -> None:
    """U+FFFF is ef bf bf in UTF-8, U+1F600 is f0 9f 98 80; UTF-16 has them the other way round."""
    item: Item = {"PK": "p", "SK": "s", "text": "\uffff"}
    assert holds(attr("text") < "\U0001f600", item)
    assert not holds(attr("text") > "\U0001f600", item)
