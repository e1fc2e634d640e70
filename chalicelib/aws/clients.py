"""botocore's clients of AWS, for the archive in S3 and for an operator's commands.

Lambda functions use `json_client` for DynamoDB and SQS. An operator has profiles, which it does not
read. boto3 creates the same clients, but takes longer.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from botocore.config import Config
from botocore.session import get_session

from chalicelib.aws.json_client import translate_errors
from chalicelib.storage.ports import check_object_name
from chalicelib.storage.retry import Retry

CONFIG = Config(
    # DynamoDB and SQS answer within milliseconds, and a badge can't wait longer than this.
    connect_timeout=1.0,
    read_timeout=1.0,
    # Only `Retry` repeats calls.
    retries={"total_max_attempts": 1},
    max_pool_connections=32,
    # By default, botocore composes it for each request, in 0.2 ms.
    user_agent="vu-mi",
    # DynamoDB and SQS check each request themselves; botocore's check takes a tenth of a GET.
    parameter_validation=False,
)

_session = cache(get_session)
"""The session that all clients share, so a role is assumed once, with one code of MFA."""


def aws_client(service: str, config: Config | None = CONFIG) -> Any:
    """Return a new client of a service, of botocore's defaults without a `config`."""
    return _session().create_client(service, config=config)


class S3Archive:
    """A `ports.Archive` in one bucket. S3 stores an object completely or not at all."""

    def __init__(self, client: Any, bucket: str, retry: Retry | None = None) -> None:
        self._client = client
        self._bucket = bucket
        self._retry = retry or Retry()

    def put(self, name: str, body: bytes) -> None:
        check_object_name(name)

        def once() -> None:
            with translate_errors():
                self._client.put_object(Bucket=self._bucket, Key=name, Body=body)

        self._retry.call(once)
