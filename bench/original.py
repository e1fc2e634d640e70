"""The original's design, reduced to the parts that the measurements compare.

One module serves every lambda. It makes its clients at import, and decodes every item that it
counts with `boto3.resource`.
"""

from __future__ import annotations

import json
import os
import uuid
from collections import Counter
from collections.abc import Iterator
from typing import Any

import boto3
from boto3.dynamodb.conditions import Key
from chalice.app import Chalice, DynamoDBEvent, SQSEvent

app = Chalice(app_name="original")
table = boto3.resource("dynamodb").Table(os.environ["TABLE_NAME"])
queue = boto3.client("sqs")


@app.route("/api/v1/views")
def get_views() -> dict[str, Any]:
    """Read every item, answer with the number of views, and enqueue one more."""
    badge_id = app.current_request.query_params["id"]  # type: ignore[union-attr, index]
    items = list(_items(f"USER#{badge_id}"))
    stored = sum(int(item["count"]) for item in items if item["SK"] == "USER")
    live = sum(item["SK"].startswith("VIEW#") for item in items)
    message = json.dumps({"id": badge_id, "view": str(uuid.uuid4())})
    queue.send_message(QueueUrl=os.environ["VIEWS_QUEUE_URL"], MessageBody=message)
    return {"schemaVersion": 1, "label": "views", "message": str(stored + live), "color": "blue"}


def _items(partition: str) -> Iterator[dict[str, Any]]:
    condition = Key("PK").eq(partition) & Key("SK").gte("USER")
    page = table.query(KeyConditionExpression=condition, ConsistentRead=True)
    yield from page["Items"]
    while "LastEvaluatedKey" in page:
        page = table.query(
            KeyConditionExpression=condition,
            ConsistentRead=True,
            ExclusiveStartKey=page["LastEvaluatedKey"],
        )
        yield from page["Items"]


@app.on_sqs_message(queue="views", batch_size=10)
def put_views(event: SQSEvent) -> None:
    """Store a batch of views."""
    with table.batch_writer() as batch:
        for record in event:
            view = json.loads(record.body)
            batch.put_item(
                Item={
                    "PK": f"USER#{view['id']}",
                    "SK": f"VIEW#{view['view']}",
                    "ttl": 1_700_000_300,
                }
            )


@app.on_dynamodb_record(stream_arn="arn:aws:dynamodb:us-east-1:000000000000:table/t/stream/s")
def fold_views(event: DynamoDBEvent) -> None:
    """Add the removals of a batch to the counts of their badges."""
    for record in event:
        table.update_item(
            Key={"PK": record.keys["PK"]["S"], "SK": "USER"},
            UpdateExpression="ADD #count :one",
            ExpressionAttributeNames={"#count": "count"},
            ExpressionAttributeValues={":one": 1},
        )


@app.on_dynamodb_record(stream_arn="arn:aws:dynamodb:us-east-1:000000000000:table/t/stream/s")
def fold_by_get_and_put(event: DynamoDBEvent) -> None:
    """Read the count of each badge, add, and write it back, as the original did.

    Each badge of a batch is written once, which is the least that this can cost. A concurrent fold
    is lost.
    """
    removed = Counter(record.keys["PK"]["S"] for record in event)
    for partition, views in removed.items():
        key = {"PK": partition, "SK": "USER"}
        user = table.get_item(Key=key, ConsistentRead=True).get("Item", {**key, "count": 0})
        table.put_item(Item={**user, "count": int(user["count"]) + views})
