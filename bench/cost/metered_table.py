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
from chalicelib.storage.ports import MAX_DUE, Table
from chalicelib.storage.writes import ConditionFailed, Delete, Put, Update, Write
from chalicelib.units import Milliseconds

PAGE_BYTES = 1_048_576
"""The most of a Query's page (DynamoDB API reference); each page is rounded by itself."""
DUE = Index("due", ("batch", "due"), ("batch", "due", "PK", "SK"))
"""The index of events. A test checks that a `Meter` finds the same in the template."""
OPERATIONS = {Put: "PutItem", Update: "UpdateItem", Delete: "DeleteItem"}


class MeteredTable:
    """A `Table` over another; `take` returns the requests since the last call."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._requests: list[Request] = []
        self._sizes: dict[Key, int] = {}

    def take(self) -> tuple[Request, ...]:
        """Return the requests since the last call, in their order."""
        requests, self._requests = tuple(self._requests), []
        return requests

    def get(self, key: Key) -> Item | None:
        item = self._table.get(key)
        self._read("GetItem", [_size(item)])
        return item

    def get_all(self, keys: Sequence[Key]) -> list[Item]:
        found = {key: self._table.get(key) for key in keys}
        if found:
            units = sum(read_units(_size(item), consistent=True) for item in found.values())
            self._requests.append(Request("BatchGetItem", units))
        return [item for item in found.values() if item]

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
        self._read("Query", map(_size, items))
        wanted = attributes or None
        return [
            item if wanted is None else {name: item[name] for name in wanted if name in item}
            for item in items
        ]

    def count(self, partition: str, *, limit: int, first: str = "", last: str = "") -> int:
        items = self._table.query(
            partition, limit=limit, first=first, last=last, attributes=("SK",)
        )
        self._read("Query", (self._known_size(Key(partition, text(item, "SK"))) for item in items))
        return len(items)

    def _known_size(self, key: Key) -> int:
        """Return the size of an item; it is computed once for an item that was not written here."""
        size = self._sizes.get(key)
        return self._weigh(key, self._table.get(key)) if size is None else size

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
            _size({"batch": batch, "due": due, "PK": key.pk, "SK": key.sk}) for due, key in found
        )
        self._read("Query", sizes, consistent=False)
        return found

    def write(self, *writes: Write) -> None:
        before = [self._table.get(write.key) for write in writes]
        try:
            self._table.write(*writes)
        except ConditionFailed:
            self._record(writes, before, before)
            raise
        self._record(writes, before, [self._table.get(write.key) for write in writes])

    def _weigh(self, key: Key, item: Item | None) -> int:
        """Return the size of an item, and remember it."""
        self._sizes[key] = size = _size(item)
        return size

    def put_all(self, items: Sequence[Item]) -> None:
        writes = [Put(item) for item in items]
        before = [self._table.get(write.key) for write in writes]
        self._table.put_all(items)
        if items:
            self._requests.append(
                Request("BatchWriteItem", 0.0, self._units(1, writes, before, items))
            )

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
        self,
        writes: Sequence[Write],
        before: Sequence[Item | None],
        after: Sequence[Item | None],
    ) -> None:
        times = TRANSACTIONAL if len(writes) > 1 else 1
        operation = "TransactWriteItems" if len(writes) > 1 else OPERATIONS[type(writes[0])]
        units = self._units(times, writes, before, after)
        self._requests.append(Request(operation, 0.0, units))

    def _units(
        self,
        times: int,
        writes: Sequence[Write],
        before: Sequence[Item | None],
        after: Sequence[Item | None],
    ) -> tuple[Written, ...]:
        return tuple(
            Written(
                write.key,
                times * write_units(_size(one), self._weigh(write.key, other)),
                times * index_write_units(_entry(one), _entry(other)),
            )
            for write, one, other in zip(writes, before, after, strict=True)
        )


def _entry(item: Item | None) -> dict[str, AttributeValue]:
    return DUE.entry(encode_item(item or {}))


def _size(item: Item | None) -> int:
    return item_bytes(encode_item(item)) if item else 0
