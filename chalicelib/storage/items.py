"""The items, their values, and the keys under which they are stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from chalicelib.storage.errors import StorageRefusedError
from chalicelib.units import Milliseconds

Value: TypeAlias = "str | int | list[Value] | dict[str, Value]"
Item: TypeAlias = dict[str, Value]

MAX_DIGITS = 38
"""Digits of a number (DynamoDB developer guide, "Data types")."""
NUMBERS_END = 10**MAX_DIGITS
MAX_LEVELS = 32
"""Levels of lists and maps (DynamoDB developer guide, "Quotas")."""


class Key(NamedTuple):
    """The primary key of an item: partition key `PK` and sort key `SK`."""

    pk: str
    sk: str

    def item(self, **attributes: Value) -> Item:
        """Return the item of this key with these attributes."""
        return {"PK": self.pk, "SK": self.sk, **attributes}


class Due(NamedTuple):
    """The position of an item in a batch of the index `due`: its `due`, and its primary key."""

    due: Milliseconds
    key: Key


def key_of(item: Mapping[str, Value]) -> Key:
    """Return the primary key of an item. Raises `StorageRefusedError` if it has none."""
    pk, sk = item.get("PK"), item.get("SK")
    if not isinstance(pk, str) or not isinstance(sk, str):
        raise StorageRefusedError(
            f"an item needs the texts PK and SK, this one has {pk!r} and {sk!r}"
        )
    return Key(pk, sk)


def number(item: Mapping[str, Value], name: str) -> int:
    """Return the whole number `name` of an item, 0 if it has none."""
    value = item.get(name, 0)
    if not isinstance(value, int):
        raise TypeError(f"{name} is {value!r}, expected a whole number")
    return value


def text(item: Mapping[str, Value], name: str) -> str:
    """Return the text `name` of an item, empty if it has none."""
    value = item.get(name, "")
    if not isinstance(value, str):
        raise TypeError(f"{name} is {value!r}, expected a text")
    return value


def check_item(item: Mapping[str, Value]) -> Key:
    """Return the key of an item. Raises `StorageRefusedError` if no table can store the item."""
    key = key_of(item)
    check_key(key)
    _check_map(item, MAX_LEVELS)
    return key


def check_key(key: Key) -> None:
    """Raise `StorageRefusedError` for a key that no table can store."""
    _check_length("PK", key.pk, 2048)
    _check_length("SK", key.sk, 1024)


def _check_length(name: str, value: str, most: int) -> None:
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise StorageRefusedError(
            f"{name} must be text that UTF-8 can hold, not {value!r}"
        ) from None
    if not 1 <= size <= most:
        raise StorageRefusedError(f"{name} must be 1 to {most} bytes of UTF-8, this one has {size}")


def check_value(value: object, levels: int = MAX_LEVELS) -> None:
    """Raise `StorageRefusedError` unless it is a str, an int, or a list or map of such values."""
    match value:
        case str():
            return
        case int() if not isinstance(value, bool):
            if abs(value) >= NUMBERS_END:
                raise StorageRefusedError(
                    f"a table holds numbers of at most {MAX_DIGITS} digits, not {value}"
                )
        case dict() | list() if levels < 0:
            raise StorageRefusedError(
                f"a table holds lists and maps in at most {MAX_LEVELS} levels"
            )
        case dict():
            _check_map(value, levels)
        case list():
            for part in value:
                check_value(part, levels - 1)
        case _:
            raise StorageRefusedError(f"a table holds str, int, lists and maps, not {value!r}")


def _check_map(value: Mapping[str, object], levels: int) -> None:
    for name, part in value.items():
        if not isinstance(name, str):
            raise StorageRefusedError(f"the keys of a map are texts, not {name!r}")
        if not isinstance(part, str) and (type(part) is not int or abs(part) >= NUMBERS_END):
            check_value(part, levels - 1)  # few parts are neither texts nor numbers
