"""The handlers over a metered table and a simulated time, and the requests of each run."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from bench import aws_events as events
from bench.measuring import handlers_over
from bench.metered_table import MeteredTable, Request
from bench.stubbed_aws import BADGE_ID
from chalicelib.aws import get_views
from chalicelib.aws.consumers import fold_views, put_views
from chalicelib.concurrency import THREADS
from chalicelib.counting import keys
from chalicelib.counting.view import View, ViewMessages
from chalicelib.storage.items import Item, Key, number
from chalicelib.storage.writes import Delete
from simulation.resources import GivenResources
from simulation.storage import FakeQueue

MEMORY_GB, VCPUS = 0.5, 512 / 1769
"""A function has the share of a vCPU that its memory buys (Lambda developer guide)."""
PROCESSOR_MS = {"get_views": (0.3, 0.1), "put_views": (0.2, 0.03), "fold_views": (0.4, 0.7)}
"""Of a run, and for each further badge; measured with AWS stubbed on 2026-11-21."""
TABLE_MS, SQS_MS = 5, 10
"""The wait for a request; assumed."""
TTL_LATE, DAY, DAYS_A_MONTH = 1_200, 86_400, 365 / 12
START = 1_767_225_600.0
PUT_BATCH, RECEIVED_AT_ONCE = 98, 10


@dataclass(frozen=True, slots=True)
class Context:
    """The context of a run on Lambda; each line of the log has both values."""

    function_name: str
    aws_request_id: str = "00000000-0000-4000-8000-000000000000"


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a function."""

    function: str
    badges: int
    messages: int
    sends: int
    requests: Sequence[Request]
    log_bytes: int

    @property
    def reads(self) -> float:
        return sum(request.read_units for request in self.requests)

    @property
    def writes(self) -> int:
        return sum(request.write_units for request in self.requests)

    @property
    def billed_ms(self) -> int:
        """Return whole milliseconds; the badges of a fold or of a page wait concurrently."""
        first, more = PROCESSOR_MS[self.function]
        parallel = 1 if self.function == "put_views" else min(THREADS, self.badges)
        waiting = len(self.requests) * TABLE_MS / parallel + self.sends * SQS_MS
        return math.ceil((first + more * (self.badges - 1)) / VCPUS + waiting)


@dataclass
class Stack:
    """The handlers over a metered table, on a clock that the caller moves."""

    table: MeteredTable
    queue: FakeQueue
    log: io.StringIO
    now: float = START
    runs: list[Run] = field(default_factory=list)
    _due: dict[Key, float] = field(default_factory=dict)
    _records: int = 1

    def get(self, badge_id: str = BADGE_ID) -> None:
        """Run a GET."""
        self.run("get_views", get_views.handler, events.ask(badge_id), sends=1)

    def post(self, badge_ids: Sequence[str]) -> None:
        """Run a POST of a page's ids."""
        event = events.ask(badge_ids, "POST")
        self.run("get_views", get_views.handler, event, len(badge_ids), sends=1)

    def deliver(self) -> None:
        """Run `put_views` on all messages."""
        while batch := self.queue.bodies[:PUT_BATCH]:
            del self.queue.bodies[:PUT_BATCH]
            badges = len({View.from_message(body).badge_id for body in batch})
            self.run("put_views", put_views, events.messages(batch), badges, len(batch))
            for key in (key for request in self.runs[-1].requests for key in request.written):
                if key.sk == keys.WINDOW:
                    self._due[key] = number(self.table.get(key) or {}, "ttl") + TTL_LATE

    def move(self, seconds: float) -> None:
        """Move the clock, and fold the windows whose markers TTL removes meanwhile."""
        end = self.now + seconds
        while self._due and (at := min(self._due.values())) <= end:
            self.now = max(self.now, at)
            removed = [key for key, due in self._due.items() if due <= at]
            items: list[Item] = [{"PK": key.pk, "SK": key.sk} for key in removed]
            for key in removed:
                del self._due[key]
                self.table.write(Delete(key))
            self._records += len(removed)
            record = events.removed(items, self.now, self._records)
            self.run("fold_views", fold_views, record, len(removed))
        self.now = end

    def run(  # noqa: PLR0913
        self,
        function: str,
        handler: Callable[[Any, Any], Any],
        event: Mapping[str, Any],
        badges: int = 1,
        messages: int = 0,
        *,
        sends: int = 0,
    ) -> Any:
        """Run a handler and count it. Raises `RuntimeError` if it failed."""
        self.table.take()
        answer = handler(event, Context(function)) or {}
        wrong = answer.get("statusCode", 200) >= 400  # noqa: PLR2004
        if wrong or answer.get("batchItemFailures") or "isError" in answer.get("body", ""):
            raise RuntimeError(f"a handler answered {answer}")
        size = len(self.log.getvalue().encode())
        self.log.seek(0)
        self.log.truncate()
        done = Run(function, badges, messages, sends, self.table.take(), size)
        self.runs.append(done)
        return answer


@contextmanager
def stack_of() -> Iterator[Stack]:
    """Make an empty stack."""
    stack = Stack(MeteredTable(), FakeQueue(), io.StringIO())
    given = GivenResources(
        table=stack.table, views_queue=ViewMessages(stack.queue), clock=lambda: stack.now
    )
    with handlers_over(given, stack.log):
        yield stack
