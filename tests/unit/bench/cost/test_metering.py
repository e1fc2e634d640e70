"""The units of requests to DynamoDB, by its published rules, with the arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import boto3
import pytest
from boto3.dynamodb import conditions
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError, EndpointConnectionError
from hypothesis import given
from hypothesis import strategies as st
from moto import mock_aws

from bench.cost.metering import (
    Index,
    Meter,
    Request,
    Written,
    item_bytes,
    read_units,
    write_units,
)
from chalicelib.aws.attribute_values import encode_item, encode_key
from chalicelib.aws.clients import aws_client
from chalicelib.aws.dynamodb import DynamoTable
from chalicelib.storage.conditions import attr
from chalicelib.storage.items import Item, Key, Value, key_of
from chalicelib.storage.writes import Check, ConditionFailed, Delete, Put, Update
from simulation.aws_table import create_table

TABLE = "vu-mi"
KEYS_BYTES = 10
"""The bytes of every item's keys: the names PK and SK are 2 + 2, and "USER#a" is 6."""


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ("", 0),
        ("octocat", 7),
        ("é", 2),  # UTF-8: two bytes
        ("🦆", 4),
        (0, 1),  # no digit: 0 + 1
        (7, 2),  # 1 digit: 1 + 1
        (42, 2),  # 2 digits: 1 + 1
        (123, 3),  # 3 digits: 2 + 1
        (-123, 3),
        (1_767_225_901, 6),  # 10 digits: 5 + 1
        (1_767_225_900, 5),  # the zeros at its end do not count, 8 digits: 4 + 1
        (10**37, 2),
        (10**38 - 1, 20),  # 38 digits: 19 + 1
        ([], 3),
        ({}, 3),
        (["ab", 5], 3 + (1 + 2) + (1 + 2)),
        ({"k": "ab", "long": 5}, 3 + (1 + 1 + 2) + (1 + 4 + 2)),
        ([["x"]], 3 + 1 + (3 + 1 + 1)),
    ],
)
def test_a_value_is_as_large_as_documented(value: Value, size: int) -> None:
    """The attribute's name, "é", is 2 bytes more."""
    assert item_bytes(encode_item({"é": value})) == 2 + size


def test_a_view_is_as_large_as_the_sum_of_its_names_and_values() -> None:
    """PK 2 + 12, SK 2 + 5 + 26, ttl 3 + 5: 55 bytes, so that 74 views fit into 4 KB."""
    view: Item = {"PK": "USER#octocat", "SK": f"VIEW#{'0' * 26}", "ttl": 1_767_225_900}
    assert item_bytes(encode_item(view)) == 55


def test_an_empty_item_has_no_bytes() -> None:
    assert item_bytes({}) == 0


@pytest.mark.parametrize("value", [{"BOOL": True}, {"SS": ["a"]}, {"B": "AAAA"}])
def test_an_unsupported_value_is_an_error(value: dict[str, Any]) -> None:
    with pytest.raises(LookupError, match="no rule"):
        item_bytes({"a": value})


@pytest.mark.parametrize(
    ("size", "units"),
    [(0, 1), (1, 1), (4_095, 1), (4_096, 1), (4_097, 2), (8_192, 2), (8_193, 3), (1_048_576, 256)],
)
def test_a_read_costs_a_unit_for_each_started_4_kb(size: int, units: int) -> None:
    assert read_units(size, consistent=True) == units
    assert read_units(size, consistent=False) == units / 2


@pytest.mark.parametrize(
    ("size", "units"), [(0, 1), (1, 1), (1_023, 1), (1_024, 1), (1_025, 2), (409_600, 400)]
)
def test_a_write_costs_a_unit_for_each_started_kb(size: int, units: int) -> None:
    assert write_units(0, size) == units
    assert write_units(size, 0) == units
    assert write_units(size, size) == units


