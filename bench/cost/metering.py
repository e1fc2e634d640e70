"""The capacity units that requests to DynamoDB consume, by its published rules.

moto answers as DynamoDB does, but its figures about capacity are not reliable. So a `Meter` reads
each request before it is sent and after it is answered, and gets the sizes of its items through a
second client, whose own requests don't count.

Sources, all in the DynamoDB developer guide: "Item sizes and formats"; "DynamoDB read and write
operations", which has the capacity unit consumption; "Working with items: capacity units consumed
by conditional writes"; "DynamoDB Transactions: capacity management";
"Using Global Secondary Indexes", "Provisioned throughput considerations for Global Secondary
Indexes"; "Using time to live", by which a removal costs nothing in an index either.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from threading import Lock
from typing import Any, NamedTuple, Protocol

from chalicelib.aws.attribute_values import AttributeValue
from chalicelib.storage.items import Key

READ_UNIT_BYTES = 4_096
WRITE_UNIT_BYTES = 1_024
NESTED_BYTES = 3
"""The bytes of an empty list or map."""
ELEMENT_BYTES = 1
EVENTUALLY_CONSISTENT = 0.5
"""The share of a strongly consistent read's units."""
TRANSACTIONAL = 2
"""A transaction writes each item twice, to prepare and to commit. No page says this of an index, so
the writes to indexes count double as well, which is the most that they can cost."""
REFUSED_BY_CONDITION = frozenset(
    {"ConditionalCheckFailedException", "TransactionCanceledException"}
)
"""The errors that cost as much as the write; throttled and invalid requests cost nothing."""
READS = frozenset({"BatchGetItem", "GetItem", "Query"})
TARGET = {"PutItem": "Item", "UpdateItem": "Key", "DeleteItem": "Key"}
"""The part of a single write's request that has the key."""


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


@dataclass(frozen=True, slots=True)
class Index:
    """A secondary index of keys only: `names` has its own key, then the table's."""

    name: str
    key: tuple[str, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, description: Mapping[str, Any], table_key: Sequence[str]) -> Index:
        """Make an index from DescribeTable. Raises `LookupError` if it has more than keys."""
        name = description["IndexName"]
        if description["Projection"]["ProjectionType"] != "KEYS_ONLY":
            raise LookupError(f"no rule for {name}: it holds more than keys")
        key = tuple(part["AttributeName"] for part in description["KeySchema"])
        return cls(name, key, tuple(dict.fromkeys((*key, *table_key))))

    def entry(self, item: Mapping[str, AttributeValue]) -> dict[str, AttributeValue]:
        """Return the index's entry of an item, empty if a part of the index's key is missing."""
        if not set(self.key) <= set(item):
            return {}
        return {name: item[name] for name in self.names}


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
class Written:
    """The write of one item: its units in the table and in the table's indexes."""

    key: Key
    units: int
    index_units: int = 0


@dataclass(frozen=True, slots=True)
class Request:
    """One request, and the units it consumed."""

    operation: str
    read_units: float = 0.0
    written: tuple[Written, ...] = ()

    @property
    def write_units(self) -> int:
        """The write units in the table and in its indexes, which cost the same."""
        return sum(write.units + write.index_units for write in self.written)


class RequestMeter(Protocol):
    """A meter of the requests to a table."""

    def take(self) -> tuple[Request, ...]:
        """Return the requests since the last call, in their order."""


class _Item(NamedTuple):
    """The key of a written item, and its table."""

    table: str
    key: Key


