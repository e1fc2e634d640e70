"""The resources of a Lambda function: DynamoDB, SQS and S3, each connected to on first use."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from functools import cache, cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from chalicelib import telemetry
from chalicelib.aws.cold_start import uncollected
from chalicelib.concurrency import map_parallel
from chalicelib.lazy import lazy
from chalicelib.resources import Resources
from chalicelib.settings import Settings, required
from chalicelib.views.view_queue import ViewMessages, ViewQueue

if TYPE_CHECKING:
    from botocore import config as botocore_config
    from botocore import session as botocore_session
    from botocore.session import Session

    from chalicelib.aws import dynamodb, s3, sqs
    from chalicelib.events import claims
    from chalicelib.events.claims import Claims
    from chalicelib.events.webhooks import sender
    from chalicelib.events.webhooks.sender import Sender
    from chalicelib.storage.ports import Archive, Queue, Table
else:
    botocore_config, botocore_session = lazy("botocore.config"), lazy("botocore.session")
    dynamodb, s3 = lazy("chalicelib.aws.dynamodb"), lazy("chalicelib.aws.s3")
    sqs, claims = lazy("chalicelib.aws.sqs"), lazy("chalicelib.events.claims")
    sender = lazy("chalicelib.events.webhooks.sender")

ON_LAMBDA = "AWS_LAMBDA_FUNCTION_NAME"
"""Lambda sets it; elsewhere the logging of the process is its owner's."""
CONNECT_SECONDS = 1.0
READ_SECONDS = 1.0
"""One answer of DynamoDB or SQS takes milliseconds; a badge can't wait for one that does not."""
SERVICES = ("dynamodb", "s3", "sqs")
"""All that clients are made for."""


class AwsResources:
    """DynamoDB, SQS and S3, each imported and connected to when it is first needed."""

    clock = view_clock = staticmethod(time.time)
    map_parallel = staticmethod(map_parallel)

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @cached_property
    def table(self) -> Table:
        name = required("TABLE_NAME", self.settings.table_name, "the name of the DynamoDB table")
        return dynamodb.DynamoTable(aws_client("dynamodb"), name)

    @cached_property
    def views_queue(self) -> ViewQueue:
        queue = self._queue("VIEWS_QUEUE_URL", self.settings.views_queue_url)
        return ViewMessages(queue)

    @cached_property
    def timers_queue(self) -> Queue:
        return self._queue("TIMERS_QUEUE_URL", self.settings.timers_queue_url)

    @cached_property
    def distribution_queue(self) -> Queue:
        return self._queue("DISTRIBUTION_QUEUE_URL", self.settings.distribution_queue_url)

    @cached_property
    def claims(self) -> Claims:
        return claims.Leases()

    @cached_property
    def archive(self) -> Archive:
        bucket = self.settings.archive_bucket
        return s3.S3Archive(
            aws_client("s3"), required("ARCHIVE_BUCKET", bucket, "the name of an S3 bucket")
        )

    def event_queue(self, name: str) -> Queue | None:
        url = self.settings.event_queues.get(name)
        return None if url is None else self._queue(f"EVENT_QUEUES, {name}=", url)

    @cached_property
    def sender(self) -> Sender | None:
        return sender.sender_of(self.settings)

    def _queue(self, setting: str, url: str) -> Queue:
        return sqs.SqsQueue(_sqs(), required(setting, url, "the URL of an SQS queue"))


@cache
def _sqs() -> Any:
    return aws_client("sqs")


def aws_client(service: str) -> Any:
    """A boto3 client, made by botocore itself: 20 ms of cold start less, the same object."""
    with uncollected():
        config = botocore_config.Config(
            connect_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
            retries={"total_max_attempts": 1},
            max_pool_connections=32,
            # Its own would be put together anew for every request: 0.2 ms.
            user_agent="vu-mi",
            # DynamoDB and SQS check each request themselves: a tenth of the time of a GET.
            parameter_validation=False,
        )
        client = _session().create_client(service, config=config)
        if service == "dynamodb":
            client.meta.events.register("before-parse.dynamodb.Query", _take_as_sent)
        return client


def _take_as_sent(
    response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: object
) -> None:
    """Take the answer to a Query as it was sent, because botocore parses it into the same.

    It would parse each attribute by its model, for a fifth of the time of a GET. Errors are left
    to botocore, and a version of botocore without this event parses all answers.
    """
    with suppress(ValueError):
        if response_dict["status_code"] == HTTPStatus.OK:
            customized_response_dict.update(json.loads(response_dict["body"]))
            response_dict["body"] = b"{}"


@cache
def _session() -> Session:
    """One for all clients: each session reads botocore's data anew, for 35 ms of cold start.

    It is told which services there are: botocore would look for them in some 900 folders.
    """
    session = botocore_session.get_session()
    session.get_component("data_loader").list_available_services = lambda _: SERVICES
    return session


class _Process:
    resources: Resources | None = None


def current() -> Resources:
    """Return the resources of this process; made from the environment on first use."""
    if _Process.resources is None:
        _Process.resources = _from_environment()
    return _Process.resources


def use(resources: Resources | None) -> None:
    """Set the resources of this process; None lets `current` make new ones."""
    _Process.resources = resources


def _from_environment() -> AwsResources:
    if ON_LAMBDA in os.environ:
        telemetry.start_on_lambda()
    return AwsResources(Settings.from_environment(os.environ))
