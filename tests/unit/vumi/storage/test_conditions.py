"""Conditions on SQLite hold and fail as DynamoDB's developer guide says."""

from __future__ import annotations

import pytest
from boto3.dynamodb.conditions import Attr, ConditionBase

from chalicelib.storage.ports import Item
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
    "equal numbers": Attr("five").eq(5),
    "equal texts": Attr("text").eq("abc"),
    "equal lists": Attr("list").eq([1, "two", ["deep"]]),
    "equal maps": Attr("map.b").eq({"c": "x"}),
    "two equal attributes": Attr("five").eq(Attr("same")),
    "a zero is a value": Attr("zero").eq(0),
    "an empty text is a value": Attr("blank").eq(""),
    "unequal numbers": Attr("five").ne(6),
    "unequal types": Attr("five").ne("5"),
    "a missing attribute differs from every value": Attr("missing").ne(5),
    "less": Attr("five").lt(6),
    "less or equal at the bound": Attr("five").lte(5),
    "greater": Attr("five").gt(4),
    "greater or equal at the bound": Attr("five").gte(5),
    "texts in order": Attr("text").lt("abd"),
    "a text before its continuation": Attr("text").lt("abcd"),
    "capitals before small letters": Attr("text").gt("ABC"),
    "an attribute lower than another": Attr("zero").lt(Attr("five")),
    "between, the lower bound included": Attr("five").between(5, 9),
    "between, the upper bound included": Attr("five").between(1, 5),
    "texts between": Attr("text").between("abb", "abd"),
    "in": Attr("five").is_in([4, 5]),
    "begins with": Attr("text").begins_with("ab"),
    "begins with itself": Attr("text").begins_with("abc"),
    "a text contains a text": Attr("text").contains("bc"),
    "a list contains a number": Attr("list").contains(1),
    "a list contains a text": Attr("list").contains("two"),
    "a list contains a list": Attr("list").contains(["deep"]),
    "exists": Attr("five").exists(),
    "a zero exists": Attr("zero").exists(),
    "an empty text exists": Attr("blank").exists(),
    "a key exists": Attr("PK").exists(),
    "does not exist": Attr("missing").not_exists(),
    "type of a text": Attr("text").attribute_type("S"),
    "type of a number": Attr("five").attribute_type("N"),
    "type of a list": Attr("list").attribute_type("L"),
    "type of a map": Attr("map").attribute_type("M"),
    "a map's attribute": Attr("map.a").eq(1),
    "a map's map's attribute": Attr("map.b.c").eq("x"),
    "a list's element": Attr("list[1]").eq("two"),
    "a list's list's element": Attr("list[2][0]").eq("deep"),
    "a map's list's element": Attr("map.l[1]").eq(8),
    "no element behind the end": Attr("list[3]").not_exists(),
    "no attribute of a number": Attr("five.a").not_exists(),
    "no element of a map": Attr("map[0]").not_exists(),
    "no attribute of a list": Attr("list.a").not_exists(),
    "no element of a text": Attr("text[0]").not_exists(),
    "and": Attr("five").eq(5) & Attr("text").eq("abc"),
    "or, the left": Attr("five").eq(5) | Attr("five").eq(6),
    "or, the right": Attr("five").eq(6) | Attr("five").eq(5),
    "not": ~Attr("five").eq(6),
    "not of a comparison with a missing attribute": ~Attr("missing").lt(5),
    "a condition of conditions": ~(Attr("five").eq(6) | Attr("zero").eq(1))
    & (Attr("missing").not_exists() | Attr("missing").lt(1)),
}

