"""The rights that the IAM policy of a function grants, and those that a request to AWS needs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from deploy.http_api import APART
from deploy.stage import FUNCTIONS as OF_CHALICE
from deploy.stage import Folder
from deploy.template import ALL_FEATURES, choose

FUNCTIONS = [*OF_CHALICE, *APART.values()]
Right: TypeAlias = tuple[str, str]
"""An action and its resource: a name of the template, or a text with such names in it."""
Keys: TypeAlias = tuple[str, str]
"""The table or its index, and the pattern of IAM for a kind of its partition keys."""

TABLE, STREAM, STREAMS = "Table.Arn", "Table.StreamArn", "${Table.Arn}/stream/*"
INDEX = "${Table.Arn}/index/due"
QUEUE, DELIVERY_QUEUE, DISTRIBUTION_QUEUE = (
    f"{name}.Arn" for name in ("ViewsQueue", "DeliveryQueue", "DistributionQueue")
)
EVENT_QUEUES = "EventQueueArns"
"""The queues that the operator has listed for events: a parameter of the stack."""
QUEUES = {QUEUE, DELIVERY_QUEUE, DISTRIBUTION_QUEUE, EVENT_QUEUES}
ARCHIVE = "${Archive.Arn}/journal/*"
"""The objects of the archive, and no others of its bucket."""
PUBLIC = {name: f"{name}.Arn" for name in ("GetViews", "APIHandler", "Authorize")}
"""The functions that the public reaches, by their names here."""
RESTORED = "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/${RestoredTable}"
OF_RESTORED = {
    TABLE: RESTORED,
    INDEX: f"{RESTORED}/index/due",
    **dict.fromkeys((STREAM, STREAMS), f"{RESTORED}/stream/*"),
}
"""The resources of a restored table, which is not the template's, by those of the template."""
READ_ALONE = [(["TOKEN#*"], ["dynamodb:GetItem"]), (["BANS"], ["dynamodb:Query"])]
"""The keys and the actions of statements about items that no transaction has."""
LOG = (
    "arn:${AWS::Partition}:logs:${AWS::Region}:${AWS::AccountId}"
    ":log-group:/aws/lambda/${AWS::StackName}-"
)
CONSUMED = {
    "put_views": QUEUE,
    "distribute_events": DISTRIBUTION_QUEUE,
    "deliver_events": DELIVERY_QUEUE,
}

ITEMS = "BatchGetItem BatchWriteItem DeleteItem GetItem PutItem Query UpdateItem"
SINGLE = {f"dynamodb:{name}" for name in ITEMS.split()} | {
    "lambda:DeleteFunctionConcurrency",
    "lambda:PutFunctionConcurrency",
    "s3:PutObject",
    "sqs:SendMessage",
}
"""Operations that require the action of the same name.

Source: the service authorization reference, "Actions, resources, and condition keys".
"""
BATCHES = {"SendMessageBatch": "sqs:SendMessage"}
"""Operations that require another action.

Source: the SQS developer guide, "Amazon SQS API permissions: Actions and resource reference".
"""
TRANSACTED = {
    "ConditionCheck": "dynamodb:ConditionCheckItem",
    "Delete": "dynamodb:DeleteItem",
    "Put": "dynamodb:PutItem",
    "Update": "dynamodb:UpdateItem",
}
"""The actions that a transaction requires for its writes.

Source: the DynamoDB developer guide, "Using IAM with DynamoDB transactions".
"""


def lambdas_own(function: str) -> set[Right]:
    """Return the rights that Lambda itself needs: to read the function's events and write its log.

    Sources: the SQS developer guide, "Configuring an Amazon SQS queue to trigger an AWS Lambda
    function"; the DynamoDB developer guide, "IAM policy to allow an AWS Lambda function to access
    DynamoDB stream records"; the Lambda developer guide, "Sending Lambda function logs to
    CloudWatch Logs". The stack makes the log group, so the function does not have to.
    """
    own = {(f"logs:{name}", f"{LOG}{function}:*") for name in ("CreateLogStream", "PutLogEvents")}
    if queue := CONSUMED.get(function):
        receiving = ("DeleteMessage", "GetQueueAttributes", "ReceiveMessage")
        own |= {(f"sqs:{name}", queue) for name in receiving}
    if function in {"fold_views", "archive_entries"}:
        reading = ("DescribeStream", "GetRecords", "GetShardIterator")
        own |= {(f"dynamodb:{name}", STREAM) for name in reading}
        own.add(("dynamodb:ListStreams", STREAMS))
    return own


