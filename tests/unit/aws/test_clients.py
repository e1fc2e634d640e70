"""The clients of AWS: they leave retries to `Retry` and checks to the services."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from chalicelib.aws.clients import aws_client


@pytest.mark.parametrize("service", ["dynamodb", "s3", "sqs"])
def test_a_client_tries_once_and_gives_up_after_a_second(
    monkeypatch: pytest.MonkeyPatch, service: str
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    config = aws_client(service).meta.config
    assert config.retries["total_max_attempts"] == 1
    assert (config.connect_timeout, config.read_timeout) == (1.0, 1.0)


def test_only_the_service_validates_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws(), pytest.raises(ClientError, match="ResourceNotFoundException"):
        aws_client("dynamodb").get_item(TableName="none", Key={}, ConsistentRead="no boolean")
