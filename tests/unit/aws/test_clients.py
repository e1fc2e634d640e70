"""The queue on SQS, the archive on S3 and their clients: retries are left to `Retry`."""

from __future__ import annotations

from typing import Any, cast

import pytest
from boto3.dynamodb.types import TypeSerializer
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    EndpointConnectionError,
    NoCredentialsError,
    ParamValidationError,
    ReadTimeoutError,
    SSLError,
)
from hypothesis import given
from hypothesis import strategies as st
from moto import mock_aws
from types_boto3_sqs import SQSClient

from chalicelib.aws.attribute_values import decode, encode
from chalicelib.aws.clients import S3Archive, aws_client
from chalicelib.aws.json_client import meaning, translate_errors
from chalicelib.aws.sqs import SqsQueue
from chalicelib.storage.errors import StorageError, StorageRefusedError, UnavailableError
from chalicelib.storage.items import Value
from simulation.aws_clients import FakeClient, client_error, script
from simulation.clocks import FakeTime

URL = "https://sqs.us-east-1.amazonaws.com/123456789012/vu-mi-views"
SENT = {"MessageId": "1"}


def queue(client: FakeClient, time: FakeTime | None = None) -> SqsQueue:
    return SqsQueue(cast("SQSClient", client), URL, (time or FakeTime()).retry(attempts=3))


@pytest.mark.parametrize("delay", [0, 1, 900])
def test_a_message_is_sent_once_with_its_delay(delay: int) -> None:
    client = script(SENT)
    queue(client).send("body", delay=delay)
    request = {"QueueUrl": URL, "MessageBody": "body", "DelaySeconds": delay}
    assert client.calls == [("send_message", request)]


@pytest.mark.parametrize(
    "fault",
    [
        client_error("AWS.SimpleQueueService.RequestThrottled"),
        ReadTimeoutError(endpoint_url=URL),
    ],
)
def test_a_temporary_fault_is_retried_after_a_wait(fault: Exception) -> None:
    client, time = script(fault, fault, SENT), FakeTime()
    queue(client, time).send("body", delay=5)
    assert client.requests == [client.requests[0]] * 3
    assert time.slept == [0.05, 0.1]


@pytest.mark.parametrize(
    "fault",
    [
        client_error("AWS.SimpleQueueService.NonExistentQueue"),
        NoCredentialsError(),
    ],
)
def test_a_permanent_fault_is_refused_immediately(fault: Exception) -> None:
    client, time = script(fault), FakeTime()
    with pytest.raises(StorageRefusedError):
        queue(client, time).send("body")
    assert (len(client.calls), time.slept) == (1, [])


SLOW_DOWN = client_error("SlowDown", 503)


def test_a_put_that_s3_throttles_is_retried() -> None:
    client = script(SLOW_DOWN, client_error("InternalError", 500), {})
    S3Archive(client, "bucket", FakeTime().retry()).put("a/b", b"whole")
    assert (
        client.calls == [("put_object", {"Bucket": "bucket", "Key": "a/b", "Body": b"whole"})] * 3
    )


@pytest.mark.parametrize(("code", "status"), [("NoSuchBucket", 404), ("AccessDenied", 403)])
def test_a_missing_or_closed_bucket_is_refused_immediately(code: str, status: int) -> None:
    client = script(client_error(code, status))
    with pytest.raises(StorageRefusedError, match=code):
        S3Archive(client, "bucket", FakeTime().retry()).put("a", b"")
    assert len(client.calls) == 1


# ---- the clients of botocore


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


# ---- the meaning of errors: retry, or never


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


# ---- the wire form


NUMBERS = st.integers(min_value=-(10**38) + 1, max_value=10**38 - 1)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.text() | NUMBERS,
    lambda parts: st.lists(parts) | st.dictionaries(st.text(), parts),
    max_leaves=10,
)


@given(VALUES)
def test_a_value_is_decoded_unchanged(value: Value) -> None:
    assert decode(encode(value)) == value


@given(VALUES)
def test_the_wire_form_equals_that_of_boto3(value: Value) -> None:
    assert encode(value) == TypeSerializer().serialize(value)


@pytest.mark.parametrize(
    "foreign",
    [
        {"BOOL": True},
        {"NULL": True},
        {"B": b"x"},
        {"SS": ["x"]},
        {"NS": ["1"]},
        {"BS": [b"x"]},
        {"N": "1.5"},
        {"N": "1E+2"},
        {},
    ],
)
def test_a_type_that_this_program_never_writes_is_refused(foreign: dict[str, Any]) -> None:
    for held in (foreign, {"L": [foreign]}, {"M": {"name": foreign}}):
        with pytest.raises(StorageRefusedError, match="not written by this program"):
            decode(held)


def test_a_number_is_exact_to_its_38th_digit() -> None:
    digits = "12345678901234567890123456789012345678"
    value = decode({"N": digits})
    assert type(value) is int
    assert str(value) == digits
