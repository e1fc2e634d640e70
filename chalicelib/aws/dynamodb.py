"""The `Table` on DynamoDB, over a boto3 client.

The client's own retries must be off (`resources`). Only `Retry` decides how long a call may take,
and it also retries two failures that the client does not: items left unprocessed in a batch, and
transactions cancelled by a conflict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from chalicelib.aws.attribute_values import decode_item, encode, encode_item, encode_key
from chalicelib.aws.json_client import TRANSIENT, code_of, meaning, translate_errors
from chalicelib.lazy import lazy
from chalicelib.storage.conditions import Combination, Comparison, Condition, Presence
from chalicelib.storage.errors import StorageError, UnavailableError
from chalicelib.storage.items import Due, Item, Key, Value, check_item, key_of, number
from chalicelib.storage.ports import MAX_DUE, NotStoredError, items_per_read_unit
from chalicelib.storage.retry import Retry
from chalicelib.storage.writes import (
    Check,
    ConditionFailedError,
    Delete,
    Put,
    Update,
    Write,
    check_transaction,
)
from chalicelib.units import Milliseconds

if TYPE_CHECKING:
    from botocore import exceptions
    from botocore.exceptions import ClientError
    from types_boto3_dynamodb import DynamoDBClient
else:
    exceptions = lazy("botocore.exceptions")

Part = TypeVar("Part")

BATCH_ITEMS = 25
"""Items in one BatchWriteItem (DynamoDB API reference)."""
BATCH_KEYS = 100
"""Keys in one BatchGetItem (DynamoDB API reference)."""
UNPROCESSED = "left unprocessed by DynamoDB"
INDEX = "due"
CONSISTENT = {"ConsistentRead": True}
"""Indexes don't support it (DynamoDB API reference, Query)."""
OLD_ITEM = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
"""The error of a failed condition has the stored item, so that it is not read again."""
ENTRIES = {Check: "ConditionCheck", Put: "Put", Update: "Update", Delete: "Delete"}
"""The names of writes in `TransactItems`."""


