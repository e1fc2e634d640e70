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
from chalicelib.storage.errors import Refused, StorageError, Unavailable
from chalicelib.storage.ports import NotStored
from chalicelib.storage.writes import ConditionFailed
from simulation.aws_clients import client_error

URL = "https://dynamodb.us-east-1.amazonaws.com/"


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("ProvisionedThroughputExceededException", 400, Unavailable),
        ("TransactionConflictException", 400, Unavailable),
        ("RequestThrottled", 400, Unavailable),
        ("Unheard", 500, Unavailable),
        ("Unheard", 499, Refused),
        ("ValidationException", 400, Refused),
        ("AccessDeniedException", 400, Refused),
        ("AWS.SimpleQueueService.NonExistentQueue", 400, Refused),
        ("", 400, Refused),
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
        (EndpointConnectionError(endpoint_url=URL), Unavailable),
        (ReadTimeoutError(endpoint_url=URL), Unavailable),
        (ConnectionClosedError(endpoint_url=URL), Unavailable),
        (SSLError(endpoint_url=URL, error=OSError("handshake")), Unavailable),
        (NoCredentialsError(), Refused),
        (ParamValidationError(report="Key is missing"), Refused),
    ],
)
def test_an_unreachable_service_is_unavailable_and_a_call_that_could_not_be_made_refused(
    error: BotoCoreError, kind: type[StorageError]
) -> None:
    with pytest.raises(kind), translate_errors():
        raise error


@pytest.mark.parametrize(
    "error",
    [Unavailable("x"), Refused("x"), NotStored([], "x"), ConditionFailed({0: None}), KeyError("x")],
)
def test_another_error_is_raised_unchanged(error: Exception) -> None:
    with pytest.raises(type(error)) as raised, translate_errors():
        raise error
    assert raised.value is error
