"""`python -m bench.cost.handler_cpu`: measure `cpu_ms` in `prices.json` again, and put it there.

The measurement is the processor time of one warm run of each handler, with AWS stubbed in this
process. The clients build and sign each request and parse each answer, without a network.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import moto  # noqa: F401  import moto first: it patches only later botocore sessions

from bench import aws_events as events
from bench.cost import simulate_events
from bench.cost.invocations import (
    ACCEPT,
    ARCHIVE,
    AUTHORIZE,
    DISTRIBUTE,
    FIRE,
    FOLD,
    FOLD_EACH,
    GET,
    PUT,
    PUT_EACH,
    SWEEP,
    TOKEN,
    Design,
    Handler,
    given_on_aws,
)
from bench.cost.measured import put_measured
from bench.cost.simulate_views import START
from bench.handlers import Shelf, handlers_over
from bench.measuring import cpu_seconds, interleaved, medians
from bench.stubbed_aws import BADGE_ID, LATER, Answer, StubbedAws, count_of_the_original, summary
from chalicelib.aws.attribute_values import encode, encode_item, encode_key
from chalicelib.aws.json_client import json_client
from chalicelib.concurrency import map_parallel
from chalicelib.counting import keys
from chalicelib.events.event import Status, batches, key, message
from chalicelib.http import authentication
from chalicelib.http.messages import Caller, Role
from chalicelib.storage.items import Item
from simulation.aws_events import tick
from simulation.environment import isolate

LIVE_VIEWS = {0: 400, 10: 400, 1_000: 60, 7_999: 12}
"""Rounds by live views; fewer are enough if each costs more."""
RECORDS = {1: 400, 10: 400, 100: 100}
"""Rounds by views in a batch or a fold, all of one badge."""
EACH = {10: 100, 100: 40, 1_000: 6}
EACH_PUT = {10: 100, 100: 40}
"""Rounds by views in a batch, each of another badge."""
WARM_UP = 5
OPERATOR: Item = {**Caller(Role.OPERATOR).fields}

EVENTS = {0: 200, 1: 200, 10: 100, 100: 60}
"""Rounds by events in a batch or a group; an accepted event is queued or not."""
ENTRIES = {1: 100, 1_000: 10, 10_000: 5}
"""Rounds by entries in a batch; a `Shelf` takes the object without a request."""
SWEPT = {0: 100, 100: 40, 1_000: 10, 10_000: 5}
"""Rounds by events found in a sweep."""


class StubbedTable(StubbedAws):
    """Stubs that also answer the fold of the original, and have due events."""

    def hold_events(self, found: int) -> None:
        """Have an event of any name, and `found` events in the first part of the index."""
        self.event = encode_item(simulate_events.far_off(0, int(START * 1000)))
        self.found = found

    def answer(self, target: str, body: bytes) -> Answer:
        match target.rpartition(".")[2]:
            case "GetItem":
                return Answer.of(self._found(body))
            case "Query" if b"IndexName" in body:
                return self._due(json.loads(body))
            case "SendMessageBatch":
                return Answer.of({"Successful": []})
            case "PutItem":
                return Answer.of({})
            case _:
                return super().answer(target, body)

    def _found(self, body: bytes) -> dict[str, Any]:
        """Return the answer to GetItem: a token, an event, no cursor of the sweep, or a count."""
        if authentication.PARTITION.encode() in body:
            return {"Item": encode_item(OPERATOR)}
        if b"TIMER" in body:
            return {"Item": self.event} if b"TIMER#" in body else {}
        is_ours = keys.SUMMARY.encode() in body
        return {"Item": summary() if is_ours else count_of_the_original()}

    def _due(self, request: Mapping[str, Any]) -> Answer:
        """Return a page of the first part of the index; a sweep asks it for all due events."""
        values = request["ExpressionAttributeValues"]
        overdue = values[":first"]["N"] == "0"
        first = values[":batch"]["S"] == batches(Status.ACTIVE)[0] and not overdue
        start = int(request.get("ExclusiveStartKey", {}).get("due", {"N": "0"})["N"])
        end = min(self.found if first else 0, start + request["Limit"])
        items = [
            {
                **encode_key(key(f"{place:026}")),
                "batch": values[":batch"],
                "due": encode(place + 1),
            }
            for place in range(start, end)
        ]
        return Answer.of({"Items": items, "Count": len(items), "ScannedCount": len(items)})


def main() -> int:
    """Measure every handler."""
    isolate(os.environ)
    aws = StubbedTable()
    designs = [_vu_mi(aws), Design.original()]
    for client in (designs[1].dynamodb, designs[1].sqs):
        aws.attach(client)
    # Threads handle events and batches of several badges.
    with handlers_over(given_on_aws(designs[0], map_parallel, Shelf(), lambda: LATER)):
        cpu_ms = {
            GET: _of_gets(designs, aws),
            PUT: _by_size(designs, PUT, RECORDS, lambda n: events.views([BADGE_ID] * n, LATER)),
            FOLD: _of_folds(designs, aws),
            PUT_EACH: _by_size(
                designs[:1], PUT, EACH_PUT, lambda n: events.views(_badges(n), LATER)
            ),
            FOLD_EACH: _by_size(designs[:1], FOLD, EACH, partial(_folds, aws, 1)),
            **_of_events(designs[:1], aws),
            ARCHIVE: _by_size(designs[:1], ARCHIVE, ENTRIES, events.removed_entries),
        }
    put_measured("cpu_ms", cpu_ms)
    return 0


def _vu_mi(aws: StubbedTable) -> Design:
    """Return this project's design with the clients of Lambda functions."""
    dynamodb, sqs = (
        json_client(service, os.environ, time.time, aws.send) for service in ("dynamodb", "sqs")
    )
    return replace(Design.vu_mi(), dynamodb=dynamodb, sqs=sqs)


