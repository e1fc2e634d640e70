"""The deployed Lambda functions: Chalice's handlers, AWS's events, DynamoDB and SQS on moto."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from moto import mock_aws

from app import app
from chalicelib.aws import resources
from chalicelib.aws.clients import aws_client
from chalicelib.aws.consumers import fold_views, put_views
from chalicelib.aws.dynamodb import DynamoTable
from chalicelib.aws.sqs import SqsQueue
from chalicelib.counting import keys
from chalicelib.counting.view_queue import ViewMessages
from chalicelib.owners import changing, claiming, deleting, finding
from chalicelib.owners.changing import BadgeChange
from chalicelib.owners.proving import LOOK_SECONDS
from chalicelib.storage.items import Item, Key
from chalicelib.storage.writes import Delete
from simulation import aws_events as events
from simulation.aws_table import create_table
from simulation.hosts import Host
from simulation.resources import GivenResources

NOW = 1_767_225_600.0
"""2026-01-01T00:00:00Z, which is a mark: the windows of views are 300 s, the grace is 600 s."""


@dataclass
class Aws(GivenResources):
    """A deployed table and queue, and a clock."""

    stream: str = ""
    sqs: Any = None
    url: str = ""
    now: float = NOW

    def __post_init__(self) -> None:
        self.clock = lambda: self.now

    def get(self, badge_id: str, **query: str) -> dict[str, Any]:
        """Return the badge's JSON."""
        parameters = {"id": [badge_id], **{name: [value] for name, value in query.items()}}
        answer = app(events.http_event(parameters), None)
        assert answer["statusCode"] == 200
        body: dict[str, Any] = json.loads(answer["body"])
        return body

    def post(self, **fields: Any) -> tuple[int, dict[str, Any]]:
        """Claim or prove a badge; return the status and the answer."""
        request = events.http_event(None, "POST", "/api/v1/badges")
        answer = app(request | {"body": json.dumps(fields)}, None)
        return answer["statusCode"], json.loads(answer["body"])

    def receive(self) -> dict[str, object]:
        """Take every message from the queue; return the bodies by their ids."""
        batch: dict[str, object] = {}
        while received := self.sqs.receive_message(QueueUrl=self.url, MaxNumberOfMessages=10).get(
            "Messages"
        ):
            for message in received:
                batch[message["MessageId"]] = message["Body"]
                self.sqs.delete_message(QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"])
        return batch

    def deliver(self) -> dict[str, Any]:
        """Deliver everything in the queue as one batch."""
        answer: dict[str, Any] = put_views(events.sqs_event(self.receive()), None)
        return answer

    def expire(self, badge_id: str, mark: int) -> list[dict[str, Any]]:
        """Remove the marker of a window, as TTL does; return the stream's record."""
        marker = keys.marker(badge_id, mark)
        assert self.table.get(marker) is not None
        self.table.write(Delete(marker))
        return [events.removal(100, *marker, arn=self.stream)]

    def item(self, key: Key) -> Item:
        return self.table.get(key) or {}


@pytest.fixture
def aws() -> Iterator[Aws]:
    with mock_aws():
        dynamodb, sqs = aws_client("dynamodb"), aws_client("sqs")
        stream = create_table(dynamodb, "vu-mi")
        url = sqs.create_queue(QueueName="vu-mi-views")["QueueUrl"]
        deployed = Aws(
            table=DynamoTable(dynamodb, "vu-mi"),
            views_queue=ViewMessages(SqsQueue(sqs, url)),
            stream=stream,
            sqs=sqs,
            url=url,
            fetcher=Host(),
        )
        resources.use(deployed)
        yield deployed
        resources.use(None)
        dynamodb.close()
        sqs.close()


def test_a_view_goes_all_the_way(aws: Aws) -> None:
    """3 views are queued, put and folded; the badge shows 0, then 3 throughout."""
    assert [aws.get("a/b")["message"] for _ in range(3)] == ["0", "0", "0"]
    assert aws.deliver() == {"batchItemFailures": []}
    assert aws.get("a/b", peek="1")["message"] == "3"
    aws.now = NOW + 900
    records = aws.expire("a/b", int(NOW) + 300)
    assert aws.get("a/b", peek="1")["message"] == "3"
    for _ in range(2):
        assert fold_views(events.stream_event(records), None) == {"batchItemFailures": []}
        assert aws.get("a/b", peek="1")["message"] == "3"
    assert aws.item(keys.summary("a/b")) == {
        "PK": "USER#a/b",
        "SK": "VIEWS",
        "count": 3,
        "watermark": int(NOW + 300) * 1000,
        "today": {"day": "2026-01-01", "h00": 3},
        "version": 1,
        "created": int(NOW) + 900,
    }


def test_a_view_delivered_late_or_again_is_counted_once(aws: Aws) -> None:
    """At an in-between age its message is delivered again; when it is old it is counted at once."""
    aws.get("a/b")
    [body] = aws.receive().values()
    for age, failures in ((600, [{"itemIdentifier": "m"}]), (900, []), (5_000, [])):
        aws.now = NOW + age
        assert put_views(events.sqs_event({"m": body}), None) == {"batchItemFailures": failures}
    assert aws.get("a/b", peek="1")["message"] == "1"
    assert aws.item(keys.summary("a/b"))["count"] == 1


def test_a_new_day_stores_the_day_before(aws: Aws) -> None:
    for day in range(2):
        aws.now = NOW + 86_400 * day
        aws.get("a/b")
        aws.deliver()
        aws.now += 900
        records = aws.expire("a/b", int(NOW) + 86_400 * day + 300)
        assert fold_views(events.stream_event(records), None) == {"batchItemFailures": []}
    assert aws.item(keys.day("a/b", "2026-01-01")) == {
        "PK": "USER#a/b",
        "SK": "DAY#2026-01-01",
        "views": 1,
        "h00": 1,
        "version": 1,
        "reset": 0,
    }
    assert aws.item(keys.summary("a/b"))["today"] == {"day": "2026-01-02", "h00": 1}


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
        ({"other": ["x"]}, "unknown option 'other': leave it out"),
        ({"id": [""]}, "the id is empty: give one like owner/name"),
        ({"id": ["a", "b"]}, "give one id, not 2"),
        ({"id": ["x" * 201]}, "the id has 201 characters and 201 bytes: give at most 200 and 400"),
        ({"id": ["a\nb"]}, "the id has a control character: leave it out"),
        ({"id": ["a\ud800b"]}, "the id has half a surrogate pair: leave it out"),
        ({"id": ["a"], "peek": ["yes"]}, "peek: give 1 or 0, not 'yes'"),
        ({"id": ["a"], "peek": ["1", "1"]}, "peek: give one, not 2"),
    ],
)
def test_bad_input_gets_a_badge_with_the_fix(
    aws: Aws, query: Mapping[str, list[str]] | None, says: str
) -> None:
    answer = app(events.http_event(query), None)
    assert answer["statusCode"] == 200
    assert aws.item(keys.summary("a")) == {}
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


