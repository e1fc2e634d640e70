"""The clients of AWS: they leave retries to `Retry` and checks to the services."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError, UnknownServiceError
from moto import mock_aws

from chalicelib.aws.clients import SERVICES, aws_client


@pytest.mark.parametrize("service", SERVICES)
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


def test_botocore_does_not_search_for_services() -> None:
    """Otherwise it would search its hundreds of folders at each cold start."""
    with pytest.raises(UnknownServiceError, match=f"service names are: {', '.join(SERVICES)}$"):
        aws_client("ec2")
