"""A table on an AWS endpoint, made from the template that deploys it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from moto import mock_aws

from chalicelib.aws.clients import aws_client
from chalicelib.aws.dynamodb import DynamoTable
from deploy import template

CREATE_TABLE = (
    "AttributeDefinitions",
    "BillingMode",
    "KeySchema",
    "GlobalSecondaryIndexes",
)
"""Properties that CloudFormation and CreateTable have in common."""


def table_properties() -> dict[str, Any]:
    """Return the properties of the table in the template."""
    properties: dict[str, Any] = template.load()["Resources"]["Table"]["Properties"]
    return properties


def create_table(client: Any, name: str) -> str:
    """Make the table with its TTL and stream, and return the stream's ARN."""
    properties = table_properties()
    request = {key: properties[key] for key in CREATE_TABLE if key in properties}
    stream = {"StreamEnabled": True, **properties["StreamSpecification"]}
    answer = client.create_table(TableName=name, StreamSpecification=stream, **request)
    client.get_waiter("table_exists").wait(TableName=name)
    client.update_time_to_live(
        TableName=name, TimeToLiveSpecification=properties["TimeToLiveSpecification"]
    )
    arn: str = answer["TableDescription"]["LatestStreamArn"]
    return arn


@contextmanager
def moto_table() -> Iterator[DynamoTable]:
    """Make a table on moto."""
    with mock_aws():
        client = aws_client("dynamodb")
        create_table(client, "vu-mi")
        yield DynamoTable(client, "vu-mi")
        client.close()
