"""The meaning of AWS's errors: retry, or never."""

from __future__ import annotations

import pytest
from botocore.exceptions import (
    BotoCoreError,
    ConnectionClosedError,
    EndpointConnectionError,
    NoCredentialsError,
    ParamValidationError,
    ReadTimeoutError,
    SSLError,
)

from chalicelib.aws.errors import code_of, meaning, translate_errors
from chalicelib.storage.errors import StorageError, StorageRefusedError, UnavailableError
from chalicelib.storage.ports import NotStoredError
from chalicelib.storage.writes import ConditionFailedError
from simulation.aws_clients import client_error

URL = "https://dynamodb.us-east-1.amazonaws.com/"


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("ProvisionedThroughputExceededException", 400, UnavailableError),
        ("TransactionConflictException", 400, UnavailableError),
        ("RequestThrottled", 400, UnavailableError),
        ("Unheard", 500, UnavailableError),
        ("Unheard", 499, StorageRefusedError),
        ("ValidationException", 400, StorageRefusedError),
        ("AccessDeniedException", 400, StorageRefusedError),
        ("AWS.SimpleQueueService.NonExistentQueue", 400, StorageRefusedError),
        ("", 400, StorageRefusedError),
    ],
)
def test_throttles_conflicts_and_faults_of_the_service_are_unavailable_and_others_refused(
    code: str, status: int, kind: type[StorageError]
) -> None:
    assert type(meaning(client_error(code, status))) is kind


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("ThrottlingException", "ThrottlingException"),
        ("AWS.SimpleQueueService.RequestThrottled", "RequestThrottled"),
    ],
)
def test_a_code_is_read_without_the_namespace_before_it(code: str, name: str) -> None:
    assert code_of(client_error(code)) == name


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (EndpointConnectionError(endpoint_url=URL), UnavailableError),
        (ReadTimeoutError(endpoint_url=URL), UnavailableError),
        (ConnectionClosedError(endpoint_url=URL), UnavailableError),
        (SSLError(endpoint_url=URL, error=OSError("handshake")), UnavailableError),
        (NoCredentialsError(), StorageRefusedError),
        (ParamValidationError(report="Key is missing"), StorageRefusedError),
    ],
)
def test_an_unreachable_service_is_unavailable_and_a_call_that_could_not_be_made_refused(
    error: BotoCoreError, kind: type[StorageError]
) -> None:
    with pytest.raises(kind), translate_errors():
        raise error


@pytest.mark.parametrize(
    "error",
    [
        UnavailableError("x"),
        StorageRefusedError("x"),
        NotStoredError([], "x"),
        ConditionFailedError({0: None}),
        KeyError("x"),
    ],
)
def test_another_error_is_raised_unchanged(error: Exception) -> None:
    with pytest.raises(type(error)) as raised, translate_errors():
        raise error
    assert raised.value is error
