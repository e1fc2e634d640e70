"""The resources of a Lambda function: DynamoDB, SQS and S3."""

from __future__ import annotations

import gc
import os
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from chalicelib import telemetry
from chalicelib.concurrency import map_parallel
from chalicelib.counting.bans import TimedBans
from chalicelib.counting.view import ViewMessages, ViewQueue
from chalicelib.http.authentication import RefusalLog
from chalicelib.lazy import lazy, load
from chalicelib.resources import NoLimits, Room
from chalicelib.settings import Feature, Settings, SettingsError, required

if TYPE_CHECKING:
    from chalicelib.api import ProcessResources
    from chalicelib.aws import clients, dynamodb, json_client, sqs
    from chalicelib.events import event, sender, webhook_schedule
    from chalicelib.events.event import Claims
    from chalicelib.events.sender import Sender
    from chalicelib.outgoing import fetching
    from chalicelib.outgoing.fetching import Fetcher
    from chalicelib.outgoing.webhooks import WebhookSchedule
    from chalicelib.storage.ports import Archive, Queue, Table
else:
    clients, dynamodb = lazy("chalicelib.aws.clients"), lazy("chalicelib.aws.dynamodb")
    json_client = lazy("chalicelib.aws.json_client")
    sqs = lazy("chalicelib.aws.sqs")
    event = lazy("chalicelib.events.event")
    sender = lazy("chalicelib.events.sender")
    fetching = lazy("chalicelib.outgoing.fetching")
    webhook_schedule = lazy("chalicelib.events.webhook_schedule")

ON_LAMBDA = "AWS_LAMBDA_FUNCTION_NAME"
"""Lambda sets this variable. Elsewhere, the process configures its own logging."""
CONNECTED = ("table", "views_queue", "delivery_queue", "distribution_queue", "archive")
"""The resources that have a client."""


@contextmanager
def gc_disabled() -> Iterator[None]:
    """Turn the garbage collector off while clients are imported and created.

    They live as long as the process, so a collection frees nothing. It would take about a tenth of
    the cold start's processor time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class AwsResources:
    """The clients of DynamoDB, SQS and S3, each imported and connected on first use.

    The settings are read on first use too, so that a request whose function has a wrong one is
    answered, and the log names the setting. Every property raises `SettingsError`.
    """

    clock = view_clock = staticmethod(time.time)
    map_parallel = map_reads = staticmethod(map_parallel)
    limits = NoLimits()
    room = staticmethod(lambda: Room.ALL)
    top = quota = None

    resolver = staticmethod(socket.getaddrinfo)

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    @cached_property
    def settings(self) -> Settings:
        return Settings.from_environment(self._environment)

    @cached_property
    @gc_disabled()
    def table(self) -> Table:
        name = required("TABLE_NAME", self.settings.table_name, "the name of the DynamoDB table")
        client: Any = json_client.json_client("dynamodb", self._environment, self.clock)
        return dynamodb.DynamoTable(client, name)

    @cached_property
    def views_queue(self) -> ViewQueue:
        queue = self._queue("VIEWS_QUEUE_URL", self.settings.views_queue_url)
        return ViewMessages(queue)

    @cached_property
    def delivery_queue(self) -> Queue:
        return self._queue("DELIVERY_QUEUE_URL", self.settings.delivery_queue_url)

    @cached_property
    def distribution_queue(self) -> Queue:
        return self._queue("DISTRIBUTION_QUEUE_URL", self.settings.distribution_queue_url)

    @cached_property
    def claims(self) -> Claims:
        return event.Leases()

    @cached_property
    def bans(self) -> TimedBans:
        return TimedBans(lambda: self.table, self.clock)

    @cached_property
    def refusals(self) -> RefusalLog:
        return RefusalLog(self.clock)

    @cached_property
    @gc_disabled()
    def archive(self) -> Archive:
        bucket = self.settings.archive_bucket
        required("ARCHIVE_BUCKET", bucket, "the name of an S3 bucket")
        return clients.S3Archive(clients.aws_client("s3"), bucket)

    def event_queue(self, name: str) -> Queue | None:
        url = self.settings.event_queues.get(name)
        return None if url is None else self._queue(f"EVENT_QUEUES, {name}=", url)

    @cached_property
    def sender(self) -> Sender | None:
        return sender.sender_of(self.settings)

    @cached_property
    def fetcher(self) -> Fetcher:
        return fetching.fetcher_of(self.settings)

    @cached_property
    def webhooks(self) -> WebhookSchedule | None:
        if Feature.EVENTS not in self.settings.features:
            return None
        return webhook_schedule.EventSchedule(lambda: self.delivery_queue, self.clock)

    @gc_disabled()
    def _queue(self, setting: str, url: str) -> Queue:
        required(setting, url, "the URL of an SQS queue")
        return sqs.SqsQueue(self._sqs, url)

    @cached_property
    def _sqs(self) -> Any:
        return json_client.json_client("sqs", self._environment, self.clock)


class _Process:
    resources: ProcessResources | None = None


def current() -> ProcessResources:
    """Return the resources of this process, created from the environment on first use."""
    if _Process.resources is None:
        if ON_LAMBDA in os.environ:
            # Lambda sends what is written here to CloudWatch Logs.
            telemetry.write_to(sys.stdout, with_metrics=True)
        _Process.resources = AwsResources(os.environ)
    return _Process.resources


def use(resources: ProcessResources | None) -> None:
    """Set the resources of this process; after None, `current` creates new ones."""
    _Process.resources = resources


def connect(*modules: str) -> None:
    """Import modules and make the clients that the settings name, while Lambda starts the function.

    A request has only the share of a vCPU that comes with the function's memory; the start has a
    whole one. A setting that is missing or wrong is reported by the request that needs it.
    """
    if ON_LAMBDA in os.environ:
        load(*modules)
        for name in CONNECTED:
            with suppress(SettingsError):
                getattr(current(), name)