@given(st.integers(min_value=0, max_value=409_600), st.integers(min_value=0, max_value=409_600))
def test_a_write_costs_as_much_as_the_larger_of_the_old_and_new_item(
    before: int, after: int
) -> None:
    larger = max(before, after)
    assert write_units(before, after) == write_units(larger, larger)


@dataclass
class Metered:
    """A table on moto with a meter."""

    meter: Meter
    client: Any
    weigher: Any
    table: DynamoTable = field(init=False)

    def __post_init__(self) -> None:
        self.table = DynamoTable(self.client, TABLE)

    def request(self, action: Callable[[], object]) -> Request:
        """Return the one request that an action sends."""
        self.meter.take()
        action()
        [request] = self.meter.take()
        return request

    @contextmanager
    def answering(self, event: str, answer: Callable[..., object]) -> Iterator[None]:
        """Answer the requests of the client in place of moto."""
        events = self.client.meta.events
        events.register(event, answer)
        try:
            yield
        finally:
            events.unregister(event, answer)

    def hold(self, *items: Item) -> None:
        """Store items without counting the requests."""
        DynamoTable(self.weigher, TABLE).put_all(items)


@pytest.fixture(scope="module")
def clients() -> Iterator[tuple[Any, Any]]:
    with mock_aws():
        yield aws_client("dynamodb"), aws_client("dynamodb")


@pytest.fixture
def dynamodb(clients: tuple[Any, Any]) -> Iterator[Metered]:
    """Make a table that a test has to itself."""
    weigher, client = clients
    create_table(weigher, TABLE)
    meter = Meter(weigher)
    with meter.watching(client):
        yield Metered(meter, client, weigher)
    weigher.delete_table(TableName=TABLE)


def item(sk: str, size: int) -> Item:
    """Return an item of a size: PK 2 + 6, SK 2 + its text, x 1 + the remaining bytes."""
    return {"PK": "USER#a", "SK": sk, "x": "x" * (size - KEYS_BYTES - len(sk) - 1)}


def test_the_items_of_these_tests_are_of_their_size() -> None:
    assert item_bytes(encode_item(item("USER", 4_097))) == 4_097


@pytest.mark.parametrize(("size", "units"), [(40, 1), (4_096, 1), (4_097, 2)])
def test_a_get_costs_by_the_size_of_the_item(dynamodb: Metered, size: int, units: int) -> None:
    dynamodb.hold(item("USER", size))
    got = dynamodb.request(lambda: dynamodb.table.get(Key("USER#a", "USER")))
    assert (got.operation, got.read_units, got.written) == ("GetItem", units, ())


def test_a_get_of_a_missing_item_costs_a_unit(dynamodb: Metered) -> None:
    assert dynamodb.request(lambda: dynamodb.table.get(Key("no", "no"))).read_units == 1


def test_an_eventually_consistent_or_projected_get_costs_by_the_whole_item(
    dynamodb: Metered,
) -> None:
    """4,097 bytes are 2 units, and half of that."""
    dynamodb.hold(item("USER", 4_097))
    key = {"PK": {"S": "USER#a"}, "SK": {"S": "USER"}}
    got = dynamodb.request(
        lambda: dynamodb.client.get_item(TableName=TABLE, Key=key, ProjectionExpression="SK")
    )
    assert got.read_units == 1


def test_a_query_adds_up_its_items_and_rounds_once(dynamodb: Metered) -> None:
    """Eight items of 512 bytes are 4,096: one unit. A ninth makes it two."""
    dynamodb.hold(*(item(f"VIEW#{n}", 512) for n in range(9)))
    table = dynamodb.table
    assert dynamodb.request(lambda: table.query("USER#a", limit=8)).read_units == 1
    assert dynamodb.request(lambda: table.query("USER#a", limit=9)).read_units == 2


