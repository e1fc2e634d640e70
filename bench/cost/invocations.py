"""Runs of the lambdas, and the usage of each: requests, units, messages, bytes of its log.

A `MeteredTable` in memory simulates DynamoDB. Tests use moto instead, which a `Meter` watches, and
compare. A `Mailbox` keeps the messages to SQS.
"""

from __future__ import annotations

import importlib
import io
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from botocore.awsrequest import AWSResponse
from moto import mock_aws

from bench import aws_events as events
from bench.cost.metered_table import MeteredTable
from bench.cost.metering import Meter, Request, RequestMeter
from bench.cost.wire_table import answering
from bench.handlers import Shelf, handlers_over
from chalicelib import telemetry
from chalicelib.aws import api_handler, get_views, http_authorizer
from chalicelib.aws.clients import aws_client
from chalicelib.aws.consumers import (
    archive_entries,
    distribute_timers,
    fire_timers,
    fold_views,
    put_views,
    sweep_timers,
)
from chalicelib.aws.dynamodb import DynamoTable
from chalicelib.aws.sqs import SqsQueue
from chalicelib.concurrency import MapParallel
from chalicelib.counting import keys
from chalicelib.counting.view_queue import ViewMessages
from chalicelib.settings import Settings
from chalicelib.storage.ports import Archive, Table
from simulation.aws_table import create_table
from simulation.environment import ENVIRONMENT
from simulation.memory_table import MemoryTable
from simulation.resources import GivenResources
from simulation.tokens import store_token

GET, PUT, FOLD = "get_views", "put_views", "fold_views"
API, AUTHORIZE, ACCEPT = "api_handler", "authorize", "api_handler, an event"
BEHIND_THE_API = (GET, API, ACCEPT)
PUT_EACH, FOLD_EACH = "put_views, a badge each", "fold_views, a badge each"
"""Batches of as many badges as views; the names above are for batches of one badge."""
SWEEP, DISTRIBUTE, FIRE = "sweep_timers", "distribute_timers", "fire_timers"
ARCHIVE = "archive_entries"
TIMERS_URL, DISTRIBUTION_URL, ORDERS_URL = (
    f"https://sqs.us-east-1.amazonaws.com/000000000000/{name}"
    for name in ("vu-mi-timers", "vu-mi-distribution", "orders")
)
COUNT_OF_THE_ORIGINAL = "USER"
"""The sort key of a badge's count in the original's design."""
ORDERS = "orders"
"""A queue that may be the target of events."""
TOKEN = "a-token-that-opens-the-routes-of-events"  # noqa: S105  used only here
SQS_REQUEST_BYTES = 65_536
"""Each further chunk of a message or a batch is billed as another request (SQS pricing)."""
REQUEST_ID = "00000000-0000-4000-8000-000000000000"
PLATFORM_LINES = (
    f"START RequestId: {REQUEST_ID} Version: $LATEST\n",
    f"END RequestId: {REQUEST_ID}\n",
    (
        f"REPORT RequestId: {REQUEST_ID}\tDuration: 12.34 ms\tBilled Duration: 13 ms\t"
        "Memory Size: 512 MB\tMax Memory Used: 90 MB\t\n"
    ),
)
"""The lines that Lambda itself logs for each run by default (Lambda developer guide, "Viewing
CloudWatch logs for Lambda")."""

