"""The queue on SQS, and its errors when SQS fails."""

from __future__ import annotations

from typing import cast

import pytest
from botocore.exceptions import NoCredentialsError, ReadTimeoutError
from types_boto3_sqs import SQSClient

from chalicelib.aws.sqs import SqsQueue
from chalicelib.storage.errors import StorageRefusedError, UnavailableError
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


def test_a_fault_that_lasts_is_unavailable() -> None:
    client = script(*[client_error("RequestThrottled")] * 3)
    with pytest.raises(UnavailableError, match="RequestThrottled"):
        queue(client).send("body")
    assert len(client.calls) == 3


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
