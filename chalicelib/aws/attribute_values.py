"""DynamoDB's wire form of items: `{"S": "text"}`, `{"N": "1"}`, `{"L": [...]}`, `{"M": {...}}`.

Numbers are whole and come back as int, never as Decimal. Source: the DynamoDB API reference,
`AttributeValue`; stream records use the same form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from chalicelib.storage.errors import StorageRefusedError
from chalicelib.storage.items import Item, Key, Value

WHOLE = re.compile(r"-?\d+")
AttributeValue: TypeAlias = dict[str, Any]


def encode(value: Value) -> AttributeValue:
    """Encode a value that was checked (`items.check_value`) in the wire form."""
    match value:
        case str():
            return {"S": value}
        case int():
            return {"N": str(value)}
        case list():
            return {"L": [encode(part) for part in value]}
        case dict():
            return {"M": {name: encode(part) for name, part in value.items()}}


def decode(value: Mapping[str, Any]) -> Value:
    """Decode a value from the wire form. Raises `StorageRefusedError` for an unknown type."""
    if "S" in value:
        return str(value["S"])
    entry: tuple[str, Any] = next(iter(value.items()), ("", ""))
    kind, content = entry
    match kind:
        case "N" if WHOLE.fullmatch(content):
            return int(content)
        case "L":
            return [decode(part) for part in content]
        case "M":
            return decode_item(content)
    raise StorageRefusedError(f"an attribute {value!r} was not written by this program")


def encode_item(item: Mapping[str, Value]) -> dict[str, AttributeValue]:
    """Encode an item, or a part of one, in the wire form."""
    return {name: encode(value) for name, value in item.items()}


def encode_key(key: Key) -> dict[str, AttributeValue]:
    """Encode a primary key in the wire form."""
    return encode_item({"PK": key.pk, "SK": key.sk})


def decode_item(attributes: Mapping[str, Mapping[str, Any]]) -> Item:
    """Decode an item, or a part of one, from the wire form."""
    return {name: decode(value) for name, value in attributes.items()}
