"""DynamoDB's wire form of items: encoding, decoding, and values that have no wire form."""

from __future__ import annotations

from typing import Any

import pytest
from boto3.dynamodb.types import TypeSerializer
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.aws.attribute_values import decode, encode
from chalicelib.storage.errors import StorageRefusedError
from chalicelib.storage.items import Value

NUMBERS = st.integers(min_value=-(10**38) + 1, max_value=10**38 - 1)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.text() | NUMBERS,
    lambda parts: st.lists(parts) | st.dictionaries(st.text(), parts),
    max_leaves=10,
)


@given(VALUES)
def test_a_value_is_decoded_unchanged(value: Value) -> None:
    assert decode(encode(value)) == value


@given(VALUES)
def test_the_wire_form_equals_that_of_boto3(value: Value) -> None:
    assert encode(value) == TypeSerializer().serialize(value)


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
