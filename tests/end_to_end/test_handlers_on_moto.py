"""The three lambdas as deployed: Chalice's handlers, AWS's events, DynamoDB and SQS on moto."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from moto import mock_aws

from app import app
from chalicelib import resources
from chalicelib.dynamodb import DynamoTable
from chalicelib.ports import Delete, Item, Key
from chalicelib.resources import aws_client
from chalicelib.settings import Settings
from chalicelib.sqs import SqsQueue
from chalicelib.views.fold import fold_views
from chalicelib.views.put import put_views
from tests import events
from tests.aws import create_table

NOW = 1_767_225_600.0
"""2026-01-01T00:00:00Z."""
DAY = "DAY#2026-01-01"


@dataclass(frozen=True)
class Aws:
    """A deployed table and queue; a `resources.Resources`."""

    table: DynamoTable
    views_queue: SqsQueue
    stream: str
    sqs: Any
    url: str
    settings: Settings

    def clock(self) -> float:
        return NOW

    each = staticmethod(map)
    ttl_lags = True

    def get(self, badge_id: str, **query: str) -> dict[str, Any]:
        """The badge's JSON."""
        parameters = {"id": [badge_id], **{name: [value] for name, value in query.items()}}
        answer = app(events.http_event(parameters), None)
        assert answer["statusCode"] == 200
        body: dict[str, Any] = json.loads(answer["body"])
        return body

    def deliver(self) -> dict[str, Any]:
        """Everything in the queue, as one batch."""
        batch: dict[str, object] = {}
        while received := self.sqs.receive_message(QueueUrl=self.url, MaxNumberOfMessages=10).get(
            "Messages"
        ):
            for message in received:
                batch[message["MessageId"]] = message["Body"]
                self.sqs.delete_message(QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"])
        answer: dict[str, Any] = put_views(events.sqs_event(batch), None)
        return answer

    def expire(self, badge_id: str) -> list[dict[str, Any]]:
        """TTL removes every view of a badge; returns the stream's records."""
        views = self.table.query(f"USER#{badge_id}", first="VIEW#", limit=10_000)
        records = []
        for sequence, view in enumerate(views, start=100):
            key = Key(str(view["PK"]), str(view["SK"]))
            self.table.write(Delete(key))
            records.append(events.removal(sequence, *key, arn=self.stream))
        return records

    def user(self, badge_id: str) -> Item:
        return self.table.get(Key(f"USER#{badge_id}", "USER")) or {}


@pytest.fixture
def aws() -> Iterator[Aws]:
    with mock_aws():
        dynamodb, sqs = aws_client("dynamodb"), aws_client("sqs")
        stream = create_table(dynamodb, "vu-mi")
        url = sqs.create_queue(QueueName="vu-mi-views")["QueueUrl"]
        deployed = Aws(
            DynamoTable(dynamodb, "vu-mi"), SqsQueue(sqs, url), stream, sqs, url, Settings()
        )
        resources.use(deployed)
        yield deployed
        resources.use(None)
        dynamodb.close()
        sqs.close()


def test_a_view_goes_all_the_way(aws: Aws) -> None:
    """3 views are queued, put, expired and folded; the badge shows 0, then 3 throughout."""
    assert [aws.get("a/b")["message"] for _ in range(3)] == ["0", "0", "0"]
    assert aws.deliver() == {"batchItemFailures": []}
    assert aws.get("a/b", peek="1")["message"] == "3"
    records = aws.expire("a/b")
    assert fold_views(events.stream_event(records), None) == {"batchItemFailures": []}
    assert aws.get("a/b", peek="1")["message"] == "3"
    folded = f"{aws.stream.split('/stream/')[1]}#{102:040}"
    assert aws.user("a/b") == {
        "PK": "USER#a/b",
        "SK": "USER",
        "count": 3,
        "floor": 1,
        "folded": folded,
        "created": int(NOW),
    }
    day = aws.table.get(Key("USER#a/b", DAY))
    assert day == {"PK": "USER#a/b", "SK": DAY, "views": 3, "h00": 3, "folded": folded}


def test_a_badge_is_what_shields_io_draws(aws: Aws) -> None:
    answer = app(events.http_event({"id": ["a/b"]}), None)
    assert json.loads(answer["body"]) == {
        "schemaVersion": 1,
        "label": "views",
        "message": "0",
        "color": "blue",
    }
    assert answer["statusCode"] == 200
    assert answer["headers"]["Content-Type"] == "application/json"
    assert answer["headers"]["Cache-Control"] == ("max-age=0, no-cache, no-store, must-revalidate")
    assert aws.deliver() == {"batchItemFailures": []}


def test_the_old_route_counts_the_same_badge(aws: Aws) -> None:
    app(events.http_event({"id": ["a/b"]}, path="/v1/api/views"), None)
    aws.deliver()
    assert aws.get("a/b", peek="1")["message"] == "1"


def test_peek_and_head_count_nothing(aws: Aws) -> None:
    assert aws.get("a/b", peek="1")["message"] == "0"
    answer = app(events.http_event({"id": ["a/b"]}, method="HEAD"), None)
    assert answer["statusCode"] == 200
    assert aws.deliver() == {"batchItemFailures": []}
    assert aws.table.query("USER#a/b", limit=9) == []


@pytest.mark.parametrize(
    ("query", "says"),
    [
        (None, "give an id: ?id=owner/name"),
        ({"other": ["x"]}, "give an id: ?id=owner/name"),
        ({"id": [""]}, "the id is empty: give one like owner/name"),
        ({"id": ["a", "b"]}, "give one id, not 2"),
        ({"id": ["x" * 201]}, "the id has 201 characters: give at most 200"),
        ({"id": ["a\nb"]}, "the id has a control character: leave it out"),
        ({"id": ["a\ud800b"]}, "the id has half a surrogate pair: leave it out"),
        ({"id": ["a"], "peek": ["yes"]}, "peek: give 1 or 0, not 'yes'"),
        ({"id": ["a"], "peek": ["1", "1"]}, "peek: give one, not 2"),
    ],
)
def test_bad_input_gets_a_badge_that_says_what_to_give(
    aws: Aws, query: Mapping[str, list[str]] | None, says: str
) -> None:
    answer = app(events.http_event(query), None)
    assert answer["statusCode"] == 200
    assert aws.user("a") == {}
    assert json.loads(answer["body"]) == {
        "schemaVersion": 1,
        "label": "views",
        "message": says,
        "color": "red",
        "isError": True,
    }
    assert aws.deliver() == {"batchItemFailures": []}


@pytest.mark.parametrize(
    "badge_id", ["owner/name", "a b", 'quo"te', "it's", "日本語", "🦆", "x" * 200, "100%", "<a>&"]
)
def test_any_text_is_an_id(aws: Aws, badge_id: str) -> None:
    aws.get(badge_id)
    assert aws.deliver() == {"batchItemFailures": []}
    assert aws.get(badge_id, peek="1")["message"] == "1"


def test_two_ways_to_write_one_character_are_one_id(aws: Aws) -> None:
    aws.get("U\u0308ber")
    aws.get("\u00dcber")
    aws.deliver()
    assert aws.get("\u00dcber", peek="1")["message"] == "2"


@pytest.mark.usefixtures("aws")
def test_healthz_says_whether_the_table_answers() -> None:
    healthy = app(events.http_event(path="/healthz"), None)
    assert (healthy["statusCode"], healthy["body"]) == (200, '{"status":"ok"}')
    aws_client("dynamodb").delete_table(TableName="vu-mi")
    ill = app(events.http_event(path="/healthz"), None)
    assert ill["statusCode"] == 503
    assert json.loads(ill["body"])["error"]["code"] == "unavailable"
    assert ill["headers"]["Retry-After"] == "1"


def test_without_a_table_the_badge_says_so_and_the_view_is_enqueued(aws: Aws) -> None:
    aws_client("dynamodb").delete_table(TableName="vu-mi")
    body = aws.get("a/b")
    assert (body["isError"], body["message"]) == (True, "count unavailable, view taken")
    create_table(aws_client("dynamodb"), "vu-mi")
    assert aws.deliver() == {"batchItemFailures": []}
    assert aws.get("a/b", peek="1")["message"] == "1"


def test_without_a_queue_the_view_is_put_directly(aws: Aws) -> None:
    aws.sqs.delete_queue(QueueUrl=aws.url)
    assert [aws.get("a/b")["message"] for _ in range(2)] == ["0", "1"]
    assert aws.get("a/b", peek="1")["message"] == "2"
    assert aws.user("a/b")["floor"] == 2


def test_without_both_the_visitor_is_told_that_nothing_was_counted(aws: Aws) -> None:
    aws.sqs.delete_queue(QueueUrl=aws.url)
    aws_client("dynamodb").delete_table(TableName="vu-mi")
    body = aws.get("a/b")
    assert (body["isError"], body["message"]) == (True, "out of order, not counted: try again")