Handler: TypeAlias = Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class Invocation:
    """One run of a function.

    `records` is the number of records in its batch. A GET has the live views that it read, and a
    fold the views that it counted. A run that accepts, sweeps or distributes events has the events
    that it queued. `sends` are its requests to SQS, `metrics` the names of its custom metrics, and
    `objects` the sizes in bytes of the objects that it put.
    """

    function: str
    records: int
    requests: tuple[Request, ...] = ()
    sends: int = 0
    log_bytes: int = 0
    metrics: frozenset[str] = frozenset()
    objects: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Design:
    """A way to count: its handlers, the lines that Lambda logs, and the handlers' clients.

    `summary` is the sort key of a badge's count. `expires` is the prefix of the sort keys of items
    whose removal by TTL runs the fold.
    """

    name: str
    summary: str
    expires: str
    handlers: Mapping[str, Handler]
    platform_lines: tuple[str, ...]
    dynamodb: Any
    sqs: Any
    get_event: Callable[[str], dict[str, Any]] = events.get_views
    """Makes the event of a GET of a badge, by its id."""

    @classmethod
    def vu_mi(cls) -> Design:
        """Return this project's design; `.chalice/resources.yaml` turns off Lambda's own lines."""
        handlers = {
            GET: get_views.handler,
            PUT: put_views,
            FOLD: fold_views,
            AUTHORIZE: http_authorizer.handler,
            API: api_handler.handler,
            ACCEPT: api_handler.handler,
            SWEEP: sweep_timers,
            DISTRIBUTE: distribute_timers,
            FIRE: fire_timers,
            ARCHIVE: archive_entries,
        }
        clients = aws_client("dynamodb"), aws_client("sqs")
        return cls("vu-mi", keys.SUMMARY, keys.WINDOW, handlers, (), *clients)

    @classmethod
    def original(cls) -> Design:
        """Return the original's design; this imports it now, because it makes clients at import."""
        module = importlib.import_module("bench.original")
        handlers = {GET: module.app, PUT: module.put_views, FOLD: module.fold_by_get_and_put}
        items = COUNT_OF_THE_ORIGINAL, keys.VIEW
        clients = module.table.meta.client, module.queue
        return cls(
            "original",
            *items,
            handlers,
            PLATFORM_LINES,
            *clients,
            get_event=events.get_views_by_rest,
        )


@dataclass(frozen=True, slots=True)
class Context:
    """The context that Lambda gives to a handler; each log line has both values."""

    function_name: str
    aws_request_id: str = REQUEST_ID


class Sent(NamedTuple):
    """A sent message; `delay` is in seconds."""

    queue: str
    body: str
    delay: int


@dataclass
class Mailbox:
    """A receiver of the messages that a client sends to SQS, in place of the network.

    `closed` are the queues that refuse messages.
    """

    closed: set[str] = field(default_factory=set)
    _sent: list[Sent] = field(default_factory=list)
    _requests: int = 0

    @contextmanager
    def receiving(self, client: Any) -> Iterator[None]:
        calls = {"SendMessage": self._receive, "SendMessageBatch": self._receive_all}
        for call, receive in calls.items():
            client.meta.events.register(f"before-call.sqs.{call}", receive)
        try:
            yield
        finally:
            for call, receive in calls.items():
                client.meta.events.unregister(f"before-call.sqs.{call}", receive)

    def _receive(self, params: Mapping[str, Any], **_: object) -> tuple[AWSResponse, Any]:
        request = json.loads(params["body"])
        return self._keep(request["QueueUrl"], [request], {"MessageId": "0"})

    def _receive_all(self, params: Mapping[str, Any], **_: object) -> tuple[AWSResponse, Any]:
        request = json.loads(params["body"])
        return self._keep(request["QueueUrl"], request["Entries"], {"Successful": []})

    def _keep(
        self, queue: str, entries: Sequence[Mapping[str, Any]], answer: dict[str, Any]
    ) -> tuple[AWSResponse, Any]:
        size = sum(len(entry["MessageBody"].encode()) for entry in entries)
        self._requests += max(1, math.ceil(size / SQS_REQUEST_BYTES))
        if queue in self.closed:
            refusal = {"Code": "AccessDenied", "Message": "the queue is closed"}
            return AWSResponse("", 403, {}, None), {"Error": refusal}  # type: ignore[arg-type]
        self._sent += [
            Sent(queue, entry["MessageBody"], entry.get("DelaySeconds", 0)) for entry in entries
        ]
        return AWSResponse("", 200, {}, None), answer  # type: ignore[arg-type]

    def take(self) -> tuple[list[Sent], int]:
        """Return the messages since the last call, and the number of requests that are billed."""
        taken = self._sent, self._requests
        self._sent, self._requests = [], 0
        return taken


