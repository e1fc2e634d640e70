"""The `Queue` on SQS, over a boto3 client whose own retries are off (`resources`)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from chalicelib.aws.json_client import translate_errors
from chalicelib.storage.errors import StorageError, UnavailableError
from chalicelib.storage.ports import Message, NotSentError, check_delay
from chalicelib.storage.retry import Retry
from chalicelib.units import Seconds

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

BATCH_MESSAGES = 10
BATCH_BYTES = 262_144
"""Messages and their bytes in one SendMessageBatch (SQS API reference)."""


class SqsQueue:
    """A `ports.Queue` on one SQS queue. Delays are rounded up to whole seconds."""

    def __init__(self, client: SQSClient, url: str, retry: Retry | None = None) -> None:
        self._client = client
        self._url = url
        self._retry = retry or Retry()

    def send(self, body: str, *, delay: Seconds = 0.0) -> None:
        check_delay(delay)

        def once() -> None:
            with translate_errors():
                self._client.send_message(
                    QueueUrl=self._url, MessageBody=body, DelaySeconds=math.ceil(delay)
                )

        self._retry.call(once)

    def send_all(self, messages: Sequence[Message]) -> None:
        for message in messages:
            check_delay(message.delay)
        waiting = list(messages)
        refused: list[Message] = []
        reason = "refused by SQS"
        for _ in self._retry.rounds():
            left: list[Message] = []
            for chunk in _chunks(waiting):
                try:
                    left += self._send_batch(chunk, refused)
                except UnavailableError as unavailable:
                    left, reason = left + chunk, str(unavailable)
                except StorageError as refusal:
                    refused, reason = refused + chunk, str(refusal)
            waiting = left
            if not waiting:
                break
        if refused or waiting:
            raise NotSentError(refused + waiting, reason)

    def _send_batch(self, messages: Sequence[Message], refused: list[Message]) -> list[Message]:
        """Send up to ten messages; return those to try again, append refused ones to `refused`."""
        with translate_errors():
            response = self._client.send_message_batch(
                QueueUrl=self._url,
                Entries=[
                    {
                        "Id": str(place),
                        "MessageBody": message.body,
                        "DelaySeconds": math.ceil(message.delay),
                    }
                    for place, message in enumerate(messages)
                ],
            )
        failed = response.get("Failed", [])
        refused += [messages[int(entry["Id"])] for entry in failed if entry["SenderFault"]]
        return [messages[int(entry["Id"])] for entry in failed if not entry["SenderFault"]]


def _chunks(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """Yield batches as large as SQS accepts, by number and by bytes."""
    chunk: list[Message] = []
    size = 0
    for message in messages:
        length = len(message.body.encode())
        if chunk and (len(chunk) == BATCH_MESSAGES or size + length > BATCH_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(message)
        size += length
    if chunk:
        yield chunk