class DynamoTable:
    """A `ports.Table` on one DynamoDB table."""

    def __init__(self, client: DynamoDBClient, name: str, retry: Retry | None = None) -> None:
        self._client = client
        self._name = name
        self._retry = retry or Retry()

    def get(self, key: Key) -> Item | None:
        response = self._ask("get_item", Key=encode_key(key), ConsistentRead=True)
        return decode_item(response["Item"]) if "Item" in response else None

    def get_all(self, keys: Sequence[Key]) -> list[Item]:
        found: dict[Key, Item] = {}
        for chunk in _chunks(list(dict.fromkeys(keys)), BATCH_KEYS):
            found |= self._get_batch(chunk)
        return [found[key] for key in keys if key in found]

    def query(  # noqa: PLR0913  the parts of a query
        self,
        partition: str,
        *,
        limit: int,
        first: str = "",
        last: str = "",
        attributes: Sequence[str] = (),
        descending: bool = False,
    ) -> list[Item]:
        request = _between(partition, first, last) | CONSISTENT
        if descending:
            request["ScanIndexForward"] = False
        if attributes:
            names = {f"#p{place}": name for place, name in enumerate(attributes)}
            request["ProjectionExpression"] = ", ".join(names)
            request["ExpressionAttributeNames"] = names
        pages = self._pages(request, limit)
        return [decode_item(item) for page in pages for item in page["Items"]]

    def page_items(self, first: int, other: int) -> int:
        return items_per_read_unit(first, other)

    def count(self, partition: str, *, limit: int, first: str = "", last: str = "") -> int:
        request = _between(partition, first, last) | {"Select": "COUNT"} | CONSISTENT
        return sum(page["Count"] for page in self._pages(request, limit))

    def query_due(
        self,
        batch: str,
        *,
        limit: int,
        first: Milliseconds = 0,
        last: Milliseconds = MAX_DUE,
        after: Due | None = None,
    ) -> list[Due]:
        values: Item = {":batch": batch, ":first": first, ":last": last}
        request: dict[str, Any] = {
            "IndexName": INDEX,
            "KeyConditionExpression": "#batch = :batch AND #due BETWEEN :first AND :last",
            # DynamoDB reserves some names of attributes.
            "ExpressionAttributeNames": {"#batch": "batch", "#due": "due"},
            "ExpressionAttributeValues": encode_item(values),
        }
        if after is not None:
            place = {"batch": encode(batch), "due": encode(after.due)}
            request["ExclusiveStartKey"] = encode_key(after.key) | place
        pages = self._pages(request, limit)
        items = [decode_item(item) for page in pages for item in page["Items"]]
        return [Due(number(item, "due"), key_of(item)) for item in items]

    def write(self, *writes: Write) -> None:
        check_transaction(writes)
        match writes:
            case [Put() | Update() | Delete() as write]:
                self._retry.call(lambda: self._write_single(write))
            case _:
                self._retry.call(lambda: self._transact(writes))

    def put_all(self, items: Sequence[Item]) -> None:
        for item in items:
            check_item(item)
        waiting = list({key_of(item): item for item in items}.values())
        refused: list[Item] = []
        reason = UNPROCESSED
        for _ in self._retry.rounds():
            left: list[Item] = []
            for chunk in _chunks(waiting, BATCH_ITEMS):
                try:
                    left += self._put_batch(chunk)
                except UnavailableError as unavailable:
                    left, reason = left + chunk, str(unavailable)
                except StorageError as refusal:
                    refused += self._put_singly(chunk, left)
                    reason = str(refusal)
            waiting = left
            if not waiting:
                break
        if refused or waiting:
            raise NotStoredError(refused + waiting, reason)

    def _get_batch(self, keys: Sequence[Key]) -> dict[Key, Item]:
        """Return the items under up to 100 distinct keys."""
        found: dict[Key, Item] = {}
        left: Any = [encode_key(key) for key in keys]

        def once() -> None:
            nonlocal left
            asked: Any = {self._name: {"Keys": left, **CONSISTENT}}
            with translate_errors():
                response = self._client.batch_get_item(RequestItems=asked)
            items = map(decode_item, response.get("Responses", {}).get(self._name, []))
            found.update((key_of(item), item) for item in items)
            unread: Any = response.get("UnprocessedKeys", {}).get(self._name)
            if unread:
                left = unread["Keys"]
                raise UnavailableError(UNPROCESSED)

        self._retry.call(once)
        return found

    def _put_batch(self, items: Sequence[Item]) -> list[Item]:
        """Store up to 25 items; return those that DynamoDB left unprocessed."""
        requests = [{"PutRequest": {"Item": encode_item(item)}} for item in items]
        with translate_errors():
            response = self._client.batch_write_item(
                RequestItems={self._name: requests}  # type: ignore[dict-item]
            )
        left = response.get("UnprocessedItems", {}).get(self._name, [])
        return [decode_item(request["PutRequest"]["Item"]) for request in left]

    def _put_singly(self, items: Sequence[Item], left: list[Item]) -> list[Item]:
        """Store the items of a refused batch one by one; return those that are refused.

        Appends to `left` those to try again.
        """
        refused = []
        for item in items:
            try:
                self._write_single(Put(item))
            except UnavailableError:
                left.append(item)
            except StorageError:
                refused.append(item)
        return refused

    @translate_errors()
    def _write_single(self, write: Put | Update | Delete) -> None:
        operation = {Put: "put_item", Update: "update_item", Delete: "delete_item"}[type(write)]
        try:
            self._send(operation, _arguments(write))
        except exceptions.ClientError as error:
            if code_of(error) == "ConditionalCheckFailedException":
                raise ConditionFailedError({0: _item_in(error.response)}) from error
            raise

    @translate_errors()
    def _transact(self, writes: Sequence[Write]) -> None:
        items: Any = [
            {ENTRIES[type(write)]: {"TableName": self._name, **_arguments(write)}}
            for write in writes
        ]
        try:
            self._client.transact_write_items(TransactItems=items)
        except exceptions.ClientError as error:
            if code_of(error) == "TransactionCanceledException":
                raise _cancellation(error) from error
            raise

    def _pages(self, request: Mapping[str, Any], limit: int) -> Iterator[dict[str, Any]]:
        """Yield the pages of a Query, each of at most 1 MB, until `limit` items are read."""
        while limit > 0:
            page = self._ask("query", **request, Limit=limit)
            yield page
            limit -= page["Count"]
            if "LastEvaluatedKey" not in page:
                return
            request = {**request, "ExclusiveStartKey": page["LastEvaluatedKey"]}

    def _ask(self, operation: str, **request: Any) -> dict[str, Any]:
        def once() -> dict[str, Any]:
            with translate_errors():
                return self._send(operation, request)

        return self._retry.call(once)

    def _send(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        response: dict[str, Any] = getattr(self._client, operation)(TableName=self._name, **request)
        return response


def _cancellation(error: ClientError) -> Exception:
    """Return the error of a cancelled transaction, by DynamoDB's reason for each write.

    After a conflict or a throttle, the results of the conditions are unknown, so it is transient.
    """
    reasons: Any = error.response.get("CancellationReasons", [])
    if any(reason.get("Code") in TRANSIENT for reason in reasons):
        return UnavailableError(str(error))
    failed = {
        position: _item_in(reason)
        for position, reason in enumerate(reasons)
        if reason.get("Code") == "ConditionalCheckFailed"
    }
    return ConditionFailedError(failed) if failed else meaning(error)


def _item_in(response: Mapping[str, Any]) -> Item | None:
    return decode_item(response["Item"]) if response.get("Item") else None


def _between(partition: str, first: str, last: str) -> dict[str, Any]:
    condition, values = "PK = :pk", {":pk": encode(partition)}
    if first and last:
        condition += " AND SK BETWEEN :first AND :last"
    elif first:
        condition += " AND SK >= :first"
    elif last:
        condition += " AND SK <= :last"
    values |= {
        f":{name}": encode(text) for name, text in (("first", first), ("last", last)) if text
    }
    return {"KeyConditionExpression": condition, "ExpressionAttributeValues": values}


def _chunks(parts: Sequence[Part], size: int) -> Iterator[list[Part]]:
    for start in range(0, len(parts), size):
        yield list(parts[start : start + size])


def _arguments(write: Write) -> dict[str, Any]:
    expression = _Expression()
    arguments: dict[str, Any] = {}
    match write:
        case Put():
            arguments["Item"] = encode_item(write.item)
        case Update():
            arguments["Key"] = encode_key(write.key)
            arguments["UpdateExpression"] = expression.update(write)
        case Delete() | Check():
            arguments["Key"] = encode_key(write.key)
    if write.condition is not None:
        arguments["ConditionExpression"] = expression.condition(write.condition)
        arguments |= OLD_ITEM
    return arguments | expression.placeholders()


@dataclass
class _Expression:
    """The placeholders of one request."""

    names: dict[str, str] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)

    def update(self, write: Update) -> str:
        sets = [self._assign("{0} = {1}", *entry) for entry in write.values.items()]
        sets += [
            self._assign("{0} = if_not_exists({0}, {1})", *entry)
            for entry in write.defaults.items()
        ]
        adds = [self._assign("{0} {1}", *entry) for entry in write.add.items()]
        clauses = {"SET": sets, "ADD": adds, "REMOVE": [self._name(name) for name in write.remove]}
        return " ".join(f"{word} {', '.join(parts)}" for word, parts in clauses.items() if parts)

    def condition(self, condition: Condition) -> str:
        match condition:
            case Comparison(name, operator, value):
                return f"{self._name(name)} {operator} {self._value(value)}"
            case Presence(name, exists):
                function = "attribute_exists" if exists else "attribute_not_exists"
                return f"{function}({self._name(name)})"
            case Combination(left, operator, right):
                return f"({self.condition(left)} {operator} {self.condition(right)})"

    def placeholders(self) -> dict[str, Any]:
        """Return the maps of names and values that are not empty: DynamoDB refuses empty ones."""
        maps = {"ExpressionAttributeNames": self.names, "ExpressionAttributeValues": self.values}
        return {name: content for name, content in maps.items() if content}

    def _assign(self, template: str, name: str, value: Value) -> str:
        return template.format(self._name(name), self._value(value))

    def _name(self, name: str) -> str:
        placeholder = f"#n{len(self.names)}"
        self.names[placeholder] = name
        return placeholder

    def _value(self, value: Value) -> str:
        placeholder = f":v{len(self.values)}"
        self.values[placeholder] = encode(value)
        return placeholder