def test_a_count_and_a_projection_cost_as_much_as_whole_items(dynamodb: Metered) -> None:
    """Five items of 2,000 bytes: 10,000 bytes begin three times 4 KB."""
    dynamodb.hold(*(item(f"VIEW#{n}", 2_000) for n in range(5)))
    table = dynamodb.table
    asked: list[Callable[[], object]] = [
        lambda: table.query("USER#a", limit=9),
        lambda: table.query("USER#a", limit=9, first="USER", attributes=("SK", "count")),
        lambda: table.count("USER#a", limit=9),
    ]
    assert [dynamodb.request(ask).read_units for ask in asked] == [3, 3, 3]


def test_a_query_costs_by_the_items_before_its_filter(
    dynamodb: Metered,
) -> None:
    """It looks at three items of 2,000 bytes and returns one: 6,000 bytes start two times 4 KB."""
    dynamodb.hold(*(item(f"VIEW#{n}", 2_000) for n in range(3)))
    asked = dynamodb.request(
        lambda: dynamodb.client.query(
            TableName=TABLE,
            KeyConditionExpression="PK = :pk",
            FilterExpression="#sk = :sk",
            ExpressionAttributeNames={"#sk": "SK"},
            ExpressionAttributeValues={":pk": {"S": "USER#a"}, ":sk": {"S": "VIEW#1"}},
            ConsistentRead=True,
        )
    )
    assert asked.read_units == 2


def test_each_page_of_a_query_is_rounded_separately(dynamodb: Metered) -> None:
    """Two pages of 3 x 2,000 bytes cost 2 + 2 units, but one of 12,000 would cost 3."""
    dynamodb.hold(*(item(f"VIEW#{n}", 2_000) for n in range(6)))
    dynamodb.table.query("USER#a", limit=3)
    dynamodb.table.count("USER#a", first="VIEW#3", limit=9)
    pages = dynamodb.meter.take()
    assert [page.read_units for page in pages] == [2, 2]


def test_a_page_costs_by_the_items_from_its_start(dynamodb: Metered) -> None:
    """After three items of 100 bytes come three of 4,000: 12,000 bytes start three times 4 KB."""
    dynamodb.hold(*(item(f"VIEW#{n}", 100 if n < 3 else 4_000) for n in range(6)))
    second = dynamodb.request(
        lambda: dynamodb.client.query(
            TableName=TABLE,
            KeyConditionExpression="PK = :pk",
            ProjectionExpression="SK",
            ExpressionAttributeValues={":pk": {"S": "USER#a"}},
            ExclusiveStartKey={"PK": {"S": "USER#a"}, "SK": {"S": "VIEW#2"}},
            Limit=3,
            ConsistentRead=True,
        )
    )
    assert second.read_units == 3


def test_a_query_that_finds_nothing_costs_a_unit(dynamodb: Metered) -> None:
    assert dynamodb.request(lambda: dynamodb.table.query("USER#a", limit=9)).read_units == 1


def test_the_table_of_a_boto3_resource_is_metered_too(dynamodb: Metered) -> None:
    """The original used it: values in Python's types, and boto3's own placeholders."""
    dynamodb.hold(*(item(f"VIEW#{n}", 2_000) for n in range(3)))
    table = boto3.resource("dynamodb").Table(TABLE)
    condition = conditions.Key("PK").eq("USER#a")
    with dynamodb.meter.watching(table.meta.client):
        asked = dynamodb.request(lambda: table.query(KeyConditionExpression=condition))
        stored = dynamodb.request(lambda: table.put_item(Item={"PK": "p", "SK": "s", "count": 1}))
    assert asked.read_units == 1  # 6,000 bytes, 2 units, and half of that
    assert stored.write_units == 1


@pytest.mark.parametrize(("size", "units"), [(40, 1), (1_024, 1), (1_025, 2), (5_000, 5)])
def test_a_put_costs_by_the_size_of_the_item(dynamodb: Metered, size: int, units: int) -> None:
    put = dynamodb.request(lambda: dynamodb.table.write(Put(item("USER", size))))
    assert (put.operation, put.read_units, put.write_units) == ("PutItem", 0, units)
    [written] = put.written
    assert written.key == Key("USER#a", "USER")


