"""Which Table and Queues this process uses, made on first use.

On AWS they come from the settings; the embedded engine and the tests put theirs in with `use`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Protocol

from chalicelib import telemetry
from chalicelib.cold_start import uncollected
from chalicelib.concurrency import Each, concurrently
from chalicelib.settings import Settings, required

if TYPE_CHECKING:
    from botocore.session import Session

    from chalicelib.ports import Queue, Table

ON_LAMBDA = "AWS_LAMBDA_FUNCTION_NAME"
"""Lambda sets it; elsewhere the logging of the process is its owner's."""
CONNECT_SECONDS = 1.0
READ_SECONDS = 1.0
"""One answer of DynamoDB or SQS takes milliseconds; a badge can't wait for one that does not."""


class Resources(Protocol):
    """Everything outside the process that the handlers touch.

    `clock` is seconds since 1970, `each` works through the independent parts of a batch.
    """

    @property
    def settings(self) -> Settings: ...
    @property
    def clock(self) -> Callable[[], float]: ...
    @property
    def each(self) -> Each: ...
    @property
    def table(self) -> Table: ...
    @property
    def views_queue(self) -> Queue: ...


class AwsResources:
    """DynamoDB and SQS, each imported and connected to when it is first needed."""

    clock = staticmethod(time.time)
    each = staticmethod(concurrently)

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @cached_property
    def table(self) -> Table:
        from chalicelib.dynamodb import DynamoTable  # noqa: PLC0415  paid for at cold start

        name = required("TABLE_NAME", self.settings.table_name, "the name of the DynamoDB table")
        return DynamoTable(aws_client("dynamodb"), name)

    @cached_property
    def views_queue(self) -> Queue:
        from chalicelib.sqs import SqsQueue  # noqa: PLC0415  paid for at cold start

        url = required(
            "VIEWS_QUEUE_URL", self.settings.views_queue_url, "the URL of the SQS queue for views"
        )
        return SqsQueue(aws_client("sqs"), url)


def aws_client(service: str) -> Any:
    """A boto3 client, made by botocore itself: 20 ms of cold start less, the same object."""
    with uncollected():
        from botocore.config import Config  # noqa: PLC0415  paid for at cold start

        config = Config(
            connect_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
            retries={"total_max_attempts": 1},
            max_pool_connections=32,
            # Its own would be put together anew for every request: 0.2 ms.
            user_agent="vu-mi",
        )
        return _session().create_client(service, config=config)


@cache
def _session() -> Session:
    """One for all clients: each session reads botocore's data anew, for 35 ms of cold start."""
    import botocore.session  # noqa: PLC0415  paid for at cold start

    return botocore.session.get_session()


class _Process:
    resources: Resources | None = None


def current() -> Resources:
    """What this process uses; made from the environment where nothing was put in."""
    if _Process.resources is None:
        if ON_LAMBDA in os.environ:
            telemetry.start_on_lambda()
        _Process.resources = AwsResources(Settings.from_environment(os.environ))
    return _Process.resources


def use(resources: Resources | None) -> None:
    """Put in what this process is to use; None takes it out again."""
    _Process.resources = resources
