"""The `Archive` in an S3 bucket, over a boto3 client whose own retries are off (`resources`)."""

from __future__ import annotations

from typing import Protocol

from chalicelib.aws.errors import translate_errors
from chalicelib.storage.ports import check_object_name
from chalicelib.storage.retry import Retry


class S3Client(Protocol):
    """The part of boto3's client that is used."""

    def put_object(self, *, Bucket: str, Key: str, Body: bytes) -> object:  # noqa: N803
        """Call S3's PutObject."""


class S3Archive:
    """A `ports.Archive` in one bucket. S3 stores an object completely or not at all."""

    def __init__(self, client: S3Client, bucket: str, retry: Retry | None = None) -> None:
        self._client = client
        self._bucket = bucket
        self._retry = retry or Retry()

    def put(self, name: str, body: bytes) -> None:
        check_object_name(name)
        self._retry.call(lambda: self._put_once(name, body))

    def _put_once(self, name: str, body: bytes) -> None:
        with translate_errors():
            self._client.put_object(Bucket=self._bucket, Key=name, Body=body)