def test_a_put_that_replaces_a_larger_item_costs_by_the_larger_one(dynamodb: Metered) -> None:
    dynamodb.hold(item("USER", 3_000))
    assert dynamodb.request(lambda: dynamodb.table.write(Put(item("USER", 40)))).write_units == 3


def test_an_update_costs_by_the_whole_item_however_little_it_changes(dynamodb: Metered) -> None:
    dynamodb.hold(item("USER", 2_000))
    change = Update(Key("USER#a", "USER"), add={"count": 1})
    assert dynamodb.request(lambda: dynamodb.table.write(change)).write_units == 2


def test_an_update_costs_by_the_larger_of_before_and_after(dynamodb: Metered) -> None:
    """1,020 bytes and `count`, 5 + 2, are 1,027: two units. Its removal costs two units too."""
    dynamodb.hold(item("USER", 1_020))
    key = Key("USER#a", "USER")
    changes = [Update(key, add={"count": 1}), Update(key, remove=("count",))]
    for change in changes:
        assert dynamodb.request(lambda: dynamodb.table.write(change)).write_units == 2  # noqa: B023


def test_an_update_that_makes_an_item_costs_by_the_new_item(dynamodb: Metered) -> None:
    change = Update(Key("USER#a", "USER"), values={"x": "x" * 1_500})
    assert dynamodb.request(lambda: dynamodb.table.write(change)).write_units == 2


def test_a_delete_costs_by_the_removed_item(dynamodb: Metered) -> None:
    dynamodb.hold(item("USER", 2_000))
    delete = Delete(Key("USER#a", "USER"))
    assert dynamodb.request(lambda: dynamodb.table.write(delete)).write_units == 2
    assert dynamodb.request(lambda: dynamodb.table.write(delete)).write_units == 1


@pytest.mark.parametrize(("size", "units"), [(0, 1), (40, 1), (2_000, 2)])
def test_a_failed_condition_costs_by_the_stored_item(
    dynamodb: Metered, size: int, units: int
) -> None:
    if size:
        dynamodb.hold(item("USER", size))
    write = Update(Key("USER#a", "USER"), add={"count": 1}, condition=attr("y").exists())

    def refused() -> None:
        with pytest.raises(ConditionFailed):
            dynamodb.table.write(write)

    assert dynamodb.request(refused).write_units == units


def test_a_batch_costs_by_each_of_its_items(dynamodb: Metered) -> None:
    """100 bytes, 1,024 and 1,025: 1 + 1 + 2 units; together they would start three times 1 KB."""
    items = [item(f"VIEW#{n}", size) for n, size in enumerate((100, 1_024, 1_025))]
    batch = dynamodb.request(lambda: dynamodb.table.put_all(items))
    assert batch.operation == "BatchWriteItem"
    assert [written.units for written in batch.written] == [1, 1, 2]
    assert [written.key.sk for written in batch.written] == ["VIEW#0", "VIEW#1", "VIEW#2"]


def test_a_batch_of_reads_costs_by_each_of_its_items(dynamodb: Metered) -> None:
    """100 bytes, 4,096, 4,097 and none.

    1 + 1 + 2 + 1; together they would start three times 4 KB.
    """
    items = [item(f"VIEW#{n}", size) for n, size in enumerate((100, 4_096, 4_097))]
    dynamodb.hold(*items)
    keys = [*map(key_of, items), Key("USER#a", "none")]
    batch = dynamodb.request(lambda: dynamodb.table.get_all(keys))
    assert (batch.operation, batch.read_units, batch.written) == ("BatchGetItem", 5, ())
    stale = {TABLE: {"Keys": [encode_key(key) for key in keys]}}
    batch = dynamodb.request(lambda: dynamodb.client.batch_get_item(RequestItems=stale))
    assert batch.read_units == 2.5


