"""The handlers over a metered table in memory, for long simulations."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from bench import aws_events as events
from bench.cost.invocations import Handler, check
from bench.cost.metered_table import MeteredTable
from bench.cost.metering import Request, RequestMeter
from bench.handlers import handlers_over
from bench.stubbed_aws import BADGE_ID
from chalicelib.aws import get_views
from chalicelib.counting.view_queue import ViewMessages
from chalicelib.settings import HOT_VIEWS, Settings
from chalicelib.storage import ports
from chalicelib.storage.ports import Table
from simulation.memory_table import MemoryTable
from simulation.resources import GivenResources

Requests: TypeAlias = tuple[Request, ...]
"""The requests of one handler run to the table."""


@dataclass
class Sent:
    """A `Queue` that keeps the bodies of its messages."""

    bodies: list[str] = field(default_factory=list)

    def send(self, body: str, *, delay: float = 0.0) -> None:
        self.send_all([ports.Message(body, delay)])

    def send_all(self, messages: Sequence[ports.Message]) -> None:
        self.bodies += [message.body for message in messages]


@dataclass(frozen=True, slots=True)
class Machine:
    """The handlers over a metered table, and a queue whose messages the caller delivers.

    `table` is the same table, not metered.
    """

    table: Table
    meter: RequestMeter
    sent: list[str]

    def run(self, handler: Handler, event: Mapping[str, Any]) -> Requests:
        """Run a handler; return its requests to the table. Raises `RuntimeError`."""
        check(handler(event, None), 0)
        return self.meter.take()

    def get(self) -> tuple[int, Requests]:
        """Run a GET; return the count that it shows and its requests to the table."""
        answer = get_views.handler(events.get_views(BADGE_ID), None)
        check(answer, 0)
        return int(json.loads(answer["body"])["message"]), self.meter.take()


@contextmanager
def machine_of(clock: Callable[[], float], hot_views: int = HOT_VIEWS) -> Iterator[Machine]:
    """Make a `Machine` with an empty table; a badge with `hot_views` live views is hot."""
    table, queue = MemoryTable(), Sent()
    metered = MeteredTable(table)
    settings = Settings(hot_views=hot_views)
    with handlers_over(
        GivenResources(
            table=metered, views_queue=ViewMessages(queue), settings=settings, clock=clock
        )
    ):
        yield Machine(table, metered, queue.bodies)