@dataclass(frozen=True, slots=True)
class Runner:
    """A runner of a design's lambdas. `table` is not metered."""

    design: Design
    function_names: Mapping[str, str]
    table: Table
    meter: RequestMeter
    mailbox: Mailbox
    shelf: Shelf
    log: io.StringIO

    def invoke(
        self, function: str, records: int, event: Mapping[str, Any], status: int = 0
    ) -> tuple[Invocation, list[Sent]]:
        """Run a function; return its usage and the messages it sent.

        Raises `RuntimeError` if it fails or answers with a status other than `status`.
        """
        context = Context(self.function_names[function])
        check(self.design.handlers[function](event, context), status)
        (sent, sends), lines = self.mailbox.take(), self._take_log()
        log_bytes = sum(len(line.encode()) for line in (*lines, *self.design.platform_lines))
        requests, metrics = self.meter.take(), frozenset(_metrics(lines))
        objects = self.shelf.take()
        return Invocation(function, records, requests, sends, log_bytes, metrics, objects), sent

    def _take_log(self) -> list[str]:
        lines = self.log.getvalue().splitlines(keepends=True)
        self.log.seek(0)
        self.log.truncate()
        return lines


@contextmanager
def running(
    design_of: Callable[[], Design],
    function_names: Mapping[str, str],
    clock: Callable[[], float],
    *,
    on_moto: bool = False,
) -> Iterator[Runner]:
    """Run a design on simulated AWS, with a table in memory or on moto that has only a token.

    The original's design has no port for a table, so the table in memory answers its client.
    """
    with ExitStack() as stack:
        stack.enter_context(mock_aws())
        design, mailbox, shelf, log = design_of(), Mailbox(), Shelf(), io.StringIO()
        resources = given_on_aws(design, map, shelf, clock)
        table: Table
        meter: RequestMeter
        if on_moto:
            weigher = aws_client("dynamodb")
            create_table(weigher, ENVIRONMENT["TABLE_NAME"])
            table = DynamoTable(weigher, ENVIRONMENT["TABLE_NAME"])
            meter = stack.enter_context(Meter(weigher).watching(design.dynamodb))
        else:
            table = MemoryTable()
            resources.table = meter = MeteredTable(table)
            stack.enter_context(answering(design.dynamodb, meter))
        stack.enter_context(mailbox.receiving(design.sqs))
        stack.enter_context(handlers_over(resources))
        telemetry.write_to(log, with_metrics=True)
        store_token(table, TOKEN)
        yield Runner(design, function_names, table, meter, mailbox, shelf, log)


def given_on_aws(
    design: Design,
    map_parallel: MapParallel,
    archive: Archive,
    clock: Callable[[], float] = time.time,
) -> GivenResources:
    """Return the resources of the handlers, over the clients of a design."""
    views = SqsQueue(design.sqs, ENVIRONMENT["VIEWS_QUEUE_URL"])
    timers, distribution, orders = (
        SqsQueue(design.sqs, url) for url in (TIMERS_URL, DISTRIBUTION_URL, ORDERS_URL)
    )
    settings = Settings(event_queues={ORDERS: ORDERS_URL})
    return GivenResources(
        table=DynamoTable(design.dynamodb, ENVIRONMENT["TABLE_NAME"]),
        views_queue=ViewMessages(views),
        delivery_queue=timers,
        distribution_queue=distribution,
        event_queues={ORDERS: orders},
        archive=archive,
        map_parallel=map_parallel,
        settings=settings,
        clock=clock,
    )


def check(answer: Mapping[str, Any] | None, status: int) -> None:
    """Check the answer of a handler. Raises `RuntimeError` if it failed."""
    answer = answer or {}
    answered = answer.get("statusCode", 200)
    is_wrong = answered != status if status else answered >= 400  # noqa: PLR2004
    if is_wrong or answer.get("batchItemFailures") or "isError" in answer.get("body", ""):
        raise RuntimeError(f"a handler answered {answer}")


def _metrics(lines: list[str]) -> Iterator[str]:
    for line in lines:
        for directive in json.loads(line).get("_aws", {}).get("CloudWatchMetrics", ()):
            yield from (metric["Name"] for metric in directive["Metrics"])