def statements(function: str, **truths: bool) -> list[dict[str, Any]]:
    """Return the statements of a policy, by default with all features and queues of events."""
    written = json.loads(Folder().policy(function).read_text())
    decided = {**ALL_FEATURES, "IsRestored": False, "HasEventQueues": True, **truths}
    chosen = choose(written, decided)
    assert {part["Effect"] for part in chosen["Statement"]} == {"Allow"}
    return list(chosen["Statement"])


def resource_of(statement: Mapping[str, Any]) -> str:
    match statement["Resource"]:
        case {"Fn::GetAtt": [str(name), str(attribute)]}:
            return f"{name}.{attribute}"
        case {"Fn::Sub": str(text)} | {"Ref": str(text)}:
            return text
    raise AssertionError(f"a policy must name its resource, not {statement['Resource']!r}")


def leading_keys(statement: Mapping[str, Any]) -> list[str]:
    """Return the patterns of partition keys that a statement covers; none if it is about no items.

    A request may have several keys, and all of them must match. Source: the DynamoDB developer
    guide, "Using IAM policy conditions for fine-grained access control".
    """
    match statement.get("Condition"):
        case {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": [*patterns]}}:
            return patterns
    assert resource_of(statement) not in {TABLE, INDEX, RESTORED}, "it must name the keys"
    return []


def granted(function: str, **truths: bool) -> dict[str, set[Right] | set[Keys]]:
    """Return the rights of a policy, each action with each resource, and the keys of its items."""
    found = [(resource_of(one), one) for one in statements(function, **truths)]
    return {
        "rights": {(action, where) for where, one in found for action in one["Action"]},
        "keys": {(where, keys) for where, one in found for keys in leading_keys(one)},
    }


def actions(service: str, operation: str, params: Mapping[str, Any]) -> set[str]:
    """Return the actions that a request requires."""
    if operation == "TransactWriteItems":
        return {TRANSACTED[kind] for item in params["TransactItems"] for kind in item}
    if operation in BATCHES:
        return {BATCHES[operation]}
    assert f"{service}:{operation}" in SINGLE, f"no action is known for {operation}"
    return {f"{service}:{operation}"}


def partitions(params: Mapping[str, Any]) -> Iterator[str]:
    """Return the partition keys in a request to DynamoDB; a query of the index has the index's."""
    match params:
        case {"TransactItems": [*items]}:
            for item in items:
                yield from (key for write in item.values() for key in partitions(write))
        case {"RequestItems": {"vu-mi": {"Keys": [*found]}}}:
            yield from (key["PK"]["S"] for key in found)
        case {"RequestItems": {"vu-mi": [*requests]}}:
            yield from (request["PutRequest"]["Item"]["PK"]["S"] for request in requests)
        case {"Key": {"PK": {"S": str(key)}}} | {"Item": {"PK": {"S": str(key)}}}:
            yield key
        case {"IndexName": _, "ExpressionAttributeValues": {":batch": {"S": str(key)}}}:
            yield key
        case {"KeyConditionExpression": _, "ExpressionAttributeValues": {":pk": {"S": str(key)}}}:
            yield key
        case _:
            raise AssertionError(f"a request must name its partition key: {params}")


def pattern(key: str) -> str:
    """Return the pattern of a kind of items: their keys up to the first `#`, or the whole key."""
    kind, separator, _ = key.partition("#")
    return f"{kind}#*" if separator else kind


NAMED_BY = ("TableName", "QueueUrl", "Bucket", "FunctionName")


def names_in(params: Mapping[str, Any]) -> Iterator[str]:
    """Return the tables, queues, buckets and functions in a request."""
    yield from (params[name] for name in NAMED_BY if name in params)
    yield from params.get("RequestItems", ())
    for item in params.get("TransactItems", ()):
        yield from (write["TableName"] for write in item.values())
