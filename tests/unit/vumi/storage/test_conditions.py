"""Conditions on SQLite hold and fail as DynamoDB's developer guide says."""

from __future__ import annotations

import pytest

from chalicelib.storage.conditions import Condition, attr
from chalicelib.storage.items import Item
from vumi.storage.conditions import holds

ITEM: Item = {
    "PK": "p",
    "SK": "s",
    "five": 5,
    "zero": 0,
    "text": "abc",
    "blank": "",
    "digits": "5",
    "list": [1, "two", ["deep"]],
    "map": {"a": 1, "b": {"c": "x"}, "l": [7, 8]},
    "same": 5,
}

HOLD = {
    "equal numbers": attr("five") == 5,
    "equal texts": attr("text") == "abc",
    "equal lists": attr("list") == [1, "two", ["deep"]],
    "a zero is a value": attr("zero") == 0,
    "an empty text is a value": attr("blank") == "",
    "unequal numbers": attr("five") != 6,
    "unequal types": attr("five") != "5",
    "a missing attribute differs from every value": attr("missing") != 5,
    "less": attr("five") < 6,
    "less or equal at the bound": attr("five") <= 5,
    "greater": attr("five") > 4,
    "greater or equal at the bound": attr("five") >= 5,
    "texts in order": attr("text") < "abd",
    "a text before its continuation": attr("text") < "abcd",
    "capitals before small letters": attr("text") > "ABC",
    "exists": attr("five").exists(),
    "a zero exists": attr("zero").exists(),
    "an empty text exists": attr("blank").exists(),
    "a key exists": attr("PK").exists(),
    "does not exist": attr("missing").missing(),
    "and": (attr("five") == 5) & (attr("text") == "abc"),
    "or, the left": (attr("five") == 5) | (attr("five") == 6),
    "or, the right": (attr("five") == 6) | (attr("five") == 5),
    "a condition of conditions": ((attr("five") == 6) | (attr("zero") == 0))
    & (attr("missing").missing() | (attr("missing") < 1)),
}

FAIL = {
    "unequal numbers are not equal": attr("five") == 6,
    "a number and a text are not equal": attr("five") == "5",
    "a text and a number are not equal": attr("digits") == 5,
    "a missing attribute equals nothing": attr("missing") == 5,
    "equal is not unequal": attr("five") != 5,
    "less at the bound": attr("five") < 5,
    "less or equal above the bound": attr("five") <= 4,
    "greater at the bound": attr("five") > 5,
    "greater or equal below the bound": attr("five") >= 6,
    "missing less": attr("missing") < 5,
    "missing less or equal": attr("missing") <= 5,
    "missing greater": attr("missing") > 5,
    "missing greater or equal": attr("missing") >= 5,
    "less than another type": attr("five") < "6",
    "less or equal another type": attr("digits") <= 5,
    "greater than another type": attr("text") > 1,
    "greater or equal another type": attr("five") >= "5",
    "lists have no order": attr("list") < [9],
    "maps have no order": attr("map") >= {},
    "missing exists": attr("missing").exists(),
    "what exists does not exist": attr("zero").missing(),
    "and, the left fails": (attr("five") == 6) & (attr("text") == "abc"),
    "and, the right fails": (attr("five") == 5) & (attr("text") == "x"),
    "or, both fail": (attr("five") == 6) | (attr("text") == "x"),
}


@pytest.mark.parametrize("condition", HOLD.values(), ids=HOLD.keys())
def test_holds(condition: Condition) -> None:
    assert holds(condition, ITEM) is True


@pytest.mark.parametrize("condition", FAIL.values(), ids=FAIL.keys())
def test_does_not_hold(condition: Condition) -> None:
    assert holds(condition, ITEM) is False


def test_no_condition_always_holds() -> None:
    assert holds(None, ITEM)
    assert holds(None, None)


def test_an_item_that_does_not_exist_has_no_attributes() -> None:
    assert holds(attr("PK").missing(), None)
    assert holds(attr("five") != 5, None)
    assert not holds(attr("PK").exists(), None)
    assert not holds(attr("five") == 5, None)
    assert not holds((attr("five") < 5) | (attr("five") >= 5), None)


def test_texts_are_in_the_order_of_their_code_points() -> None:
    """U+FFFF is ef bf bf in UTF-8, U+1F600 is f0 9f 98 80; UTF-16 has them the other way round."""
    item: Item = {"PK": "p", "SK": "s", "text": "\uffff"}

    assert holds(attr("text") < "\U0001f600", item)
    assert not holds(attr("text") > "\U0001f600", item)
