"""The `Queue` on SQS, over a boto3 client whose own retries are off (`resources`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chalicelib.aws_errors import translated
from chalicelib.ports import check_delay
from chalicelib.retry import Retry

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient


class SqsQueue:
    """A `ports.Queue` on one SQS queue."""

    def __init__(self, client: SQSClient, url: str, retry: Retry | None = None) -> None:
        self._client = client
        self._url = url
        self._retry = retry or Retry()

    def send(self, body: str, *, delay: int = 0) -> None:
        check_delay(delay)
        self._retry.call(lambda: self._send_once(body, delay))

    def _send_once(self, body: str, delay: int) -> None:
        with translated():
            self._client.send_message(QueueUrl=self._url, MessageBody=body, DelaySeconds=delay)
