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
from chalicelib.concurrency import concurrently
from chalicelib.resources import Resources
from chalicelib.settings import Settings, SettingsError, required

if TYPE_CHECKING:
    from botocore.session import Session

    from chalicelib.events.claims import Claims
    from chalicelib.events.webhooks.sender import Sender
    from chalicelib.storage.ports import Archive, Queue, Table

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
    each = staticmethod(concurrently)

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @cached_property
    def table(self) -> Table:
        from chalicelib.aws.dynamodb import DynamoTable  # noqa: PLC0415  paid for at cold start

        name = required("TABLE_NAME", self.settings.table_name, "the name of the DynamoDB table")
        return DynamoTable(aws_client("dynamodb"), name)

    @cached_property
    def views_queue(self) -> Queue:
        return self._queue("VIEWS_QUEUE_URL", self.settings.views_queue_url)

    @cached_property
    def timers_queue(self) -> Queue:
        return self._queue("TIMERS_QUEUE_URL", self.settings.timers_queue_url)

    @cached_property
    def distribution_queue(self) -> Queue:
        return self._queue("DISTRIBUTION_QUEUE_URL", self.settings.distribution_queue_url)

    @cached_property
    def claims(self) -> Claims:
        from chalicelib.events.claims import Leases  # noqa: PLC0415  no view needs it

        return Leases()

    @cached_property
    def archive(self) -> Archive:
        from chalicelib.aws.s3 import S3Archive  # noqa: PLC0415  paid for at cold start

        bucket = self.settings.archive_bucket
        return S3Archive(
            aws_client("s3"), required("ARCHIVE_BUCKET", bucket, "the name of an S3 bucket")
        )

    def event_queue(self, name: str) -> Queue | None:
        url = self.settings.event_queues.get(name)
        return None if url is None else self._queue(f"EVENT_QUEUES, {name}=", url)

    @cached_property
    def sender(self) -> Sender | None:
        return sender_of(self.settings)

    def _queue(self, setting: str, url: str) -> Queue:
        from chalicelib.aws.sqs import SqsQueue  # noqa: PLC0415  paid for at cold start

        return SqsQueue(_sqs(), required(setting, url, "the URL of an SQS queue"))


def sender_of(settings: Settings) -> Sender | None:
    """What posts webhooks by these settings. Raises `SettingsError` for wrong ones."""
    from chalicelib.events.webhooks import addresses, sender, signing  # noqa: PLC0415  no view needs it

    try:
        allowed = addresses.Allowed.parse(settings.webhook_allow)
        if not settings.webhook_secrets:
            return None
        signer = signing.Signer(settings.webhook_secrets)
    except addresses.BadNetworkError as wrong:
        raise SettingsError(str(wrong)) from wrong
    except signing.BadSecretError as wrong:
        raise SettingsError(f"WEBHOOK_SECRETS: {wrong}") from wrong
    return sender.Sender(signer, allowed)


@cache
def _sqs() -> Any:
    return aws_client("sqs")


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
    import botocore.session  # noqa: PLC0415  paid for at cold start

    session = botocore.session.get_session()
    session.get_component("data_loader").list_available_services = lambda _: SERVICES
    return session


class _Process:
    resources: Resources | None = None
    timers: Any = None
    archive: Any = None
    made: AwsResources | None = None


def current() -> Resources:
    """Return the resources of this process; made from the environment on first use."""
    return _Process.resources or _from_environment()


def for_timers() -> Resources:
    """Return the resources of this process for events."""
    timers: Resources = _Process.timers or _from_environment()
    return timers


def for_archive() -> Resources:
    """Return the resources of this process for the archive."""
    archive: Resources = _Process.archive or _from_environment()
    return archive


def use(resources: Any, timers: Any = None, archive: Any = None) -> None:
    """Set the resources of this process; None lets `current` make new ones."""
    _Process.resources, _Process.timers, _Process.archive = resources, timers, archive
    _Process.made = None


def _from_environment() -> AwsResources:
    if _Process.made is None:
        if ON_LAMBDA in os.environ:
            telemetry.start_on_lambda()
        _Process.made = AwsResources(Settings.from_environment(os.environ))
    return _Process.made