def test_two_encodings_of_one_character_are_one_id(aws: Aws) -> None:
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


def test_without_a_queue_the_view_is_stored_directly(aws: Aws) -> None:
    aws.sqs.delete_queue(QueueUrl=aws.url)
    assert [aws.get("a/b")["message"] for _ in range(2)] == ["0", "1"]
    assert aws.get("a/b", peek="1")["message"] == "2"
    assert aws.item(keys.marker("a/b", int(NOW) + 300))


def test_without_both_the_badge_says_that_the_view_was_not_counted(aws: Aws) -> None:
    aws.sqs.delete_queue(QueueUrl=aws.url)
    aws_client("dynamodb").delete_table(TableName="vu-mi")
    body = aws.get("a/b")
    assert (body["isError"], body["message"]) == (True, "internal error, view not counted")


def test_a_badge_with_views_is_proven_granted_and_released(aws: Aws) -> None:
    """Each write is a transaction of DynamoDB with conditions, and none changes the count."""
    aws.get("a/b")
    aws.deliver()
    assert aws.post(id="a/b")[0] == 409
    status, asked = aws.post(id="a/b", proof=True)
    assert status == 202
    assert aws.post(id="a/b", proof=asked["proof"])[1]["error"]["code"] == "not_proven"
    assert aws.post(id="a/b", proof=asked["proof"])[0] == 429
    aws.now += LOOK_SECONDS
    aws.fetcher = Host([asked["challenge"]])
    [first, second] = [aws.post(id="a/b", proof=asked["proof"]) for _ in range(2)]
    assert first == second
    secret = first[1]["secret"]
    assert finding.authenticate(aws.table, "a/b", secret).proven == "a/b"
    changing.hand_over(aws.table, "a/b", secret, "0" * 64, aws.now)
    granted = claiming.grant(aws.table, "a/b", aws.now).secret
    changing.change(
        aws.table, finding.authenticate(aws.table, "a/b", granted), BadgeChange(name="c"), aws.now
    )
    assert [claiming.release(aws.table, "c") for _ in range(2)] == [True, False]
    changing.change(aws.table, finding.look_up(aws.table, "c"), BadgeChange(base=5), aws.now)
    assert aws.get("a/b", peek="1")["message"] == aws.get("c", peek="1")["message"] == "6"
    deleting.delete(aws.table, finding.look_up(aws.table, "c"), aws.now, 1_296_000)
    assert aws.get("c", peek="1")["message"] == "0"
