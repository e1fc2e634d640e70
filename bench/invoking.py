"""Runs of the lambdas, and what each used: requests, units, messages, bytes of its log.

moto is DynamoDB, behind a `Meter`; what is sent to SQS is kept for who delivers it.
"""

from __future__ import annotations

import importlib
import io
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from botocore.awsrequest import AWSResponse
from moto import mock_aws

from app import app
from bench.in_process import Given, handlers_over
from bench.metering import Meter, Request
from bench.stubbed_aws import ENVIRONMENT
from chalicelib import telemetry
from chalicelib.dynamodb import DynamoTable
from chalicelib.resources import aws_client
from chalicelib.sqs import SqsQueue
from chalicelib.views.fold import fold_views
from chalicelib.views.put import put_views
from tests.aws import create_table

API, PUT, FOLD = "api_handler", "put_views", "fold_views"
REQUEST_ID = "00000000-0000-4000-8000-000000000000"
PLATFORM_LINES = (
    f"START RequestId: {REQUEST_ID} Version: $LATEST\n",
    f"END RequestId: {REQUEST_ID}\n",
    (
        f"REPORT RequestId: {REQUEST_ID}\tDuration: 12.34 ms\tBilled Duration: 13 ms\t"
        "Memory Size: 512 MB\tMax Memory Used: 90 MB\t\n"
    ),
)
"""What Lambda itself logs of each run, unless it is told not to (Lambda developer guide, "Viewing
CloudWatch logs for Lambda")."""

Handler: TypeAlias = Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class Invocation:
    """One run of a function.

    `records` are those of its batch; of a GET, the live views that it read. `sends` are messages
    that it sent. `metrics` are the names of its custom metrics.
    """

    function: str
    records: int
    requests: tuple[Request, ...] = ()
    sends: int = 0
    log_bytes: int = 0
    metrics: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Design:
    """A way to count: its handlers, what Lambda logs beside them, and the clients they use."""

    name: str
    handlers: Mapping[str, Handler]
    platform_lines: tuple[str, ...]
    dynamodb: Any
    sqs: Any

    @classmethod
    def vu_mi(cls) -> Design:
        """This project; `.chalice/resources.yaml` has Lambda log nothing of its own."""
        handlers = {API: app, PUT: put_views, FOLD: fold_views}
        return cls("vu-mi", handlers, (), aws_client("dynamodb"), aws_client("sqs"))

    @classmethod
    def original(cls) -> Design:
        """Imported when it is run, because it makes its clients at import."""
        module = importlib.import_module("bench.original")
        handlers = {API: module.app, PUT: module.put_views, FOLD: module.fold_by_get_and_put}
        dynamodb = module.table.meta.client
        return cls("original", handlers, PLATFORM_LINES, dynamodb, module.queue)


@dataclass(frozen=True, slots=True)
class Context:
    """What Lambda hands to a handler beside the event: both stand in each line of its log."""

    function_name: str
    aws_request_id: str = REQUEST_ID


class Mailbox:
    """Takes the messages that a client sends to SQS, in place of the network."""

    def __init__(self) -> None:
        self._bodies: list[str] = []

    @contextmanager
    def receiving(self, client: Any) -> Iterator[None]:
        client.meta.events.register("before-call.sqs.SendMessage", self._receive)
        try:
            yield
        finally:
            client.meta.events.unregister("before-call.sqs.SendMessage", self._receive)

    def _receive(
        self, params: Mapping[str, Any], **_: object
    ) -> tuple[AWSResponse, dict[str, str]]:
        self._bodies.append(json.loads(params["body"])["MessageBody"])
        return AWSResponse("", 200, {}, None), {"MessageId": "0"}  # type: ignore[arg-type]

    def take(self) -> list[str]:
        """What was sent since the last time."""
        bodies, self._bodies = self._bodies, []
        return bodies


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs the lambdas of a design. `table` is read and written without being metered."""

    design: Design
    function_names: Mapping[str, str]
    table: DynamoTable
    meter: Meter
    mailbox: Mailbox
    log: io.StringIO

    def invoke(
        self, function: str, records: int, event: Mapping[str, Any]
    ) -> tuple[Invocation, list[str]]:
        """Run a function; returns what it used, and the messages it sent."""
        context = Context(self.function_names[function])
        _check(self.design.handlers[function](event, context))
        sent, lines = self.mailbox.take(), self._logged()
        log_bytes = sum(len(line.encode()) for line in (*lines, *self.design.platform_lines))
        requests, metrics = self.meter.take(), frozenset(_metrics(lines))
        return Invocation(function, records, requests, len(sent), log_bytes, metrics), sent

    def _logged(self) -> list[str]:
        lines = self.log.getvalue().splitlines(keepends=True)
        self.log.seek(0)
        self.log.truncate()
        return lines


@contextmanager
def running(
    design_of: Callable[[], Design], function_names: Mapping[str, str], clock: Callable[[], float]
) -> Iterator[Runner]:
    """A design on AWS as far as that is metered, with an empty table."""
    name, url = ENVIRONMENT["TABLE_NAME"], ENVIRONMENT["VIEWS_QUEUE_URL"]
    with ExitStack() as stack:
        stack.enter_context(mock_aws())
        weigher = aws_client("dynamodb")
        create_table(weigher, name)
        design, meter, mailbox, log = design_of(), Meter(weigher), Mailbox(), io.StringIO()
        stack.enter_context(meter.watching(design.dynamodb))
        stack.enter_context(mailbox.receiving(design.sqs))
        table, queue = DynamoTable(design.dynamodb, name), SqsQueue(design.sqs, url)
        stack.enter_context(handlers_over(Given(table, queue, map, clock=clock)))
        telemetry.write_to(log, with_metrics=True)
        yield Runner(design, function_names, DynamoTable(weigher, name), meter, mailbox, log)


def _check(answer: Mapping[str, Any] | None) -> None:
    """Raise `RuntimeError` where a handler did not do what it was called for."""
    answer = answer or {}
    if answer.get("batchItemFailures") or "isError" in answer.get("body", ""):
        raise RuntimeError(f"a handler answered {answer}")


def _metrics(lines: list[str]) -> Iterator[str]:
    for line in lines:
        for directive in json.loads(line).get("_aws", {}).get("CloudWatchMetrics", ()):
            yield from (metric["Name"] for metric in directive["Metrics"])
