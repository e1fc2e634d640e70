"""A table in memory that counts the capacity units of requests, by DynamoDB's published rules.

Sources, all in the DynamoDB developer guide: "Item sizes and formats"; "DynamoDB read and write
operations"; "Working with items: capacity units consumed by conditional writes"; "DynamoDB
Transactions: capacity management"; "Using Global Secondary Indexes".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from chalicelib.aws.attribute_values import AttributeValue, encode_item
from chalicelib.storage.items import Due, Item, Key, text
from chalicelib.storage.ports import MAX_DUE
from chalicelib.storage.writes import ConditionFailed, Put, Write
from chalicelib.units import Milliseconds
from simulation.memory_table import MemoryTable

READ_UNIT_BYTES = 4_096
WRITE_UNIT_BYTES = 1_024
PAGE_BYTES = 1_048_576
"""The most of a Query's page (DynamoDB API reference); each page is rounded by itself."""
NESTED_BYTES = 3
"""The bytes of an empty list or map."""
ELEMENT_BYTES = 1
EVENTUALLY_CONSISTENT = 0.5
"""The share of a strongly consistent read's units."""
TRANSACTIONAL = 2
"""A transaction writes each item twice, to prepare and to commit, and so in an index too."""
INDEX_KEY, INDEX_NAMES = {"batch", "due"}, ("batch", "due", "PK", "SK")
"""The key and all attributes of the index of events."""


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


def read_units(size: int, *, consistent: bool) -> float:
    """Return a unit for each 4 KB begun, at least one; half of that for an inconsistent read.

    A Query adds up the items that it reads and rounds once. A projection or a count costs the same.
    For an index it adds up the entries, whose reads are never consistent. A missing item costs the
    minimum.
    """
    units = max(1, -(-size // READ_UNIT_BYTES))
    return units if consistent else units * EVENTUALLY_CONSISTENT


def write_units(before: int, after: int) -> int:
    """Return a unit for each KB begun of the larger item, before or after; at least one.

    A failed condition costs the units of the stored item. The removal by TTL costs nothing.
    """
    return max(1, -(-max(before, after) // WRITE_UNIT_BYTES))


def index_write_units(
    before: Mapping[str, AttributeValue], after: Mapping[str, AttributeValue]
) -> int:
    """Return the cost of an entry that is deleted, put, or both because its key changed.

    An unchanged entry costs nothing, and neither does an item that is in the index neither before
    nor after.
    """
    if before == after:
        return 0
    return sum(write_units(0, item_bytes(entry)) for entry in (before, after) if entry)


@dataclass(frozen=True, slots=True)
class Request:
    """One request, and the units that it consumed, in the table and in its index."""

    read_units: float = 0.0
    write_units: int = 0
    written: tuple[Key, ...] = ()


class MeteredTable:
    """A `Table` over one in memory; `take` returns the requests since the last call."""

    def __init__(self, table: MemoryTable) -> None:
        self._table = table
        self._requests: list[Request] = []
        self._weighed: dict[Key, tuple[Item, int]] = {}

    def take(self) -> tuple[Request, ...]:
        """Return the requests since the last call, in their order."""
        requests, self._requests = tuple(self._requests), []
        return requests

    def get(self, key: Key) -> Item | None:
        self._read([self._size(key)])
        return self._table.get(key)

    def get_all(self, keys: Sequence[Key]) -> list[Item]:
        asked = dict.fromkeys(keys)
        if asked:
            units = sum(read_units(self._size(key), consistent=True) for key in asked)
            self._requests.append(Request(units))
        return self._table.get_all(list(asked))

    def query(  # noqa: PLR0913  the arguments of the port
        self,
        partition: str,
        *,
        limit: int,
        first: str = "",
        last: str = "",
        attributes: Sequence[str] = (),
        descending: bool = False,
    ) -> list[Item]:
        items = self._table.query(
            partition, limit=limit, first=first, last=last, descending=descending
        )
        self._read([self._size(Key(partition, text(item, "SK"))) for item in items])
        wanted = attributes or None
        return [
            item if wanted is None else {name: item[name] for name in wanted if name in item}
            for item in items
        ]

    def count(self, partition: str, *, limit: int, first: str = "", last: str = "") -> int:
        counted = self._table.sort_keys(partition, first, last)[:limit]
        self._read([self._size(Key(partition, sk)) for sk in counted])
        return len(counted)

    def _size(self, key: Key) -> int:
        """Return the size of an item as it is stored, 0 if there is none."""
        item, weighed = self._table.items.get(key), self._weighed.get(key)
        return weighed[1] if weighed and weighed[0] is item else self._weigh(key, item)

    def _weigh(self, key: Key, item: Item | None) -> int:
        """Return the size of an item; it is computed once, because each write stores a new dict."""
        if item is None:
            return 0
        weighed = self._weighed.get(key)
        if weighed is None or weighed[0] is not item:
            weighed = self._weighed[key] = item, item_bytes(encode_item(item))
        return weighed[1]

    def query_due(
        self,
        batch: str,
        *,
        limit: int,
        first: Milliseconds = 0,
        last: Milliseconds = MAX_DUE,
        after: Due | None = None,
    ) -> list[Due]:
        found = self._table.query_due(batch, limit=limit, first=first, last=last, after=after)
        sizes = (
            item_bytes(encode_item({"batch": batch, "due": due, "PK": key.pk, "SK": key.sk}))
            for due, key in found
        )
        self._read(sizes, consistent=False)
        return found

    def write(self, *writes: Write) -> None:
        times = TRANSACTIONAL if len(writes) > 1 else 1
        before = self._stored(writes)
        try:
            self._table.write(*writes)
        except ConditionFailed:
            self._record(writes, before, times)
            raise
        self._record(writes, before, times)

    def put_all(self, items: Sequence[Item]) -> None:
        writes = [Put(item) for item in items]
        before = self._stored(writes)
        self._table.put_all(items)
        if items:
            self._record(writes, before)

    def _stored(self, writes: Sequence[Write]) -> Sequence[Item | None]:
        return [self._table.items.get(write.key) for write in writes]

    def _read(self, sizes: Iterable[int], *, consistent: bool = True) -> None:
        """Count the units of a read: pages of 1 MB, each rounded up."""
        pages = [0]
        for size in sizes:
            if pages[-1] >= PAGE_BYTES:
                pages.append(0)
            pages[-1] += size
        units = sum(read_units(page, consistent=consistent) for page in pages)
        self._requests.append(Request(units))

    def _record(
        self, writes: Sequence[Write], before: Sequence[Item | None], times: int = 1
    ) -> None:
        """Count the units of writes that were made, or refused by a condition."""
        units = sum(
            self._units(write.key, *items)
            for write, *items in zip(writes, before, self._stored(writes), strict=True)
        )
        keys = tuple(write.key for write in writes)
        self._requests.append(Request(0.0, times * units, keys))

    def _units(self, key: Key, before: Item | None, after: Item | None) -> int:
        units = write_units(self._weigh(key, before), self._weigh(key, after))
        return units + index_write_units(_entry(before), _entry(after))


def _entry(item: Item | None) -> dict[str, AttributeValue]:
    """Return the entry of an item in the index of events, empty if it has none."""
    if not item or not set(item) >= INDEX_KEY:
        return {}
    return encode_item({name: item[name] for name in INDEX_NAMES})
