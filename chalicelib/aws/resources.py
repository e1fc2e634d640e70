"""The resources of a Lambda function: DynamoDB, SQS and S3, each connected to on first use."""

from __future__ import annotations

import os
import time
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from chalicelib import telemetry
from chalicelib.aws.cold_start import uncollected
from chalicelib.concurrency import concurrently
from chalicelib.lazy import lazy
from chalicelib.resources import Resources
from chalicelib.settings import Settings, SettingsError, required

if TYPE_CHECKING:
    from chalicelib.aws import clients, dynamodb, s3, sqs
    from chalicelib.events.claims import Claims
    from chalicelib.events.webhooks.sender import Sender
    from chalicelib.storage.ports import Archive, Queue, Table
else:
    clients, dynamodb = lazy("chalicelib.aws.clients"), lazy("chalicelib.aws.dynamodb")
    s3, sqs = lazy("chalicelib.aws.s3"), lazy("chalicelib.aws.sqs")

ON_LAMBDA = "AWS_LAMBDA_FUNCTION_NAME"
"""Lambda sets it; elsewhere the logging of the process is its owner's."""


class AwsResources:
    """DynamoDB, SQS and S3, each imported and connected to when it is first needed."""

    clock = staticmethod(time.time)
    each = staticmethod(concurrently)

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @cached_property
    @uncollected()
    def table(self) -> Table:
        name = required("TABLE_NAME", self.settings.table_name, "the name of the DynamoDB table")
        return dynamodb.DynamoTable(clients.aws_client("dynamodb"), name)

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
    @uncollected()
    def archive(self) -> Archive:
        bucket = self.settings.archive_bucket
        return s3.S3Archive(
            clients.aws_client("s3"), required("ARCHIVE_BUCKET", bucket, "the name of an S3 bucket")
        )

    def event_queue(self, name: str) -> Queue | None:
        url = self.settings.event_queues.get(name)
        return None if url is None else self._queue(f"EVENT_QUEUES, {name}=", url)

    @cached_property
    def sender(self) -> Sender | None:
        return sender_of(self.settings)

    @uncollected()
    def _queue(self, setting: str, url: str) -> Queue:
        return sqs.SqsQueue(_sqs(), required(setting, url, "the URL of an SQS queue"))


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
    return clients.aws_client("sqs")


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
