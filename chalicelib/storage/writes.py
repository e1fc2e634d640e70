"""The writes of items, alone or up to 100 as one transaction, each with an optional condition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from chalicelib.storage.conditions import Condition
from chalicelib.storage.errors import StorageRefusedError
from chalicelib.storage.items import Item, Key, Value, check_key, check_value, key_of

MAX_TRANSACTION_WRITES = 100
"""Writes in one transaction (DynamoDB, `TransactWriteItems`)."""


@dataclass(frozen=True, slots=True)
class Put:
    """A write that stores an item, in place of any with the same key."""

    item: Item
    condition: Condition | None = None

    @property
    def key(self) -> Key:
        return key_of(self.item)


@dataclass(frozen=True, slots=True)
class Update:
    """A write that changes attributes of an item, and creates the item if there is none.

    `values` replace attributes, `defaults` set missing ones, and `add` adds to a number, or to 0 if
    it is missing. An update with `add` is idempotent only if it makes its own condition false:
    otherwise it adds twice if it is sent again after a lost answer.
    """

    key: Key
    values: Mapping[str, Value] = field(default_factory=dict)
    defaults: Mapping[str, Value] = field(default_factory=dict)
    add: Mapping[str, int] = field(default_factory=dict)
    remove: tuple[str, ...] = ()
    condition: Condition | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """A write that removes an item; it is no error if there is none."""

    key: Key
    condition: Condition | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """A write that changes nothing and fails the transaction if the condition does not hold."""

    key: Key
    condition: Condition


Write: TypeAlias = Put | Update | Delete | Check


def check_transaction(writes: Sequence[Write]) -> None:
    """Raise `StorageRefusedError` unless these are 1 to 100 possible writes of different items."""
    if not 1 <= len(writes) <= MAX_TRANSACTION_WRITES:
        raise StorageRefusedError(
            f"1 to {MAX_TRANSACTION_WRITES} writes in one transaction, not {len(writes)}"
        )
    if len({write.key for write in writes}) < len(writes):
        raise StorageRefusedError("a transaction writes no item twice")
    for write in writes:
        check_key(write.key)
        match write:
            case Put():
                check_value(write.item)
            case Update():
                check_value({**write.values, **write.defaults, **write.add})
                if not (write.values or write.defaults or write.add or write.remove):
                    raise StorageRefusedError("an update changes something")


class ConditionFailedError(Exception):
    """A condition did not hold, so nothing was written. This is an answer, not a failure.

    `items` maps the position of each failed write to its item as it is stored, or to None.
    """

    def __init__(self, items: Mapping[int, Item | None]) -> None:
        super().__init__(f"the condition of write {', '.join(map(str, items))} does not hold")
        self.items = dict(items)
