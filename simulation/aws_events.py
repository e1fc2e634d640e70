"""Events as AWS sends them to the handlers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from chalicelib.aws.attribute_values import encode_item
from chalicelib.counting import keys as views_keys
from chalicelib.storage.items import Item, key_of
from chalicelib.units import Seconds, WholeSeconds
from chalicelib.wallets.wallet import Entry

ARN = "arn:aws:dynamodb:us-east-1:123456789012:table/vu-mi/stream/2026-01-01T00:00:00.000"
API_DOMAIN = "id.execute-api.us-east-1.amazonaws.com"
BY_TTL = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}


def http_event(
    query: Mapping[str, list[str]] | None = None,
    method: str = "GET",
    path: str = "/api/v1/views",
) -> dict[str, Any]:
    """Return a REST API's proxy event; without a query API Gateway sends None."""
    return {
        "resource": path,
        "path": path,
        "httpMethod": method,
        "headers": {"Host": "api.example.com"},
        "multiValueHeaders": {"Host": ["api.example.com"]},
        "queryStringParameters": {k: v[-1] for k, v in query.items()} if query else None,
        "multiValueQueryStringParameters": dict(query) if query else None,
        "pathParameters": None,
        "stageVariables": None,
        "requestContext": {"httpMethod": method, "resourcePath": path, "path": path},
        "body": None,
        "isBase64Encoded": False,
    }


def http_api_event(path: str, method: str = "GET", **more: Any) -> dict[str, Any]:
    """Return an event of an HTTP API; `domain`, `stage` and `authorizer` go into its context.

    Source: the API Gateway developer guide, "Create AWS Lambda proxy integrations for HTTP APIs".
    """
    domain, stage = more.pop("domain", API_DOMAIN), more.pop("stage", "$default")
    authorizer = {"authorizer": more.pop("authorizer")} if "authorizer" in more else {}
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"host": domain},
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "id",
            **authorizer,
            "domainName": domain,
            "domainPrefix": "id",
            "http": {
                "method": method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": "192.0.2.1",
                "userAgent": "agent",
            },
            "requestId": "JKJaXmPLvHcESHA=",
            "routeKey": "$default",
            "stage": stage,
            "time": "10/Mar/2020:05:16:23 +0000",
            "timeEpoch": 1583817383220,
        },
        "isBase64Encoded": False,
        **more,
    }


def authorizer_event(authorization: str, path: str = "/api/v1/events") -> dict[str, Any]:
    """Return the event that an HTTP API sends to its authorizer, payload format 2.0.

    Source: the API Gateway developer guide, "Control access to HTTP APIs with AWS Lambda
    authorizers".
    """
    return http_api_event(path, headers={"authorization": authorization}) | {
        "type": "REQUEST",
        "routeArn": f"arn:aws:execute-api:us-east-1:123456789012:id/$default/GET{path}",
        "identitySource": [authorization],
        "routeKey": f"GET {path}",
    }


def sqs_event(bodies: Mapping[str, object]) -> dict[str, Any]:
    """Return a batch of messages by their ids."""
    return {
        "Records": [
            {
                "messageId": message_id,
                "receiptHandle": f"handle-{message_id}",
                "body": body,
                "attributes": {
                    "ApproximateReceiveCount": "1",
                    "SentTimestamp": "1767225600000",
                    "SenderId": "AIDAIENQZJOLO23YVJ4VO",
                    "ApproximateFirstReceiveTimestamp": "1767225600001",
                },
                "messageAttributes": {},
                "md5OfBody": "",
                "eventSource": "aws:sqs",
                "eventSourceARN": "arn:aws:sqs:us-east-1:123456789012:vu-mi-views",
                "awsRegion": "us-east-1",
            }
            for message_id, body in bodies.items()
        ]
    }


def tick() -> dict[str, Any]:
    """Return the event of an EventBridge rule with a schedule."""
    return {
        "version": "0",
        "id": "53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa",
        "detail-type": "Scheduled Event",
        "source": "aws.events",
        "account": "123456789012",
        "time": "2026-01-01T00:00:00Z",
        "region": "us-east-1",
        "resources": ["arn:aws:events:us-east-1:123456789012:rule/vu-mi-sweep"],
        "detail": {},
    }


def stream_event(records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a batch of stream records."""
    return {"Records": list(records)}


def removal(
    sequence: int | str,
    pk: str,
    sk: str,
    identity: Mapping[str, str] | None = BY_TTL,
    arn: str = ARN,
) -> dict[str, Any]:
    """Return a REMOVE record; without an identity, a program removed the item, not TTL."""
    keys = {"PK": {"S": pk}, "SK": {"S": sk}}
    record = {
        "eventID": f"event-{sequence}",
        "eventName": "REMOVE",
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": "us-east-1",
        "dynamodb": {
            "ApproximateCreationDateTime": 1767225600,
            "Keys": keys,
            "OldImage": {**keys, "ttl": {"N": "1767225600"}},
            "SequenceNumber": str(sequence),
            "SizeBytes": 120,
            "StreamViewType": "OLD_IMAGE",
        },
        "eventSourceARN": arn,
    }
    return {**record, "userIdentity": dict(identity)} if identity else record


def marker_record(sequence: int | str, badge_id: str, mark: WholeSeconds) -> dict[str, Any]:
    """Return the record of a window's marker that TTL removed."""
    return removal(sequence, *views_keys.marker(badge_id, mark))


def item_removal(
    item: Item, sequence: int, removed_at: Seconds = 1767225600, arn: str = ARN
) -> dict[str, Any]:
    """Return the stream record of an item that TTL removed."""
    record = removal(sequence, *key_of(item), arn=arn)
    record["dynamodb"]["OldImage"] = encode_item(item)
    record["dynamodb"]["ApproximateCreationDateTime"] = int(removed_at)
    return record


def entry_record(entry: Entry, wallet_id: str, sequence: int, arn: str = ARN) -> dict[str, Any]:
    """Return the stream record of an entry that TTL removed from a wallet's journal."""
    return item_removal(entry.item(wallet_id), sequence, arn=arn)


def alarm(state: str) -> dict[str, Any]:
    """Return the event of an alarm that has entered a state.

    Source: the CloudWatch user guide, "Invoke a Lambda function from an alarm".
    """
    return {
        "source": "aws.cloudwatch",
        "alarmArn": "arn:aws:cloudwatch:us-east-1:123456789012:alarm:vu-mi-prod-views-a-day",
        "accountId": "123456789012",
        "time": "2026-01-01T12:34:56.789+0000",
        "region": "us-east-1",
        "alarmData": {
            "alarmName": "vu-mi-prod-views-a-day",
            "state": {"value": state, "reason": "Threshold Crossed", "timestamp": "…"},
            "previousState": {"value": "OK" if state == "ALARM" else "ALARM", "reason": "…"},
            "configuration": {"metrics": []},
        },
    }