FAIL = {
    "unequal numbers are not equal": Attr("five").eq(6),
    "a number and a text are not equal": Attr("five").eq("5"),
    "a text and a number are not equal": Attr("digits").eq(5),
    "a missing attribute equals nothing": Attr("missing").eq(5),
    "two missing attributes are not equal": Attr("missing").eq(Attr("absent")),
    "equal is not unequal": Attr("five").ne(5),
    "less at the bound": Attr("five").lt(5),
    "less or equal above the bound": Attr("five").lte(4),
    "greater at the bound": Attr("five").gt(5),
    "greater or equal below the bound": Attr("five").gte(6),
    "missing less": Attr("missing").lt(5),
    "missing less or equal": Attr("missing").lte(5),
    "missing greater": Attr("missing").gt(5),
    "missing greater or equal": Attr("missing").gte(5),
    "missing between": Attr("missing").between(0, 9),
    "missing in": Attr("missing").is_in([1, 2]),
    "missing begins with": Attr("missing").begins_with("a"),
    "missing begins with nothing": Attr("missing").begins_with(""),
    "missing contains": Attr("missing").contains("a"),
    "missing has no type": Attr("missing").attribute_type("S"),
    "less than another type": Attr("five").lt("6"),
    "less or equal another type": Attr("digits").lte(5),
    "greater than another type": Attr("text").gt(1),
    "greater or equal another type": Attr("five").gte("5"),
    "lists have no order": Attr("list").lt([9]),
    "maps have no order": Attr("map").gte({}),
    "less than a missing attribute": Attr("five").lt(Attr("missing")),
    "below between": Attr("five").between(6, 9),
    "above between": Attr("five").between(1, 4),
    "between of another type": Attr("five").between("1", "9"),
    "between of two types": Attr("five").between(1, "9"),
    "not in": Attr("five").is_in([4, 6]),
    "in another type": Attr("five").is_in(["5"]),
    "in nothing like it": Attr("list").is_in([1, "two"]),
    "begins otherwise": Attr("text").begins_with("b"),
    "begins with more than itself": Attr("text").begins_with("abcd"),
    "a number begins with nothing": Attr("five").begins_with("5"),
    "a list begins with nothing": Attr("list").begins_with("1"),
    "a text does not contain": Attr("text").contains("ac"),
    "a text contains no number": Attr("digits").contains(5),
    "a list does not contain": Attr("list").contains("deep"),
    "a list contains no other type": Attr("list").contains("1"),
    "a number contains nothing": Attr("five").contains(5),
    "a map contains no key": Attr("map").contains("a"),
    "missing exists": Attr("missing").exists(),
    "what exists does not exist": Attr("zero").not_exists(),
    "another type": Attr("five").attribute_type("S"),
    "a text is no list": Attr("text").attribute_type("L"),
    "a missing nested attribute": Attr("map.missing").eq(1),
    "a nested attribute under a missing one": Attr("missing.a").exists(),
    "a nested attribute of another value": Attr("map.b.c").eq("y"),
    "an element behind the end": Attr("list[9]").exists(),
    "and, the left fails": Attr("five").eq(6) & Attr("text").eq("abc"),
    "and, the right fails": Attr("five").eq(5) & Attr("text").eq("x"),
    "or, both fail": Attr("five").eq(6) | Attr("text").eq("x"),
    "not of what holds": ~Attr("five").eq(5),
    "not of both": ~(Attr("five").eq(5) & Attr("zero").eq(0)),
}


@pytest.mark.parametrize("condition", HOLD.values(), ids=HOLD.keys())
def test_holds(condition: ConditionBase) -> None:
    assert holds(condition, ITEM) is True


@pytest.mark.parametrize("condition", FAIL.values(), ids=FAIL.keys())
def test_does_not_hold(condition: ConditionBase) -> None:
    assert holds(condition, ITEM) is False


def test_no_condition_always_holds() -> None:
    assert holds(None, ITEM)
    assert holds(None, None)


def test_an_item_that_does_not_exist_has_no_attributes() -> None:
    assert holds(Attr("PK").not_exists(), None)
    assert holds(Attr("five").ne(5), None)
    assert not holds(Attr("PK").exists(), None)
    assert not holds(Attr("five").eq(5), None)
    assert not holds(Attr("five").lt(5) | Attr("five").gte(5), None)


def test_texts_are_in_the_order_of_their_code_points() -> None:
    """U+FFFF is ef bf bf in UTF-8, U+1F600 is f0 9f 98 80; UTF-16 has them the other way round."""
    item: Item = {"PK": "p", "SK": "s", "text": "\uffff"}

    assert holds(Attr("text").lt("\U0001f600"), item)
    assert not holds(Attr("text").gt("\U0001f600"), item)


def test_an_operator_that_the_tables_never_need_is_refused() -> None:
    class Unknown(ConditionBase):
        expression_operator = "UNKNOWN"

    with pytest.raises(TypeError, match="conditions here have no UNKNOWN"):
        holds(Unknown(Attr("five"), 5), ITEM)


@pytest.mark.parametrize("attribute", ["text", "list", "map", "five", "missing"])
def test_a_size_is_refused_whatever_it_is_of(attribute: str) -> None:
    with pytest.raises(TypeError, match="conditions here have no size"):
        holds(Attr(attribute).size().gte(0), ITEM)