def test_keys_that_a_batch_leaves_unprocessed_cost_nothing(dynamodb: Metered) -> None:
    keys = [encode_key(Key("USER#a", sk)) for sk in ("VIEW#0", "VIEW#1", "VIEW#2")]
    asked = {TABLE: {"Keys": keys, "ConsistentRead": True}}

    def leave_the_last(**_: object) -> tuple[AWSResponse, dict[str, Any]]:
        left = {TABLE: {"Keys": keys[2:], "ConsistentRead": True}}
        return AWSResponse("", 200, {}, None), {"UnprocessedKeys": left}  # type: ignore[arg-type]

    with dynamodb.answering("before-call.dynamodb", leave_the_last):
        batch = dynamodb.request(lambda: dynamodb.client.batch_get_item(RequestItems=asked))
    assert batch.read_units == 2


def test_items_that_a_batch_leaves_unprocessed_cost_nothing(dynamodb: Metered) -> None:
    """Two items are put; the response returns the second one as unprocessed."""
    put = [{"PutRequest": {"Item": encode_item(item(sk, 40))}} for sk in ("VIEW#0", "VIEW#1")]

    def leave_the_second(**_: object) -> tuple[AWSResponse, dict[str, Any]]:
        return AWSResponse("", 200, {}, None), {"UnprocessedItems": {TABLE: put[1:]}}  # type: ignore[arg-type]

    requests = {TABLE: put}
    with dynamodb.answering("before-call.dynamodb", leave_the_second):
        batch = dynamodb.request(lambda: dynamodb.client.batch_write_item(RequestItems=requests))
    assert [written.key.sk for written in batch.written] == ["VIEW#0"]


def test_a_transaction_costs_double(dynamodb: Metered) -> None:
    """Put 1,025 bytes, update 40, check 2,000: 2 x 2 + 2 x 1 + 2 x 2 = 10."""
    dynamodb.hold(item("b", 40), item("c", 2_000))
    writes = (
        Put(item("a", 1_025)),
        Update(Key("USER#a", "b"), add={"n": 1}),
        Check(Key("USER#a", "c"), attr("x").exists()),
    )
    transaction = dynamodb.request(lambda: dynamodb.table.write(*writes))
    assert transaction.operation == "TransactWriteItems"
    assert [written.units for written in transaction.written] == [4, 2, 4]


def test_a_cancelled_transaction_costs_double_too(dynamodb: Metered) -> None:
    writes = (
        Put(item("a", 1_025)),
        Check(Key("USER#a", "c"), attr("x").exists()),
    )

    def cancelled() -> None:
        with pytest.raises(ConditionFailed):
            dynamodb.table.write(*writes)

    assert [written.units for written in dynamodb.request(cancelled).written] == [2, 2]


def test_an_invalid_request_costs_nothing(dynamodb: Metered) -> None:
    key = {"PK": {"S": "USER#a"}, "SK": {"S": "USER"}}

    def refused() -> None:
        with pytest.raises(ClientError, match="ValidationException"):
            dynamodb.client.update_item(TableName=TABLE, Key=key, UpdateExpression="SET no sense")

    assert dynamodb.request(refused) == Request("UpdateItem")


def test_an_operation_without_a_rule_is_an_error(dynamodb: Metered) -> None:
    with pytest.raises(LookupError, match="no rule for what Scan consumes"):
        dynamodb.client.scan(TableName=TABLE)


# ---- the index `due`: it has only keys, and only of items with both parts of its key

ENTRY: Item = {"PK": "USER#a", "SK": "E", "batch": "ACTIVE#0", "due": 1_767_225_901_234}
"""PK 2 + 6, SK 2 + 1, batch 5 + 8, due 3 + 8 (13 digits: 7 + 1): 35 bytes in the index."""
IN_THE_INDEX = Key("USER#a", "E")


def test_an_item_that_enters_the_index_costs_a_unit_there(dynamodb: Metered) -> None:
    """The item is 5,000 bytes larger: 5 units in the table, 1 in the index of keys."""
    put = dynamodb.request(lambda: dynamodb.table.write(Put({**ENTRY, "x": "x" * 5_000})))
    assert put.written == (Written(IN_THE_INDEX, 5, 1),)
    assert put.write_units == 6


