"""The GET lambda: processor time of one request by how many live views its badge has.

Both sides run their clients and get stubbed answers in place of the network. The original runs
Chalice and boto3, too.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from bench import aws_events as events
from bench import original
from bench.handlers import handlers_over
from bench.measuring import cpu_seconds, interleaved, medians
from bench.stubbed_aws import BADGE_ID, FOLDED, StubbedAws
from chalicelib.aws import get_views
from chalicelib.aws.dynamodb import DynamoTable
from chalicelib.aws.json_client import json_client
from chalicelib.aws.sqs import SqsQueue
from chalicelib.concurrency import map_parallel
from chalicelib.counting.view_queue import ViewMessages
from simulation.environment import ENVIRONMENT
from simulation.report import Report, judged
from simulation.resources import GivenResources

ROUNDS = {0: 600, 100: 300, 1_000: 80, 7_999: 20}
"""Requests of each side by live views; fewer are enough if each costs more."""
WARM_UP = 5
AIMS = {0: ("no more", 1.0), 7_999: ("at most 1/40", 1 / 40)}
"""The share of the original's time that vu-mi may take."""
SIDES: Mapping[str, Callable[[], Any]] = {
    "vu-mi": lambda: get_views.handler(events.get_views(BADGE_ID), None),
    "original": lambda: original.app(events.get_views_by_rest(BADGE_ID), None),
}


def measure() -> Report:
    """Answer the same requests, turn by turn."""
    aws = StubbedAws()
    aws.attach(original.table.meta.client)
    aws.attach(original.queue)
    with handlers_over(_resources(aws)):
        rows = [_row(aws, live_views, rounds) for live_views, rounds in ROUNDS.items()]
    return Report(
        title="get_cpu: processor time of a GET on Lambda",
        head=("live views", "vu-mi ms", "original ms", "vu-mi / original", "aim"),
        rows=rows,
        notes=("the original decodes every item with boto3.resource; both enqueue one message",),
    )


def _resources(aws: StubbedAws) -> GivenResources:
    return GivenResources(
        table=DynamoTable(_stubbed_client("dynamodb", aws), ENVIRONMENT["TABLE_NAME"]),
        views_queue=ViewMessages(
            SqsQueue(_stubbed_client("sqs", aws), ENVIRONMENT["VIEWS_QUEUE_URL"])
        ),
        map_parallel=map_parallel,
    )


def _stubbed_client(service: str, aws: StubbedAws) -> Any:
    return json_client(service, os.environ, time.time, aws.send)


def _row(aws: StubbedAws, live_views: int, rounds: int) -> Sequence[str]:
    aws.hold(live_views)
    for request in SIDES.values():
        _check(request(), FOLDED + live_views)
    calls = {side: partial(cpu_seconds, request) for side, request in SIDES.items()}
    interleaved(WARM_UP, calls)
    spent = medians(interleaved(rounds, calls))
    ratio = spent["vu-mi"] / spent["original"]
    return (
        f"{live_views:,}",
        *(f"{spent[side] * 1000:.2f}" for side in SIDES),
        f"{ratio:.3f}",
        judged(AIMS[live_views][0], met=ratio <= AIMS[live_views][1]) if live_views in AIMS else "",
    )


def _check(response: Mapping[str, Any], expected: int) -> None:
    shown = json.loads(response["body"]).get("message")
    if shown != str(expected):
        raise RuntimeError(f"the badge shows {shown!r} instead of {expected}")
