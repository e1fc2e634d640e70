"""A table on an AWS endpoint, made from the template that deploys it."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.hooks import first_non_none_response
from botocore.session import get_session
from moto import mock_aws

from chalicelib.aws.clients import CONFIG, aws_client
from chalicelib.aws.dynamodb import DynamoTable
from chalicelib.aws.json_client import HttpReply, JsonClient, json_client
from deploy import template

CREATE_TABLE = (
    "AttributeDefinitions",
    "BillingMode",
    "KeySchema",
    "GlobalSecondaryIndexes",
)
"""Properties that CloudFormation and CreateTable have in common."""
PATIENT = CONFIG.merge(Config(read_timeout=60.0))
"""The configuration on Lambda with a longer timeout, because a busy machine may need a second."""


@cache
def table_properties() -> Mapping[str, Any]:
    """Return the properties of the table in the template, which takes 40 ms to parse."""
    properties: dict[str, Any] = template.load()["Resources"]["Table"]["Properties"]
    return properties


def create_table(client: Any, name: str, *, has_index: bool = True) -> str:
    """Make the table with its TTL and stream, and return the stream's ARN."""
    properties = table_properties()
    stream = {"StreamEnabled": True, **properties["StreamSpecification"]}
    answer = client.create_table(
        TableName=name, StreamSpecification=stream, **_create_request(has_index=has_index)
    )
    client.get_waiter("table_exists").wait(TableName=name)
    client.update_time_to_live(
        TableName=name, TimeToLiveSpecification=properties["TimeToLiveSpecification"]
    )
    arn: str = answer["TableDescription"]["LatestStreamArn"]
    return arn


def _create_request(*, has_index: bool) -> dict[str, Any]:
    properties = table_properties()
    request = {key: properties[key] for key in CREATE_TABLE if key in properties}
    if has_index:
        return request
    names = [part["AttributeName"] for part in request["KeySchema"]]
    attributes = [one for one in request["AttributeDefinitions"] if one["AttributeName"] in names]
    del request["GlobalSecondaryIndexes"]
    return {**request, "AttributeDefinitions": attributes}


def new_name() -> str:
    """Return a name that no other table has."""
    return f"vu-mi-{uuid.uuid4()}"


@contextmanager
def new_table(client: Any, sender: Any = None) -> Iterator[DynamoTable]:
    """Make a table with a name of its own, and delete it at the end of the block.

    `sender` is the client of the table itself, by default the same client.
    """
    name = new_name()
    create_table(client, name)
    yield DynamoTable(sender or client, name)
    client.delete_table(TableName=name)


@contextmanager
def bare_table(client: Any) -> Iterator[DynamoTable]:
    """Make a table without index, TTL and stream, which takes a fraction of the time."""
    name = new_name()
    client.create_table(TableName=name, **_create_request(has_index=False))
    yield DynamoTable(client, name)
    client.delete_table(TableName=name)


@contextmanager
def moto_table() -> Iterator[DynamoTable]:
    """Make a table on moto."""
    with mock_aws():
        client = aws_client("dynamodb")
        with new_table(client, moto_client("dynamodb", client)) as table:
            yield table
        client.close()


def moto_client(service: str, client: Any) -> JsonClient:
    """Return the client of Lambda functions. Its requests go to moto as those of another client."""

    def send(headers: Mapping[str, str], body: bytes) -> HttpReply:
        url = f"{client.meta.endpoint_url}/"
        request = AWSRequest("POST", url, headers=headers, data=body)
        answers = client.meta.events.emit("before-send", request=request.prepare())
        answered = first_non_none_response(answers)
        return HttpReply(answered.status_code, answered.headers, answered.content)

    return json_client(service, os.environ, time.time, send)


def endpoint_client(service: str, url: str | None = None) -> Any:
    """Return a client of the endpoint at a URL, or at `AWS_ENDPOINT_URL`."""
    return get_session().create_client(service, endpoint_url=url, config=PATIENT)


@contextmanager
def endpoint_table() -> Iterator[DynamoTable]:
    """Make a table at `AWS_ENDPOINT_URL`."""
    client = endpoint_client("dynamodb")
    with new_table(client) as table:
        yield table
    client.close()
