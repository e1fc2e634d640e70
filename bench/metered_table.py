"""A table in memory that counts the capacity units of requests, by DynamoDB's published rules.

Sources, all in the DynamoDB developer guide: "Item sizes and formats"; "DynamoDB read and write
operations"; "Working with items: capacity units consumed by conditional writes"; "DynamoDB
Transactions: capacity management".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from chalicelib.aws.attribute_values import AttributeValue, encode_item
from chalicelib.storage.items import Item, Key, key_of
from chalicelib.storage.writes import Put, Write
from simulation.storage import MemoryTable

READ_UNIT_BYTES = 4_096
WRITE_UNIT_BYTES = 1_024
PAGE_BYTES = 1_048_576
"""The most of a Query's page (DynamoDB API reference); each page is rounded by itself."""
NESTED_BYTES = 3
"""The bytes of an empty list or map."""
ELEMENT_BYTES = 1
TRANSACTIONAL = 2
"""A transaction writes each item twice, to prepare and to commit."""


def item_bytes(item: Mapping[str, AttributeValue]) -> int:
    """Return the size of an item: the sum of its attributes' names and values."""
    return sum(_text_bytes(name) + _value_bytes(value) for name, value in item.items())


def _value_bytes(value: AttributeValue) -> int:
    match value:
        case {"S": text}:
            return _text_bytes(text)
        case {"N": number}:
            return _number_bytes(number)
        case {"L": elements}:
            return NESTED_BYTES + sum(ELEMENT_BYTES + _value_bytes(part) for part in elements)
        case {"M": elements}:
            return NESTED_BYTES + len(elements) * ELEMENT_BYTES + item_bytes(elements)
    raise LookupError(f"no rule for the size of {value!r}: no table here holds it")


def _text_bytes(text: str) -> int:
    return len(text.encode())


def _number_bytes(number: str) -> int:
    """Return about a byte per two significant digits, plus one; outer zeros don't count."""
    digits = "".join(map(str, Decimal(number).as_tuple().digits)).strip("0")
    return -(-len(digits) // 2) + 1


def read_units(size: int) -> int:
    """Return a unit for each 4 KB begun, at least one; every read here is consistent.

    A Query adds up the items that it reads and rounds once. A projection or a count costs the same.
    """
    return max(1, -(-size // READ_UNIT_BYTES))


def write_units(before: int, after: int) -> int:
    """Return a unit for each KB begun of the larger item, before or after; at least one.

    A failed condition costs the units of the stored item. The removal by TTL costs nothing.
    """
    return max(1, -(-max(before, after) // WRITE_UNIT_BYTES))


@dataclass(frozen=True, slots=True)
class Request:
    """One request, and the units that it consumed."""

    read_units: int = 0
    write_units: int = 0
    written: tuple[Key, ...] = ()


class MeteredTable(MemoryTable):
    """A table in memory; `take` returns the requests since the last call."""

    def __init__(self) -> None:
        super().__init__()
        self._requests: list[Request] = []
        self._weighed: dict[Key, tuple[Item, int]] = {}

    def take(self) -> tuple[Request, ...]:
        """Return the requests since the last call, in their order."""
        requests, self._requests = tuple(self._requests), []
        return requests

    def get(self, key: Key) -> Item | None:
        self._read([key])
        return super().get(key)

    def get_all(self, keys: Sequence[Key]) -> list[Item]:
        asked = dict.fromkeys(keys)
        if asked:
            units = sum(read_units(self._weigh(key, self.items.get(key))) for key in asked)
            self._requests.append(Request(units))
        return [dict(self.items[key]) for key in asked if key in self.items]

    def query(self, partition: str, **how: Any) -> list[Item]:
        items = super().query(partition, **{**how, "attributes": ()})
        self._read(key_of(item) for item in items)
        return super().query(partition, **how)

    def count(self, partition: str, *, limit: int, first: str = "", last: str = "") -> int:
        counted = self.sort_keys(partition, first, last)[:limit]
        self._read(Key(partition, sk) for sk in counted)
        return len(counted)

    def write(self, *writes: Write) -> None:
        before = [self.items.get(write.key) for write in writes]
        try:
            super().write(*writes)
        finally:
            self._record(writes, before, TRANSACTIONAL if len(writes) > 1 else 1)

    def put_all(self, items: Sequence[Item]) -> None:
        writes = [Put(item) for item in items]
        before = [self.items.get(write.key) for write in writes]
        super().put_all(items)
        if items:
            self._record(writes, before)

    def _weigh(self, key: Key, item: Item | None) -> int:
        """Return the size of an item; it is computed once, because each write stores a new dict."""
        if item is None:
            return 0
        weighed = self._weighed.get(key)
        if weighed is None or weighed[0] is not item:
            weighed = self._weighed[key] = item, item_bytes(encode_item(item))
        return weighed[1]

    def _read(self, keys: Iterable[Key]) -> None:
        """Count the units of a read: pages of 1 MB, each rounded up."""
        pages = [0]
        for key in keys:
            if pages[-1] >= PAGE_BYTES:
                pages.append(0)
            pages[-1] += self._weigh(key, self.items.get(key))
        self._requests.append(Request(sum(map(read_units, pages))))

    def _record(
        self, writes: Sequence[Write], before: Sequence[Item | None], times: int = 1
    ) -> None:
        """Count the units of writes that were made, or refused by a condition."""
        units = 0
        for write, old in zip(writes, before, strict=True):
            sizes = (self._weigh(write.key, item) for item in (old, self.items.get(write.key)))
            units += write_units(*sizes)
        self._requests.append(Request(0, times * units, tuple(write.key for write in writes)))
