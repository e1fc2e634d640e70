"""The table on DynamoDB over a scripted client: pages, batches, transactions, and faults."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from types_boto3_dynamodb import DynamoDBClient

from chalicelib.aws.attribute_values import decode_item, encode_item, encode_key
from chalicelib.aws.dynamodb import DynamoTable
from chalicelib.storage.conditions import attr
from chalicelib.storage.errors import StorageError, StorageRefusedError
from chalicelib.storage.items import Item, Key, key_of
from chalicelib.storage.ports import NotStoredError, Table
from chalicelib.storage.writes import Check, ConditionFailedError, Delete, Put, Update, Write
from simulation.aws_clients import FakeClient, Request, cancelled, client_error, script
from simulation.clocks import FakeTime

NAME = "vu-mi"
KEY = Key("USER#octocat", "USER")
WIRE_KEY = {"PK": {"S": "USER#octocat"}, "SK": {"S": "USER"}}
THROTTLED = client_error("ProvisionedThroughputExceededException")
FOUND: Request = {"Item": {**WIRE_KEY, "count": {"N": "7"}}}
OK: Request = {}


def table_on(client: FakeClient, time: FakeTime | None = None, **retry: Any) -> DynamoTable:
    """Return a table that tries up to three times, or as `retry` says, on its own clock."""
    settings = {"attempts": 3, "budget": 60.0} | retry
    return DynamoTable(cast("DynamoDBClient", client), NAME, (time or FakeTime()).retry(**settings))


def view(place: int) -> Item:
    return {"PK": "USER#octocat", "SK": f"VIEW#{place:04}", "ttl": 300}


def views(count: int) -> list[Item]:
    return [view(place) for place in range(count)]


# Any operation: temporary faults are retried, permanent ones are not.

ASKING: dict[str, tuple[Callable[[Table], object], Request]] = {
    "get": (lambda table: table.get(KEY), FOUND),
    "get all": (lambda table: table.get_all([KEY]), OK),
    "query": (lambda table: table.query("USER#octocat", limit=5), {"Items": [], "Count": 0}),
    "count": (lambda table: table.count("USER#octocat", limit=5), {"Count": 0}),
    "put": (lambda table: table.write(Put(view(1))), OK),
    "update": (lambda table: table.write(Update(KEY, add={"count": 1})), OK),
    "delete": (lambda table: table.write(Delete(KEY)), OK),
    "transaction": (lambda table: table.write(Put(view(1)), Put(view(2))), OK),
}
EVERY_OPERATION = pytest.mark.parametrize("operation", ASKING)


@EVERY_OPERATION
@pytest.mark.parametrize("fault", [THROTTLED, client_error("Unheard", 503)])
def test_a_temporary_fault_is_retried_with_longer_and_longer_waits(
    operation: str, fault: Exception
) -> None:
    ask, answer = ASKING[operation]
    client, time = script(fault, fault, answer), FakeTime()
    ask(table_on(client, time))
    assert client.calls == [client.calls[0]] * 3
    assert time.slept == [0.05, 0.1]


# Reading.


def test_an_item_is_read_consistently_and_without_decimals() -> None:
    client = script(FOUND)
    item = table_on(client).get(KEY)
    assert item == {"PK": "USER#octocat", "SK": "USER", "count": 7}
    assert type(item["count"]) is int
    request = {"TableName": NAME, "Key": WIRE_KEY, "ConsistentRead": True}
    assert client.calls == [("get_item", request)]


def pages_of(items: Collection[Item], size: int) -> FakeClient:
    """Answers Query as DynamoDB does: up to `Limit` items a page, within the size of a page."""
    stored = sorted(items, key=key_of)

    def answer(operation: str, request: Request) -> Request:
        assert operation == "query"
        assert request["ConsistentRead"] is True
        assert request["Limit"] >= 1
        start = decode_item(request.get("ExclusiveStartKey", {}))
        left = [item for item in stored if not start or key_of(item) > key_of(start)]
        page = left[: min(size, request["Limit"])]
        counted: Request = {"Count": len(page), "ScannedCount": len(page)}
        if request.get("Select") != "COUNT":
            counted["Items"] = [encode_item(item) for item in page]
        if page and len(page) in (size, request["Limit"]):
            last = key_of(page[-1])
            counted["LastEvaluatedKey"] = encode_item({"PK": last.pk, "SK": last.sk})
        return counted

    return FakeClient(answer)


@given(
    st.integers(min_value=0, max_value=30),
    st.integers(min_value=1, max_value=31),
    st.integers(min_value=1, max_value=31),
)
def test_a_query_and_a_count_read_to_their_limit_whatever_the_size_of_a_page(
    there: int, size: int, limit: int
) -> None:
    client = pages_of(views(there), size)
    assert table_on(client).query("USER#octocat", limit=limit) == views(there)[:limit]
    # Pages of `size` until the limit. If the last page is full, one more shows that it was last.
    assert len(client.calls) <= min(there, limit) // size + 1
    client = pages_of(views(there), size)
    assert table_on(client).count("USER#octocat", limit=limit) == min(there, limit)
    assert all(request["Select"] == "COUNT" for request in client.requests)


def test_an_empty_page_with_a_last_key_is_not_the_end() -> None:
    key = encode_item({"PK": "USER#octocat", "SK": "VIEW#0000"})
    client = script(
        {"Items": [], "Count": 0, "LastEvaluatedKey": key},
        {"Items": [encode_item(view(1))], "Count": 1},
    )
    assert table_on(client).query("USER#octocat", limit=5) == [view(1)]
    assert client.requests[1]["ExclusiveStartKey"] == key
    assert [request["Limit"] for request in client.requests] == [5, 5]


# Transactions.

FOUR: tuple[Write, ...] = (
    Put(view(1), condition=attr("PK").missing()),
    Update(KEY, add={"count": 1}, condition=attr("folded").missing()),
    Delete(Key("USER#octocat", "OWNER")),
    Check(Key("USER#hubot", "USER"), condition=attr("PK").exists()),
)


def test_failed_conditions_have_their_items_by_position() -> None:
    failed = {"Code": "ConditionalCheckFailed", "Item": FOUND["Item"]}
    gone = {"Code": "ConditionalCheckFailed"}
    client = script(cancelled("None", failed, "None", gone))
    with pytest.raises(ConditionFailedError) as raised:
        table_on(client).write(*FOUR)
    assert raised.value.items == {1: {"PK": "USER#octocat", "SK": "USER", "count": 7}, 3: None}
    assert len(client.calls) == 1


@pytest.mark.parametrize(
    "hiding", ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"]
)
def test_a_conflict_or_a_throttle_hides_the_conditions(hiding: str) -> None:
    both = cancelled("ConditionalCheckFailed", hiding, "None", "None")
    client = script(both, cancelled("None", "None", "None", hiding), OK)
    table_on(client).write(*FOUR)
    assert client.calls == [client.calls[0]] * 3


@pytest.mark.parametrize(
    "error",
    [
        cancelled("None", "ValidationError", "None", "None"),
        cancelled("None", "ItemCollectionSizeLimitExceeded", "None", "None"),
        cancelled(),
        client_error("TransactionCanceledException"),
    ],
)
def test_a_permanently_cancelled_transaction_is_refused_immediately(error: Exception) -> None:
    client = script(error)
    with pytest.raises(StorageRefusedError):
        table_on(client).write(*FOUR)
    assert len(client.calls) == 1


# Batches.


class Reads:
    """A client that has its views, except those that `leave` leaves unprocessed in a batch."""

    def __init__(
        self, held: Sequence[Item], leave: Callable[[int, list[Key]], list[Key]] = lambda _, __: []
    ) -> None:
        self.sizes: list[int] = []
        self.client = FakeClient(self._answer)
        self._held = {key_of(item): item for item in held}
        self._leave = leave

    def _answer(self, operation: str, request: Request) -> Request:
        assert operation == "batch_get_item"
        [(name, asked)] = request["RequestItems"].items()
        assert (name, asked["ConsistentRead"]) == (NAME, True)
        keys = [key_of(decode_item(key)) for key in asked["Keys"]]
        assert len(set(keys)) == len(keys) <= 100
        left = self._leave(len(self.sizes), keys)
        self.sizes.append(len(keys))
        read = [key for key in keys if key not in left]
        # In another order, because DynamoDB guarantees none.
        items = [encode_item(self._held[key]) for key in reversed(read) if key in self._held]
        again = {"Keys": [encode_key(key) for key in left], "ConsistentRead": True}
        return {"Responses": {NAME: items}, "UnprocessedKeys": {NAME: again} if left else {}}


def test_only_unprocessed_keys_are_requested_again() -> None:
    reads, time = Reads(views(6), leave=lambda batch, keys: keys[batch + 1 :]), FakeTime()
    assert table_on(reads.client, time).get_all([key_of(one) for one in views(6)]) == views(6)
    assert reads.sizes == [6, 5, 3]
    assert time.slept == [0.05, 0.1]


class Batches:
    """A client that stores its items, except those that `leave` or `refuse` name."""

    def __init__(
        self,
        leave: Callable[[int, list[Item]], list[Item]] = lambda _batch, _items: [],
        refuse: Callable[[Item], StorageError | Exception | None] = lambda _item: None,
    ) -> None:
        self.stored: list[Item] = []
        self.sizes: list[int] = []
        self.client = FakeClient(self._answer)
        self._leave = leave
        self._refuse = refuse

    def _answer(self, operation: str, request: Request) -> Request:
        if operation == "put_item":
            self._store([decode_item(request["Item"])])
            return {}
        assert operation == "batch_write_item"
        requests = request["RequestItems"][NAME]
        items = [decode_item(entry["PutRequest"]["Item"]) for entry in requests]
        assert len({key_of(item) for item in items}) == len(items) <= 25
        left = self._leave(len(self.sizes), items)
        self.sizes.append(len(items))
        self._store([item for item in items if item not in left])
        again = [{"PutRequest": {"Item": encode_item(item)}} for item in left]
        return {"UnprocessedItems": {NAME: again} if again else {}}

    def _store(self, items: list[Item]) -> None:
        for item in items:
            error = self._refuse(item)
            if error is not None:
                raise error
        self.stored += items


def test_of_two_items_with_one_key_only_the_later_is_sent() -> None:
    batches = Batches()
    earlier, later = view(1) | {"ttl": 300}, view(1) | {"ttl": 600}
    table_on(batches.client).put_all([earlier, view(2), later])
    assert batches.sizes == [2]
    assert sorted(batches.stored, key=key_of) == [later, view(2)]


def test_items_left_unprocessed_are_sent_again_after_a_wait_until_they_are_stored() -> None:
    batches, time = Batches(leave=lambda batch, items: items[batch + 1 :]), FakeTime()
    # 6 items: 1 is stored, then 2 of 5, then all 3: the third batch leaves items[3:], none.
    table_on(batches.client, time).put_all(views(6))
    assert batches.sizes == [6, 5, 3]
    assert batches.stored == views(6)
    assert time.slept == [0.05, 0.1]


def test_only_a_throttled_batch_is_sent_again() -> None:
    client = script(THROTTLED, OK, OK)
    time = FakeTime()
    table_on(client, time).put_all(views(30))
    sizes = [len(request["RequestItems"][NAME]) for request in client.requests]
    assert sizes == [25, 5, 25]
    assert client.requests[0] == client.requests[2]
    assert time.slept == [0.05]


@pytest.mark.parametrize("place", [0, 29])
def test_in_a_refused_batch_only_the_invalid_item_is_not_stored(place: int) -> None:
    refusal = client_error("ValidationException")
    blamed = view(place)
    batches = Batches(refuse=lambda item: refusal if item == blamed else None)
    with pytest.raises(NotStoredError, match="ValidationException") as raised:
        table_on(batches.client).put_all(views(30))
    assert raised.value.items == [blamed]
    others = [item for item in views(30) if item != blamed]
    assert sorted(batches.stored, key=key_of) == others
    # One of the two batches was refused. Only its items were put one by one.
    singles = 25 if place < 25 else 5
    assert batches.client.operations.count("put_item") == singles
    assert batches.client.operations.count("batch_write_item") == 2


def test_an_item_throttled_while_put_alone_is_put_again() -> None:
    client = script(client_error("ValidationException"), OK, THROTTLED, THROTTLED, OK)
    table_on(client).put_all(views(3))
    assert client.operations == ["batch_write_item", *["put_item"] * 3, "batch_write_item"]


@given(st.integers(min_value=0, max_value=60), st.sets(st.integers(0, 59)), st.randoms())
def test_every_item_is_either_stored_or_named(count: int, refused: set[int], chance: Any) -> None:
    wrong = [view(place) for place in refused]
    refusal = client_error("ValidationException")
    batches = Batches(
        leave=lambda _, items: [item for item in items if chance.random() < 0.5],
        refuse=lambda item: refusal if item in wrong else None,
    )
    missing: list[Item] = []
    try:
        table_on(batches.client).put_all(views(count))
    except NotStoredError as failure:
        missing = failure.items
    assert {key_of(i) for i in missing} == {key_of(i) for i in views(count)} - {
        key_of(i) for i in batches.stored
    }
    assert len(missing) == len({key_of(item) for item in missing})
    assert all(item in missing for item in views(count) if item in wrong)
