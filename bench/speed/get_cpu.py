"""The GET lambda: processor time of one request by how many live views its badge has.

The clients are real, and get stubbed answers in place of the network.
"""

from __future__ import annotations

import json
import os
import time
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from bench import aws_events as events
from bench.measuring import cpu_seconds, handlers_over
from bench.stubbed_aws import BADGE_ID, FOLDED, StubbedAws
from chalicelib.aws import get_views
from chalicelib.aws.dynamodb import DynamoTable
from chalicelib.aws.json_client import json_client
from chalicelib.aws.sqs import SqsQueue
from chalicelib.concurrency import map_parallel
from chalicelib.counting.view import ViewMessages
from simulation.environment import ENVIRONMENT
from simulation.report import Report
from simulation.resources import GivenResources

LIVE_VIEWS = (0, 100, 1_000, 7_999)
ROUNDS, WARM_UP = 400, 5


def measure() -> Report:
    """Answer requests for a badge with ever more live views."""
    aws = StubbedAws()
    with Path(os.devnull).open("w") as nowhere, handlers_over(_resources(aws), nowhere):
        spent = {live: _spend(aws, live) for live in LIVE_VIEWS}
    return Report(
        title="get_cpu: processor time of a GET on Lambda",
        head=("live views", "ms", "of none"),
        rows=[
            (f"{live:,}", f"{one * 1000:.2f}", f"{one / spent[0]:.2f}")
            for live, one in spent.items()
        ],
        notes=(f"median of {ROUNDS} requests each, which read a badge and enqueue one message",),
    )


def _resources(aws: StubbedAws) -> GivenResources:
    def client(service: str) -> Any:
        return json_client(service, os.environ, time.time, aws.send)

    queue = SqsQueue(client("sqs"), ENVIRONMENT["VIEWS_QUEUE_URL"])
    return GivenResources(
        table=DynamoTable(client("dynamodb"), ENVIRONMENT["TABLE_NAME"]),
        views_queue=ViewMessages(queue),
        map_parallel=map_parallel,
    )


def _spend(aws: StubbedAws, live_views: int) -> float:
    """Return the processor seconds of a request. Raises `RuntimeError` for a wrong count."""
    aws.hold(live_views)
    get = partial(get_views.handler, events.ask(BADGE_ID), None)
    shown = json.loads(get()["body"]).get("message")
    if shown != str(FOLDED + live_views):
        raise RuntimeError(f"the badge shows {shown!r} instead of {FOLDED + live_views}")
    return median([cpu_seconds(get) for _ in range(WARM_UP + ROUNDS)][WARM_UP:])