class Meter:
    """A counter of the units that watched clients consume. `weigher` is an unwatched client.

    Requests of several threads run one by one, because moto would lose some, and because the meter
    needs the items as they are before and after each request.
    """

    def __init__(self, weigher: Any) -> None:
        self._weigher = weigher
        self._requests: list[Request] = []
        self._indexes: dict[str, tuple[Index, ...]] = {}
        self._under_way = Lock()

    @contextmanager
    def watching(self, client: Any) -> Iterator[Meter]:
        """Count all requests of a client, or of a resource's client, meanwhile.

        The meter handles each call first, so it gets values in their wire form.
        """
        events = client.meta.events
        events.register_first("before-call.dynamodb", self._before)
        events.register_first("after-call.dynamodb", self._after)
        events.register_first("after-call-error.dynamodb", self._fail)
        try:
            yield self
        finally:
            events.unregister("before-call.dynamodb", self._before)
            events.unregister("after-call.dynamodb", self._after)
            events.unregister("after-call-error.dynamodb", self._fail)

    def take(self) -> tuple[Request, ...]:
        requests, self._requests = tuple(self._requests), []
        return requests

    def _before(self, params: Mapping[str, Any], model: Any, context: Any, **_: object) -> None:
        self._under_way.acquire()
        try:
            request = json.loads(params["body"])
            items = [] if model.name in READS else list(_items(model.name, request))
            context["metered"] = request, [(item, self._get(item)) for item in items]
        except BaseException:
            self._under_way.release()
            raise

    def _after(
        self, parsed: Mapping[str, Any], model: Any, context: Mapping[str, Any], **_: object
    ) -> None:
        try:
            self._count(parsed, model, context)
        finally:
            self._under_way.release()

    def _fail(self, **_: object) -> None:
        """End a request without an answer."""
        self._under_way.release()

    def _count(self, parsed: Mapping[str, Any], model: Any, context: Mapping[str, Any]) -> None:
        request, items = context["metered"]
        if "Error" in parsed and parsed["Error"].get("Code") not in REFUSED_BY_CONDITION:
            self._requests.append(Request(model.name))
            return
        left = set(_unprocessed(parsed))
        done = [(item, before) for item, before in items if item not in left]
        read = self._read_units(model.name, request, parsed)
        self._requests.append(
            Request(model.name, read, tuple(self._count_writes(model.name, done)))
        )

    def _read_units(
        self, operation: str, request: Mapping[str, Any], answer: Mapping[str, Any]
    ) -> float:
        match operation:
            case "GetItem":
                size = item_bytes(self._get(_Item(request["TableName"], _key(request["Key"]))))
            case "BatchGetItem":
                return self._units_of_batch(request, answer)
            case "Query" if "IndexName" in request:
                size = self._weight_in_index(request, answer)
            case "Query" if _is_in_full(request):
                size = sum(map(item_bytes, answer["Items"]))
            case "Query":
                size = self._weight_of_page(request, answer)
            case _:
                return 0.0
        return read_units(size, consistent=request.get("ConsistentRead", False))

    def _units_of_batch(self, request: Mapping[str, Any], answer: Mapping[str, Any]) -> float:
        """Round each item of a batch by itself; unprocessed items cost nothing."""
        units = 0.0
        for table, asked in request["RequestItems"].items():
            consistent = asked.get("ConsistentRead", False)
            left = answer.get("UnprocessedKeys", {}).get(table, {}).get("Keys", [])
            for key in asked["Keys"]:
                if key not in left:
                    size = item_bytes(self._get(_Item(table, _key(key))))
                    units += read_units(size, consistent=consistent)
        return units

    def _count_writes(
        self, operation: str, items: Sequence[tuple[_Item, Mapping[str, AttributeValue]]]
    ) -> Iterator[Written]:
        times = TRANSACTIONAL if operation == "TransactWriteItems" else 1
        for item, before in items:
            after = self._get(item)
            units = times * write_units(item_bytes(before), item_bytes(after))
            of_indexes = times * sum(
                index_write_units(index.entry(before), index.entry(after))
                for index in self._indexes_of(item.table)
            )
            yield Written(item.key, units, of_indexes)

    def _get(self, item: _Item) -> dict[str, AttributeValue]:
        """Return an item as it is stored, empty if there is none."""
        key = {"PK": {"S": item.key.pk}, "SK": {"S": item.key.sk}}
        answer = self._weigher.get_item(TableName=item.table, Key=key, ConsistentRead=True)
        stored: dict[str, AttributeValue] = answer.get("Item", {})
        return stored

    def _indexes_of(self, table: str) -> tuple[Index, ...]:
        if table not in self._indexes:
            described = self._weigher.describe_table(TableName=table)["Table"]
            key = [part["AttributeName"] for part in described["KeySchema"]]
            parts = described.get("GlobalSecondaryIndexes", ())
            self._indexes[table] = tuple(Index.of(part, key) for part in parts)
        return self._indexes[table]

    def _weight_in_index(self, request: Mapping[str, Any], answer: Mapping[str, Any]) -> int:
        """Return the size of the entries that a Query's page of an index read."""
        if {"Select", "ProjectionExpression", "FilterExpression"} & set(request):
            raise LookupError("no rule for a part of what an index holds")
        indexes = {index.name: index for index in self._indexes_of(request["TableName"])}
        index = indexes[request["IndexName"]]
        return sum(item_bytes(index.entry(item)) for item in answer["Items"])

    def _weight_of_page(self, request: Mapping[str, Any], answer: Mapping[str, Any]) -> int:
        """Return the size of all items that a Query's page read, by reading them again in full."""
        page = self._weigher.query(**_in_full(request), ConsistentRead=True)
        if page["Count"] != answer["ScannedCount"]:
            raise LookupError(f"looked at {answer['ScannedCount']} items, then at {page['Count']}")
        return sum(map(item_bytes, page["Items"]))


def _items(operation: str, request: Mapping[str, Any]) -> Iterator[_Item]:
    """Yield the items that a request writes. Raises `LookupError` if no rule is known."""
    if operation in TARGET:
        yield _Item(request["TableName"], _key(request[TARGET[operation]]))
    elif operation == "BatchWriteItem":
        yield from _in_batch(request["RequestItems"])
    elif operation == "TransactWriteItems":
        for entry in request["TransactItems"]:
            [write] = entry.values()
            yield _Item(write["TableName"], _key(write.get("Item") or write["Key"]))
    else:
        raise LookupError(f"no rule for what {operation} consumes")


def _in_batch(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[_Item]:
    for table, requests in tables.items():
        for request in requests:
            [write] = request.values()
            yield _Item(table, _key(write.get("Item") or write["Key"]))


def _unprocessed(answer: Mapping[str, Any]) -> Iterator[_Item]:
    return _in_batch(answer.get("UnprocessedItems", {}))


def _key(attributes: Mapping[str, AttributeValue]) -> Key:
    return Key(attributes["PK"]["S"], attributes["SK"]["S"])


def _is_in_full(request: Mapping[str, Any]) -> bool:
    """Return whether a Query's answer has all that the Query read."""
    return not {"Select", "ProjectionExpression", "FilterExpression"} & set(request)


def _in_full(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request for the same page of a Query, with whole items and without a filter."""
    kept = ("TableName", "KeyConditionExpression", "ExclusiveStartKey", "Limit", "ScanIndexForward")
    used = set(re.findall(r"[#:]\w+", request["KeyConditionExpression"]))
    placeholders = {
        part: {name: value for name, value in request.get(part, {}).items() if name in used}
        for part in ("ExpressionAttributeNames", "ExpressionAttributeValues")
    }
    full = {part: request[part] for part in kept if part in request}
    return full | {part: content for part, content in placeholders.items() if content}
