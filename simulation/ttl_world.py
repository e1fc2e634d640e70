"""The AWS of the laws over DynamoDB Local, with its own TTL and its own stream.

A history is in the past of the machine's clock, so TTL removes every marker within seconds, and the
stream has the removal. The world delivers it at the marker's time in the history, or later, and the
views are not removed. At the end it delivers all records of the stream again, in other batches.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from chalicelib.aws.attribute_values import decode_item
from chalicelib.aws.dynamodb import DynamoTable
from chalicelib.counting import keys
from chalicelib.settings import MAX_RETENTION_SECONDS
from chalicelib.storage.items import Key, key_of
from simulation import aws_events as events
from simulation.aws_table import create_table, endpoint_client, new_name
from simulation.aws_world import AwsScenario, AwsWorld

Record: TypeAlias = dict[str, Any]

DAYS_AGO = 100
"""A history is shorter, and views are kept longer."""
DAY_SECONDS = 86_400
REMOVED_BY_TTL = "UNKNOWN_TO_SDK_VERSION"
"""The name that DynamoDB Local 3.3.1 gives to a removal by TTL."""
POLL_SECONDS = 0.2
TTL_SECONDS = 120.0
"""The limit for a removal, which takes about ten seconds."""


def worded_by_lambda(record: Mapping[str, Any]) -> Record:
    """Return a record of DynamoDB Local as Lambda gets it from AWS.

    DynamoDB Local has a name of its own for a removal by TTL, and does not say who has removed the
    item. The client has parsed the time, which Lambda gives as a number.
    """
    created = record["dynamodb"]["ApproximateCreationDateTime"].timestamp()
    change = {**record["dynamodb"], "ApproximateCreationDateTime": created}
    if record["eventName"] != REMOVED_BY_TTL:
        return {**record, "dynamodb": change}
    return {**record, "dynamodb": change, "eventName": "REMOVE", "userIdentity": events.BY_TTL}


def key_in(record: Record) -> Key:
    """Return the key of the item that a record is about."""
    return key_of(decode_item(record["dynamodb"]["Keys"]))


@dataclass
class TtlTable:
    """A table whose TTL is at work, and its stream."""

    client: Any
    name: str
    streams: Any
    stream: str
    _iterators: dict[str, str | None] = field(default_factory=dict)

    @property
    def table(self) -> DynamoTable:
        return DynamoTable(self.client, self.name)

    def count_markers(self) -> int:
        """Return the number of markers in the table."""
        pages = self.client.get_paginator("scan").paginate(
            TableName=self.name,
            FilterExpression="SK = :marker",
            ExpressionAttributeValues={":marker": {"S": keys.WINDOW}},
        )
        return sum(page["Count"] for page in pages)

    def read_stream(self) -> list[Record]:
        """Return the records since the last call."""
        stream = self.streams.describe_stream(StreamArn=self.stream)["StreamDescription"]
        for shard in stream["Shards"]:
            if shard["ShardId"] not in self._iterators:
                self._iterators[shard["ShardId"]] = self._start(shard["ShardId"])
        return [record for shard in self._iterators for record in self._read_shard(shard)]

    def _start(self, shard: str) -> str:
        iterator: str = self.streams.get_shard_iterator(
            StreamArn=self.stream, ShardId=shard, ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        return iterator

    def _read_shard(self, shard: str) -> Iterator[Record]:
        if iterator := self._iterators[shard]:
            answer = self.streams.get_records(ShardIterator=iterator)
            self._iterators[shard] = answer.get("NextShardIterator")
            yield from map(worded_by_lambda, answer["Records"])


@contextmanager
def ttl_table() -> Iterator[TtlTable]:
    """Make a table at `AWS_ENDPOINT_URL`.

    It has no index, because DynamoDB Local removes no item by TTL from a table with an index.
    """
    client, streams = endpoint_client("dynamodb"), endpoint_client("dynamodbstreams")
    name = new_name()
    yield TtlTable(client, name, streams, create_table(client, name, has_index=False))
    client.delete_table(TableName=name)
    streams.close()
    client.close()


class TtlWorld(AwsWorld):
    """AWS whose markers are removed by the table's own TTL."""

    def __init__(self, seed: int, scenario: AwsScenario, engine: TtlTable) -> None:
        ago = time.time() // DAY_SECONDS - DAYS_AGO
        start = ago * DAY_SECONDS + scenario.start % DAY_SECONDS
        past = replace(scenario, start=start, retention=MAX_RETENTION_SECONDS, loss=0.0, early=1.0)
        super().__init__(seed, past, engine.table)
        self.records: list[Record] = []
        self._engine = engine
        self._removals: defaultdict[Key, list[Record]] = defaultdict(list)
        self._read_at = time.monotonic()

    def expire(self) -> None:
        self._read_stream()
        super().expire()

    def _read_stream(self) -> bool:
        """Read the new records of the stream, or wait a moment; return whether there were any."""
        records = self._engine.read_stream()
        for record in records:
            if record.get("userIdentity") == events.BY_TTL:
                self._removals[key_in(record)].append(record)
        if records:
            self.records += records
            self._read_at = time.monotonic()
        else:
            waited = time.monotonic() - self._read_at
            assert waited < TTL_SECONDS, f"no record for {waited:.0f} s: TTL is not at work"
            time.sleep(POLL_SECONDS)
        return bool(records)

    def may_go(self, key: Key) -> bool:
        """Return whether TTL has removed an item."""
        return bool(self._removals[key])

    def remove(self, key: Key) -> Record:
        """Return the record of a removal by TTL, after the grace is over by every clock."""
        self.now += self.scenario.skew
        return self._removals[key].pop(0)

    def rest(self) -> None:
        super().rest()
        while self._engine.count_markers() or self._read_stream():
            pass
        self.stream += self.records
        super().rest()
