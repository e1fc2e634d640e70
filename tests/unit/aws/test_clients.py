"""The queue on SQS, the archive on S3 and their clients: retries are left to `Retry`."""

from __future__ import annotations

from typing import cast

import pytest
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
from moto import mock_aws
from types_boto3_sqs import SQSClient

from chalicelib.aws.clients import S3Archive, aws_client
from chalicelib.aws.errors import meaning, translate_errors
from chalicelib.aws.sqs import SqsQueue
from chalicelib.storage.errors import StorageError, StorageRefusedError, UnavailableError
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
