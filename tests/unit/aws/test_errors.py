"""The meaning of AWS's errors: retry, or never."""

from __future__ import annotations

import pytest
from botocore.exceptions import (
    BotoCoreError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    NoRegionError,
    ParamValidationError,
    ReadTimeoutError,
    SSLError,
)

from chalicelib.aws.errors import code_of, meaning, translate_errors
from chalicelib.storage.errors import Refused, StorageError, Unavailable
from chalicelib.storage.ports import NotStored
from chalicelib.storage.writes import ConditionFailed
from simulation.aws_clients import client_error

URL = "https://dynamodb.us-east-1.amazonaws.com/"


@pytest.mark.parametrize(
    "code",
    [
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ThrottlingException",
        "TransactionConflictException",
        "TransactionInProgressException",
        "InternalServerError",
        "ServiceUnavailable",
        "RequestThrottled",
    ],
)
def test_a_throttle_a_conflict_and_a_fault_of_the_service_are_unavailable(code: str) -> None:
    assert type(meaning(client_error(code))) is Unavailable


@pytest.mark.parametrize(
    "code",
    [
        "ValidationException",
        "AccessDeniedException",
        "ResourceNotFoundException",
        "ItemCollectionSizeLimitExceededException",
        "UnrecognizedClientException",
        "AWS.SimpleQueueService.NonExistentQueue",
        "InvalidMessageContents",
        "",
    ],
)
def test_an_invalid_request_and_a_missing_right_are_refused(code: str) -> None:
    assert type(meaning(client_error(code))) is Refused


@pytest.mark.parametrize(
    ("status", "kind"), [(499, Refused), (500, Unavailable), (503, Unavailable)]
)
def test_an_unknown_error_of_the_server_is_unavailable(
    status: int, kind: type[StorageError]
) -> None:
    assert type(meaning(client_error("Unheard", status))) is kind


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("ThrottlingException", "ThrottlingException"),
        ("AWS.SimpleQueueService.NonExistentQueue", "NonExistentQueue"),
        ("AWS.SimpleQueueService.RequestThrottled", "RequestThrottled"),
    ],
)
def test_a_code_is_read_without_the_namespace_before_it(code: str, name: str) -> None:
    assert code_of(client_error(code)) == name


@pytest.mark.parametrize(
    "error",
    [
        EndpointConnectionError(endpoint_url=URL),
        ConnectTimeoutError(endpoint_url=URL),
        ReadTimeoutError(endpoint_url=URL),
        ConnectionClosedError(endpoint_url=URL),
        SSLError(endpoint_url=URL, error=OSError("handshake")),
    ],
)
def test_an_unreachable_service_is_unavailable(error: BotoCoreError) -> None:
    with pytest.raises(Unavailable), translate_errors():
        raise error


@pytest.mark.parametrize(
    "error",
    [NoCredentialsError(), NoRegionError(), ParamValidationError(report="Key is missing")],
)
def test_a_call_that_could_not_be_made_is_refused(error: BotoCoreError) -> None:
    with pytest.raises(Refused), translate_errors():
        raise error


@pytest.mark.parametrize(
    "error",
    [Unavailable("x"), Refused("x"), NotStored([], "x"), ConditionFailed({0: None}), KeyError("x")],
)
def test_another_error_is_raised_unchanged(error: Exception) -> None:
    with pytest.raises(type(error)) as raised, translate_errors():
        raise error
    assert raised.value is error