@pytest.mark.parametrize("missing", ["batch", "due"])
def test_an_item_without_an_index_entry_costs_nothing_there(
    dynamodb: Metered, missing: str
) -> None:
    item = {name: value for name, value in ENTRY.items() if name != missing}
    put = dynamodb.request(lambda: dynamodb.table.write(Put(item)))
    assert put.written == (Written(IN_THE_INDEX, 1, 0),)


@pytest.mark.parametrize("value", [{"batch": "DONE#0"}, {"due": 7}, {"batch": "DONE#0", "due": 7}])
def test_another_key_in_the_index_costs_a_delete_and_a_put(dynamodb: Metered, value: Item) -> None:
    dynamodb.hold(ENTRY)
    moved = dynamodb.request(lambda: dynamodb.table.write(Update(IN_THE_INDEX, values=value)))
    assert moved.written == (Written(IN_THE_INDEX, 1, 2),)


@pytest.mark.parametrize("value", [{"x": "new"}, {"due": ENTRY["due"], "batch": ENTRY["batch"]}])
def test_an_entry_that_stays_as_it_is_costs_nothing(dynamodb: Metered, value: Item) -> None:
    dynamodb.hold(ENTRY)
    changed = dynamodb.request(lambda: dynamodb.table.write(Update(IN_THE_INDEX, values=value)))
    assert changed.written == (Written(IN_THE_INDEX, 1, 0),)


@pytest.mark.parametrize(
    "write",
    [
        Update(IN_THE_INDEX, remove=("due",)),
        Put({"PK": "USER#a", "SK": "E"}),
        Delete(IN_THE_INDEX),
    ],
)
def test_an_item_that_leaves_the_index_costs_a_unit_there(
    dynamodb: Metered, write: Put | Update | Delete
) -> None:
    dynamodb.hold(ENTRY)
    left = dynamodb.request(lambda: dynamodb.table.write(write))
    assert left.written == (Written(IN_THE_INDEX, 1, 1),)


def test_a_failed_condition_costs_nothing_in_the_index(dynamodb: Metered) -> None:
    dynamodb.hold(ENTRY)
    write = Update(IN_THE_INDEX, values={"due": 7}, condition=attr("x").exists())

    def refused() -> None:
        with pytest.raises(ConditionFailed):
            dynamodb.table.write(write)

    assert dynamodb.request(refused).written == (Written(IN_THE_INDEX, 1, 0),)


def test_items_of_a_batch_cost_each_their_own_in_the_index(dynamodb: Metered) -> None:
    items = [{**ENTRY, "SK": "E1"}, item("VIEW#0", 40), {**ENTRY, "SK": "E2"}]
    batch = dynamodb.request(lambda: dynamodb.table.put_all(items))
    assert [written.index_units for written in batch.written] == [1, 0, 1]


def test_an_entry_of_more_than_1_kb_costs_by_its_size(dynamodb: Metered) -> None:
    """A put of 1,000 bytes makes the entry 1,027: 2 units when it enters, 2 + 1 when it shrinks."""
    large = {**ENTRY, "batch": "b" * 1_000}
    entered = dynamodb.request(lambda: dynamodb.table.write(Put(large)))
    shrunk = dynamodb.request(lambda: dynamodb.table.write(Put(ENTRY)))
    assert [request.written[0].index_units for request in (entered, shrunk)] == [2, 3]


def test_the_index_units_of_a_transaction_are_doubled_too(dynamodb: Metered) -> None:
    """This is the maximum: no page says whether the index is written once or twice."""
    transaction = dynamodb.request(lambda: dynamodb.table.write(Put(ENTRY), Put(item("b", 40))))
    assert [(w.units, w.index_units) for w in transaction.written] == [(2, 2), (2, 0)]