def _of_gets(designs: Sequence[Design], aws: StubbedTable) -> dict[str, dict[str, float]]:
    """Measure the GET by the live views of its badge; each design's API has an event of its own."""
    found: dict[str, dict[str, float]] = {design.name: {} for design in designs}
    for live_views, times in LIVE_VIEWS.items():
        aws.hold(live_views)
        calls = {
            design.name: partial(_seconds, design.handlers[GET], design.get_event(BADGE_ID))
            for design in designs
        }
        for name, ms in _medians(times, calls).items():
            found[name][str(live_views)] = ms
    return found


def _of_folds(designs: Sequence[Design], aws: StubbedTable) -> dict[str, dict[str, float]]:
    """Measure the fold of one badge: by its marker, or in the original by each of its views."""
    ours, original = designs
    return _by_size([ours], FOLD, RECORDS, partial(_fold, aws)) | _by_size(
        [original], FOLD, RECORDS, lambda n: events.removals([BADGE_ID] * n, LATER)
    )


def _fold(aws: StubbedTable, views: int) -> dict[str, Any]:
    return _folds(aws, views, 1)


def _folds(aws: StubbedTable, views: int, badges: int) -> dict[str, Any]:
    """Return the markers of badges with this many views to fold."""
    aws.hold(views)
    return events.removals([BADGE_ID] if badges == 1 else _badges(badges), LATER)


def _badges(count: int) -> list[str]:
    return [f"{BADGE_ID}/{place}" for place in range(count)]


def _of_events(
    designs: Sequence[Design], aws: StubbedTable
) -> dict[str, dict[str, dict[str, float]]]:
    """Measure the functions of events, by the events that they queue, distribute or fire."""
    aws.hold_events(0)
    delays = {0: simulate_events.FAR, 1: simulate_events.SOON}
    of_one = {size: EVENTS[size] for size in delays}
    return {
        AUTHORIZE: _by_size(designs, AUTHORIZE, {0: 200}, lambda _: events.authorization(TOKEN)),
        ACCEPT: _by_size(designs, ACCEPT, of_one, lambda n: _post(delays[n])),
        SWEEP: _by_size(designs, SWEEP, SWEPT, partial(_sweep, aws)),
        DISTRIBUTE: _by_size(designs, DISTRIBUTE, {n: EVENTS[n] for n in (1, 100)}, _group),
        FIRE: _by_size(designs, FIRE, {n: EVENTS[n] for n in (1, 10)}, _due),
    }


def _post(delay: int) -> dict[str, Any]:
    document = {"delay": delay, "target": simulate_events.LOG, "payload": simulate_events.PAYLOAD}
    return events.post_event(document, TOKEN)


def _sweep(aws: StubbedTable, found: int) -> dict[str, Any]:
    aws.hold_events(found)
    return tick()


def _group(size: int) -> dict[str, Any]:
    due = [[f"{place:026}", int(START * 1000)] for place in range(size)]
    return events.messages([json.dumps({"events": due})])


def _due(size: int) -> dict[str, Any]:
    bodies = [message(f"{place:026}") for place in range(size)]
    return events.messages(bodies)


def _by_size(
    designs: Sequence[Design],
    function: str,
    rounds: Mapping[int, int],
    event_of: Callable[[int], dict[str, Any]],
) -> dict[str, dict[str, float]]:
    """Measure the milliseconds of each design by the size of its input."""
    found: dict[str, dict[str, float]] = {design.name: {} for design in designs}
    for size, times in rounds.items():
        event = event_of(size)
        handlers = {design.name: design.handlers[function] for design in designs}
        calls = {name: partial(_seconds, handle, event) for name, handle in handlers.items()}
        for name, ms in _medians(times, calls).items():
            found[name][str(size)] = ms
    return found


def _medians(times: int, calls: Mapping[str, Callable[[], float]]) -> dict[str, float]:
    """Return the median of each call in milliseconds; the calls take turns."""
    interleaved(WARM_UP, calls)
    return {
        name: round(seconds * 1000, 2)
        for name, seconds in medians(interleaved(times, calls)).items()
    }


def _seconds(handle: Handler, event: dict[str, Any]) -> float:
    return cpu_seconds(lambda: handle(event, None))


if __name__ == "__main__":
    sys.exit(main())
