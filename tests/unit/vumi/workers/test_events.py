"""The embedded engine's events have the shapes that AWS documents for SQS and DynamoDB."""

from __future__ import annotations

from typing import Any

import pytest
from chalice.app import DynamoDBEvent, SQSEvent

from vumi.storage.queue import Message
from vumi.storage.table import Change
from vumi.workers.events import failed_identifiers, queue_event, stream_event

HELLO_MD5 = "5d41402abc4b2a76b9719d911017c592"
"""MD5 of "hello" (RFC 1321's algorithm)."""
LABEL = "2026-01-02T03:04:05.678"


def message(number: int = 7, body: str = "hello") -> Message:
    return Message(number, body, sent_at=1_000.25, receives=2, first_received_at=1_001.5)


def change(sequence: int = 9) -> Change:
    item: Any = {"PK": "USER#ü", "SK": "VIEW#1", "ttl": 300, "l": ["x", 1], "m": {"a": -1}}
    return Change(sequence, removed_at=1_200.75, item=item)


def test_a_queue_record_has_the_documented_keys_and_types() -> None:
    """The Lambda developer guide, "Using Lambda with Amazon SQS": every value is a text."""
    assert queue_event("vu-mi-views", [message()]) == {
        "Records": [
            {
                "messageId": "7",
                "receiptHandle": "7.2",
                "body": "hello",
                "attributes": {
                    "ApproximateReceiveCount": "2",
                    "SentTimestamp": "1000250",  # milliseconds
                    "SenderId": "000000000000",
                    "ApproximateFirstReceiveTimestamp": "1001500",
                },
                "messageAttributes": {},
                "md5OfBody": HELLO_MD5,
                "eventSource": "aws:sqs",
                "eventSourceARN": "arn:aws:sqs:local:000000000000:vu-mi-views",
                "awsRegion": "local",
            }
        ]
    }


def test_chalice_reads_the_messages_of_a_queue_event() -> None:
    messages = [message(1, "one"), message(2, "zwei ü")]

    records = list(SQSEvent(queue_event("q", messages), None))

    assert [record.body for record in records] == ["one", "zwei ü"]
    assert [record.receipt_handle for record in records] == ["1.2", "2.2"]


def test_every_delivery_of_a_message_has_a_receipt_handle_of_its_own() -> None:
    again = Message(7, "hello", sent_at=1_000.25, receives=3, first_received_at=1_001.5)

    [first, second] = queue_event("q", [message(), again])["Records"]

    assert first["messageId"] == second["messageId"]
    assert first["receiptHandle"] != second["receiptHandle"]


def test_a_stream_record_has_the_documented_keys_and_types() -> None:
    """The Lambda developer guide on DynamoDB, and "DynamoDB Streams and Time to Live"."""
    [record] = stream_event(LABEL, [change()])["Records"]

    event_id = record.pop("eventID")
    size = record["dynamodb"].pop("SizeBytes")
    assert isinstance(event_id, str)
    assert len(event_id) == 32
    assert isinstance(size, int)
    assert size > 0
    keys = {"PK": {"S": "USER#ü"}, "SK": {"S": "VIEW#1"}}
    rest = {
        "ttl": {"N": "300"},
        "l": {"L": [{"S": "x"}, {"N": "1"}]},
        "m": {"M": {"a": {"N": "-1"}}},
    }
    assert record == {
        "eventName": "REMOVE",
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": "local",
        "userIdentity": {"type": "Service", "principalId": "dynamodb.amazonaws.com"},
        "dynamodb": {
            "ApproximateCreationDateTime": 1_200,  # whole seconds
            "Keys": keys,
            "OldImage": keys | rest,
            "SequenceNumber": "9",
            "StreamViewType": "OLD_IMAGE",
        },
        "eventSourceARN": f"arn:aws:dynamodb:local:000000000000:table/vu-mi/stream/{LABEL}",
    }


@pytest.mark.filterwarnings("ignore:datetime.datetime.utcfromtimestamp:DeprecationWarning")
def test_chalice_reads_the_records_of_a_stream_event() -> None:
    records = list(DynamoDBEvent(stream_event(LABEL, [change(9), change(10)]), None))

    assert [record.sequence_number for record in records] == ["9", "10"]
    assert [record.event_name for record in records] == ["REMOVE", "REMOVE"]
    assert [record.table_name for record in records] == ["vu-mi", "vu-mi"]
    assert records[0].keys == {"PK": {"S": "USER#ü"}, "SK": {"S": "VIEW#1"}}
    assert records[0].old_image["ttl"] == {"N": "300"}
    assert records[0].new_image is None


def test_an_event_id_is_the_same_for_the_same_change_only() -> None:
    def identifier(label: str, sequence: int) -> str:
        return str(stream_event(label, [change(sequence)])["Records"][0]["eventID"])

    ids = {identifier(LABEL, 9), identifier(LABEL, 10), identifier("another", 9)}
    assert len(ids) == 3
    assert identifier(LABEL, 9) in ids


def test_records_come_in_the_order_given() -> None:
    queued = queue_event("q", [message(number) for number in (3, 1, 2)])
    streamed = stream_event(LABEL, [change(sequence) for sequence in (8, 9, 10)])

    assert [record["messageId"] for record in queued["Records"]] == ["3", "1", "2"]
    sequences = [record["dynamodb"]["SequenceNumber"] for record in streamed["Records"]]
    assert sequences == ["8", "9", "10"]


@pytest.mark.parametrize(
    "answer",
    [None, {}, {"batchItemFailures": []}, {"batchItemFailures": None}],
    ids=["None", "empty", "an empty list", "null"],
)
def test_an_answer_that_names_nothing_is_full_success(answer: dict[str, Any] | None) -> None:
    """The Lambda developer guide, "Success and failure conditions"."""
    assert failed_identifiers(answer, ["1", "2"]) == set()


def test_an_answer_names_what_failed() -> None:
    answer = {"batchItemFailures": [{"itemIdentifier": "2"}, {"itemIdentifier": "3"}]}

    assert failed_identifiers(answer, ["1", "2", "3"]) == {"2", "3"}


@pytest.mark.parametrize(
    "failure",
    [{"itemIdentifier": "99"}, {"itemIdentifier": ""}, {"itemIdentifier": None}, {"other": "1"}],
    ids=["not in the batch", "empty", "null", "a wrong key"],
)
def test_an_answer_that_names_something_else_fails_the_whole_batch(
    failure: dict[str, Any],
) -> None:
    """The Lambda developer guide: an empty, null or malformed itemIdentifier, or a bad key."""
    answer = {"batchItemFailures": [{"itemIdentifier": "1"}, failure]}

    assert failed_identifiers(answer, ["1", "2"]) == {"1", "2"}