def test_a_transaction_beside_the_index_is_counted(dynamodb: Metered) -> None:
    dynamodb.hold(ENTRY)
    writes = (Update(IN_THE_INDEX, values={"x": "new"}), Put(item("b", 40)))
    transaction = dynamodb.request(lambda: dynamodb.table.write(*writes))
    assert [(w.units, w.index_units) for w in transaction.written] == [(2, 0), (2, 0)]


def test_a_query_of_an_index_adds_up_its_entries_and_halves(dynamodb: Metered) -> None:
    """An entry is 36 bytes here, its item 1,036: 113 entries are 4,068 bytes, 114 are 4,104."""
    dynamodb.hold(*({**ENTRY, "SK": f"{n:02x}", "x": "x" * 999} for n in range(114)))
    table = dynamodb.table
    asked: list[Callable[[], object]] = [
        lambda: table.query_due("ACTIVE#0", limit=113),
        lambda: table.query_due("ACTIVE#0", limit=114),
    ]
    assert [dynamodb.request(ask).read_units for ask in asked] == [0.5, 1.0]


def test_a_query_of_an_index_that_finds_nothing_costs_half_a_unit(dynamodb: Metered) -> None:
    found = dynamodb.request(lambda: dynamodb.table.query_due("ACTIVE#0", limit=9))
    assert (found.operation, found.read_units, found.written) == ("Query", 0.5, ())


@pytest.mark.parametrize("part", [{"Select": "COUNT"}, {"ProjectionExpression": "PK"}])
def test_a_projection_of_an_index_is_an_error(dynamodb: Metered, part: dict[str, str]) -> None:
    with pytest.raises(LookupError, match="part of what an index holds"):
        dynamodb.client.query(
            TableName=TABLE,
            IndexName="due",
            KeyConditionExpression="batch = :batch",
            ExpressionAttributeValues={":batch": {"S": "ACTIVE#0"}},
            **part,
        )


def test_an_index_of_more_than_keys_is_an_error() -> None:
    index = {"IndexName": "all", "Projection": {"ProjectionType": "ALL"}, "KeySchema": []}
    with pytest.raises(LookupError, match="all: it holds more than keys"):
        Index.of(index, ("PK", "SK"))


def test_requests_of_several_threads_are_metered_one_by_one(dynamodb: Metered) -> None:
    """11 bytes, and 300 more each time.

    One unit up to 911, two up to 1,811, three for 2,111 and 2,411.
    """
    dynamodb.hold({"PK": "USER#a", "SK": "E"})

    def grow(place: int) -> None:
        change = Update(IN_THE_INDEX, values={f"x{place}": "x" * 298})
        dynamodb.table.write(change)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(grow, range(8)))
    units = [request.write_units for request in dynamodb.meter.take()]
    assert sorted(units) == [1, 1, 1, 2, 2, 2, 3, 3]


def test_a_request_without_a_response_delays_no_other(dynamodb: Metered) -> None:
    def broken(**_: object) -> None:
        raise EndpointConnectionError(endpoint_url="https://dynamodb.example")

    with dynamodb.answering("before-send.dynamodb", broken), pytest.raises(EndpointConnectionError):
        dynamodb.client.get_item(TableName=TABLE, Key={"PK": {"S": "a"}, "SK": {"S": "b"}})
    assert dynamodb.request(lambda: dynamodb.table.get(Key("a", "b"))).read_units == 1


# ---- the requests that are counted


def test_unwatched_requests_do_not_count(dynamodb: Metered) -> None:
    other = aws_client("dynamodb")
    with dynamodb.meter.watching(other):
        DynamoTable(other, TABLE).get(Key("a", "b"))
    DynamoTable(other, TABLE).get(Key("a", "b"))
    other.scan(TableName=TABLE)
    assert [request.operation for request in dynamodb.meter.take()] == ["GetItem"]


def test_requests_are_returned_once(dynamodb: Metered) -> None:
    dynamodb.table.get(Key("a", "b"))
    assert len(dynamodb.meter.take()) == 1
    assert dynamodb.meter.take() == ()
