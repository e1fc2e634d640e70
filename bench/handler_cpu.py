"""`python -m bench.handler_cpu`: what `measured` in `prices.json` says, measured here and now.

The processor time of one run of each handler, warm, with AWS stubbed in this process: boto builds
and signs each request, parses each answer, and nothing waits for a network.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import moto  # noqa: F401  it answers only sessions of botocore that are made after its import

from bench import events
from bench.in_process import Given, handlers_over
from bench.invoking import API, FOLD, PUT, Design, Handler
from bench.measuring import cpu_seconds, interleaved, machine, medians
from bench.stubbed_aws import BADGE_ID, ENVIRONMENT, FOLDED, PARTITION, Answer, StubbedAws, isolate
from chalicelib.dynamodb import DynamoTable
from chalicelib.sqs import SqsQueue

LIVE_VIEWS = {0: 400, 10: 400, 1_000: 60, 7_999: 12}
"""Rounds by live views; the more one costs, the fewer are enough."""
RECORDS = {1: 400, 10: 400, 100: 100}
"""Rounds by records in a batch, all of one badge."""
WARM_UP = 5


class StubbedTable(StubbedAws):
    """With what the fold of the original reads and writes."""

    def answer(self, target: str, body: bytes) -> Answer:
        match target.rpartition(".")[2]:
            case "GetItem":
                user = {"PK": {"S": PARTITION}, "SK": {"S": "USER"}, "count": {"N": str(FOLDED)}}
                return Answer.of({"Item": user})
            case "PutItem":
                return Answer.of({})
            case _:
                return super().answer(target, body)


def main() -> int:
    """Print the block as JSON."""
    isolate(os.environ)
    aws = StubbedTable()
    designs = [Design.vu_mi(), Design.original()]
    for design in designs:
        aws.attach(design.dynamodb)
        aws.attach(design.sqs)
    with handlers_over(_given(designs[0])):
        cpu_ms = {
            API: _by_size(designs, API, LIVE_VIEWS, partial(_get, aws)),
            PUT: _by_size(designs, PUT, RECORDS, lambda n: events.views([BADGE_ID] * n)),
            FOLD: _by_size(designs, FOLD, RECORDS, lambda n: events.removals([BADGE_ID] * n)),
        }
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    print(json.dumps({"as_of": today, "machine": machine(), "cpu_ms": cpu_ms}, indent=2))
    return 0


def _given(design: Design) -> Given:
    """A batch is of one badge, so that nothing is worked through at once."""
    table = DynamoTable(design.dynamodb, ENVIRONMENT["TABLE_NAME"])
    return Given(table, SqsQueue(design.sqs, ENVIRONMENT["VIEWS_QUEUE_URL"]), map)


def _get(aws: StubbedAws, live_views: int) -> dict[str, Any]:
    aws.hold(live_views)
    return events.get_views(BADGE_ID)


def _by_size(
    designs: Sequence[Design],
    function: str,
    rounds: Mapping[int, int],
    event_of: Callable[[int], dict[str, Any]],
) -> dict[str, dict[str, float]]:
    """The milliseconds of each design by the size of what it works on."""
    found: dict[str, dict[str, float]] = {design.name: {} for design in designs}
    for size, times in rounds.items():
        event = event_of(size)
        handlers = {design.name: design.handlers[function] for design in designs}
        calls = {name: partial(_seconds, handle, event) for name, handle in handlers.items()}
        interleaved(WARM_UP, calls)
        for name, seconds in medians(interleaved(times, calls)).items():
            found[name][str(size)] = round(seconds * 1000, 2)
    return found


def _seconds(handle: Handler, event: dict[str, Any]) -> float:
    return cpu_seconds(lambda: handle(event, None))


if __name__ == "__main__":
    sys.exit(main())
