"""The events that AWS would send to the handlers, and the answers it would read.

Sources: the Lambda developer guide, "Using Lambda with Amazon SQS" and "Using AWS Lambda with
Amazon DynamoDB"; the DynamoDB developer guide, "DynamoDB Streams and Time to Live".
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from chalicelib.aws.attribute_values import encode_item, encode_key
from chalicelib.storage.items import key_of
from vumi.storage.queue import Message
from vumi.storage.table import Change

REGION = "local"
ACCOUNT = "000000000000"
TABLE = "vu-mi"
TTL_SERVICE = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}


def queue_event(queue: str, messages: Iterable[Message]) -> dict[str, Any]:
    """The event of a batch of SQS messages."""
    return {"Records": [_queue_record(queue, message) for message in messages]}


def _queue_record(queue: str, message: Message) -> dict[str, Any]:
    return {
        "messageId": str(message.id),
        "receiptHandle": f"{message.id}.{message.receives}",
        "body": message.body,
        "attributes": {
            "ApproximateReceiveCount": str(message.receives),
            "SentTimestamp": str(int(message.sent_at * 1000)),
            "SenderId": ACCOUNT,
            "ApproximateFirstReceiveTimestamp": str(int(message.first_received_at * 1000)),
        },
        "messageAttributes": {},
        "md5OfBody": hashlib.md5(message.body.encode(), usedforsecurity=False).hexdigest(),
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{queue}",
        "awsRegion": REGION,
    }


def stream_event(label: str, changes: Iterable[Change]) -> dict[str, Any]:
    """The event of a batch of TTL removals on a stream."""
    arn = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{TABLE}/stream/{label}"
    return {"Records": [_stream_record(arn, change) for change in changes]}


def _stream_record(arn: str, change: Change) -> dict[str, Any]:
    keys = encode_key(key_of(change.item))
    image = encode_item(change.item)
    return {
        "eventID": hashlib.md5(
            f"{arn}{change.sequence}".encode(), usedforsecurity=False
        ).hexdigest(),
        "eventName": "REMOVE",
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": REGION,
        "userIdentity": TTL_SERVICE,
        "dynamodb": {
            "ApproximateCreationDateTime": int(change.removed_at),
            "Keys": keys,
            "OldImage": image,
            "SequenceNumber": str(change.sequence),
            "SizeBytes": len(str(keys)) + len(str(image)),
            "StreamViewType": "OLD_IMAGE",
        },
        "eventSourceARN": arn,
    }


def scheduled_event() -> dict[str, Any]:
    """The event of a schedule. Source: the EventBridge user guide, "Scheduled Event"."""
    return {
        "version": "0",
        "id": "00000000-0000-0000-0000-000000000000",
        "detail-type": "Scheduled Event",
        "source": "aws.events",
        "account": ACCOUNT,
        "time": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "region": REGION,
        "resources": [f"arn:aws:events:{REGION}:{ACCOUNT}:rule/vu-mi-sweep_timers"],
        "detail": {},
    }


def failed_identifiers(answer: Mapping[str, Any] | None, known: Sequence[str]) -> set[str]:
    """What a handler reported as failed; all of the batch where it names what was not in it.

    None and an empty list are full success, as Lambda has it.
    """
    failures = (answer or {}).get("batchItemFailures") or []
    named = {failure.get("itemIdentifier") for failure in failures}
    unknown = named - set(known)
    return set(known) if unknown else named
