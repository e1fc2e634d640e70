"""The answers of a `Table` to a botocore client of DynamoDB, in place of the network.

These are the operations of the original's design, whose handlers use no `Table`. Tests check that
moto makes the same answers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from botocore.awsrequest import AWSResponse

from chalicelib.aws.attribute_values import decode_item, encode_item
from chalicelib.storage.items import key_of
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Put

MAX_ITEMS = 10**6
"""More items than any page of 1 MB has."""


@contextmanager
def answering(client: Any, table: Table) -> Iterator[None]:
    """Answer the requests of a client, or of a resource's client, from a table meanwhile."""

    def answer(params: Mapping[str, Any], model: Any, **_: object) -> tuple[AWSResponse, Any]:
        content = ANSWERS[model.name](table, json.loads(params["body"]))
        return AWSResponse("", 200, {}, None), content  # type: ignore[arg-type]

    client.meta.events.register("before-call.dynamodb", answer)
    try:
        yield
    finally:
        client.meta.events.unregister("before-call.dynamodb", answer)


def _get(table: Table, request: Mapping[str, Any]) -> dict[str, Any]:
    item = table.get(key_of(decode_item(request["Key"])))
    return {"Item": encode_item(item)} if item else {}


def _put(table: Table, request: Mapping[str, Any]) -> dict[str, Any]:
    table.write(Put(decode_item(request["Item"])))
    return {}


def _put_all(table: Table, request: Mapping[str, Any]) -> dict[str, Any]:
    [requests] = request["RequestItems"].values()
    table.put_all([decode_item(one["PutRequest"]["Item"]) for one in requests])
    return {"UnprocessedItems": {}}


def _query(table: Table, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the items of a partition from a sort key on."""
    if request["KeyConditionExpression"] != "(#n0 = :v0 AND #n1 >= :v1)":
        raise LookupError(f"no rule for {request['KeyConditionExpression']}")
    partition, first = (request["ExpressionAttributeValues"][name]["S"] for name in (":v0", ":v1"))
    items = table.query(partition, limit=MAX_ITEMS, first=first)
    return {"Items": [encode_item(item) for item in items], "Count": len(items)}


ANSWERS: Mapping[str, Callable[[Table, Mapping[str, Any]], dict[str, Any]]] = {
    "BatchWriteItem": _put_all,
    "GetItem": _get,
    "PutItem": _put,
    "Query": _query,
}
