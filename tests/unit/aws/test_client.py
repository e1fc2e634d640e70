"""The clients of AWS: they answer what botocore's own would, in less time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError
from moto import mock_aws

from chalicelib.aws.attribute_values import encode_item
from chalicelib.aws.resources import aws_client
from chalicelib.storage.items import Item
from simulation.aws_table import create_table

NAME = "vu-mi"
ITEMS: list[Item] = [
    {"PK": "p", "SK": "a", "text": "é", "number": -12, "list": ["x", 1], "map": {"h00": 7}},
    {"PK": "p", "SK": "b"},
    {"PK": "p", "SK": "c"},
]
ALL_OF_P: dict[str, Any] = {
    "TableName": NAME,
    "KeyConditionExpression": "PK = :p",
    "ExpressionAttributeValues": {":p": {"S": "p"}},
}


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "none")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        client = aws_client("dynamodb")
        create_table(client, NAME)
        for item in ITEMS:
            client.put_item(TableName=NAME, Item=encode_item(item))
        yield client


@pytest.mark.parametrize(
    "asked",
    [{}, {"Limit": 2}, {"Select": "COUNT"}, {"ReturnConsumedCapacity": "TOTAL", "Limit": 1}],
)
def test_a_query_is_answered_as_by_a_client_of_boto3(ours: Any, asked: dict[str, Any]) -> None:
    theirs: Any = boto3.client("dynamodb")
    answers = [client.query(**ALL_OF_P, **asked) for client in (ours, theirs)]
    for answer in answers:
        assert answer.pop("ResponseMetadata")["HTTPStatusCode"] == 200
    assert answers[0] == answers[1]


def test_the_items_of_a_query_are_taken_as_sent(ours: Any) -> None:
    """A parser of botocore would leave out a type that its model does not have."""
    answering(ours, 200, b'{"Count": 1, "Items": [{"SK": {"NEW": "1"}}]}')
    assert ours.query(**ALL_OF_P)["Items"] == [{"SK": {"NEW": "1"}}]


def test_an_error_of_a_query_is_raised(ours: Any) -> None:
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        ours.query(**ALL_OF_P | {"TableName": "other"})


def test_an_answer_that_is_no_json_is_left_to_botocore(ours: Any) -> None:
    answering(ours, 200, b"<html>")
    assert "Items" not in ours.query(**ALL_OF_P)


def test_a_request_is_checked_by_the_service_alone(ours: Any) -> None:
    answering(ours, 200, b'{"Count": 0, "Items": []}')
    assert ours.query(**ALL_OF_P | {"ReturnConsumedCapacity": 5})["Items"] == []


def answering(client: Any, status: int, body: bytes) -> None:
    """Answer each request of a client with this."""

    class Raw:
        def stream(self) -> Iterator[bytes]:
            yield body

    def answer(request: Any, **_: object) -> AWSResponse:
        return AWSResponse(request.url, status, {}, Raw())  # type: ignore[arg-type]

    client.meta.events.register_first("before-send.dynamodb", answer)
