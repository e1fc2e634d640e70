"""DynamoDB's wire form of items: encoding, decoding, and values that have no wire form."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from boto3.dynamodb.types import TypeSerializer
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.aws.attribute_values import decode, decode_item, encode, encode_item
from chalicelib.storage.errors import StorageRefusedError
from chalicelib.storage.items import Item, Value

NUMBERS = st.integers(min_value=-(10**38) + 1, max_value=10**38 - 1)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.text() | NUMBERS,
    lambda parts: st.lists(parts) | st.dictionaries(st.text(), parts),
    max_leaves=10,
)


@given(VALUES)
def test_a_value_is_decoded_unchanged(value: Value) -> None:
    assert decode(encode(value)) == value


@given(st.dictionaries(st.text(min_size=1), VALUES))
def test_an_item_is_decoded_unchanged(item: Item) -> None:
    assert decode_item(encode_item(item)) == item


@given(VALUES)
def test_the_wire_form_equals_that_of_boto3(value: Value) -> None:
    assert encode(value) == TypeSerializer().serialize(value)


@pytest.mark.parametrize(
    "value",
    [None, True, False, 1.0, float("nan"), Decimal(1), b"x", (1,), {1}, frozenset({"x"}), object()],
)
def test_an_unsupported_value_is_refused_at_any_depth(value: Any) -> None:
    holders: list[Any] = [value, [value], {"name": value}, {"name": ["x", {"deep": value}]}]
    for holder in holders:
        with pytest.raises(StorageRefusedError, match="a table holds str, int, lists and maps"):
            encode(holder)


def test_a_map_with_keys_that_are_not_texts_is_refused() -> None:
    numbered: Any = {1: "x"}
    with pytest.raises(StorageRefusedError, match="keys of a map are texts, not 1"):
        encode([numbered])


@pytest.mark.parametrize(
    "foreign",
    [
        {"BOOL": True},
        {"NULL": True},
        {"B": b"x"},
        {"SS": ["x"]},
        {"NS": ["1"]},
        {"BS": [b"x"]},
        {"N": "1.5"},
        {"N": "1E+2"},
        {},
    ],
)
def test_a_type_that_this_program_never_writes_is_refused(foreign: dict[str, Any]) -> None:
    for held in (foreign, {"L": [foreign]}, {"M": {"name": foreign}}):
        with pytest.raises(StorageRefusedError, match="not written by this program"):
            decode(held)


def test_a_number_is_exact_to_its_38th_digit() -> None:
    digits = "12345678901234567890123456789012345678"
    value = decode({"N": digits})
    assert type(value) is int
    assert str(value) == digits
