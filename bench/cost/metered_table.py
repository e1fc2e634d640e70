"""A table in memory that counts units by DynamoDB's rules, for long simulations.

moto with a `Meter` evaluates DynamoDB's expressions, and takes milliseconds per request. This table
applies the rules of `metering` at the port. Tests check that both count the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bench.cost.metering import (
    TRANSACTIONAL,
    Index,
    Request,
    Written,
    index_write_units,
    item_bytes,
    read_units,
    write_units,
)
from chalicelib.aws.attribute_values import AttributeValue, encode_item
from chalicelib.storage.items import Due, Item, Key, text
from chalicelib.storage.ports import MAX_DUE
from chalicelib.storage.writes import ConditionFailed, Delete, Put, Update, Write
from chalicelib.units import Milliseconds
from simulation.memory_table import MemoryTable

PAGE_BYTES = 1_048_576
"""The most of a Query's page (DynamoDB API reference); each page is rounded by itself."""
DUE = Index("due", ("batch", "due"), ("batch", "due", "PK", "SK"))
"""The index of events. A test checks that a `Meter` finds the same in the template."""
OPERATIONS = {Put: "PutItem", Update: "UpdateItem", Delete: "DeleteItem"}


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
        self._read("GetItem", [self._size(key)])
        return self._table.get(key)

    def get_all(self, keys: Sequence[Key]) -> list[Item]:
        asked = dict.fromkeys(keys)
        if asked:
            units = sum(read_units(self._size(key), consistent=True) for key in asked)
            self._requests.append(Request("BatchGetItem", units))
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
        self._read("Query", [self._size(Key(partition, text(item, "SK"))) for item in items])
        wanted = attributes or None
        return [
            item if wanted is None else {name: item[name] for name in wanted if name in item}
            for item in items
        ]

    def count(self, partition: str, *, limit: int, first: str = "", last: str = "") -> int:
        counted = self._table.sort_keys(partition, first, last)[:limit]
        self._read("Query", [self._size(Key(partition, sk)) for sk in counted])
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
        self._read("Query", sizes, consistent=False)
        return found

    def write(self, *writes: Write) -> None:
        operation = "TransactWriteItems" if len(writes) > 1 else OPERATIONS[type(writes[0])]
        before = self._stored(writes)
        try:
            self._table.write(*writes)
        except ConditionFailed:
            self._record(operation, writes, before)
            raise
        self._record(operation, writes, before)

    def put_all(self, items: Sequence[Item]) -> None:
        writes = [Put(item) for item in items]
        before = self._stored(writes)
        self._table.put_all(items)
        if items:
            self._record("BatchWriteItem", writes, before)

    def _stored(self, writes: Sequence[Write]) -> Sequence[Item | None]:
        return [self._table.items.get(write.key) for write in writes]

    def _read(self, operation: str, sizes: Iterable[int], *, consistent: bool = True) -> None:
        """Count the units of a read: pages of 1 MB, each rounded up."""
        pages = [0]
        for size in sizes:
            if pages[-1] >= PAGE_BYTES:
                pages.append(0)
            pages[-1] += size
        units = sum(read_units(page, consistent=consistent) for page in pages)
        self._requests.append(Request(operation, units))

    def _record(
        self, operation: str, writes: Sequence[Write], before: Sequence[Item | None]
    ) -> None:
        """Count the units of writes that were made, or refused by a condition."""
        times = TRANSACTIONAL if operation == "TransactWriteItems" else 1
        written = tuple(
            self._written(write.key, times, *items)
            for write, *items in zip(writes, before, self._stored(writes), strict=True)
        )
        self._requests.append(Request(operation, 0.0, written))

    def _written(self, key: Key, times: int, before: Item | None, after: Item | None) -> Written:
        return Written(
            key,
            times * write_units(self._weigh(key, before), self._weigh(key, after)),
            times * index_write_units(_entry(before), _entry(after)),
        )


def _entry(item: Item | None) -> dict[str, AttributeValue]:
    """Return the entry of an item in the index of events."""
    named = {name: item[name] for name in DUE.names if name in item} if item else {}
    return DUE.entry(encode_item(named))
