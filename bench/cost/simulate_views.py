"""Views of one badge on a simulated clock, each from its GET to its fold.

Messages are delivered in the batches of the deployed event source. TTL removes each item at its own
time, minutes or days after its time to live is over.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count, islice
from typing import Any, NamedTuple

from bench import aws_events as events
from bench.aws_events import WINDOWS
from bench.cost.deployed import Deployed
from bench.cost.invocations import FOLD, GET, PUT, Design, Invocation, Runner, running
from bench.stubbed_aws import BADGE_ID
from chalicelib.counting import keys
from chalicelib.counting.view import TIME_CHARACTERS, new_ulid
from chalicelib.storage.items import Item, Key, number
from chalicelib.storage.writes import Delete

START = 1_767_225_600.0
"""2026-01-01T00:00:00Z."""


class Lag(NamedTuple):
    """The least and the most seconds by which TTL is late."""

    least: int
    most: int


MINUTES = Lag(1_200, 1_200)
UNEVEN = Lag(600, 1_800)
TWO_DAYS = Lag(172_800, 172_800)


@dataclass
class Agenda:
    """Actions with their times, and a clock that goes from one to the next."""

    now: float = START
    _actions: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _order: Iterator[int] = field(default_factory=count)

    def at(self, moment: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._actions, (moment, next(self._order), action))

    def run(self) -> None:
        while self._actions:
            self.now, _, action = heapq.heappop(self._actions)
            action()


@dataclass
class Badge:
    """A badge whose batches have no other badge's views; `invocations` has its runs."""

    runner: Runner
    deployed: Deployed
    agenda: Agenda
    lag: Lag = MINUTES
    invocations: list[Invocation] = field(default_factory=list)
    _live: int = 0
    _queued: list[str] = field(default_factory=list)
    _expiring: dict[tuple[str, int], dict[Key, None]] = field(default_factory=dict)
    _sequence: Iterator[int] = field(default_factory=lambda: count(1))
    _chance: random.Random = field(default_factory=partial(random.Random, 1))

    def take(self, views: int, seconds: int) -> list[Invocation]:
        """Take views, spread evenly over the next seconds, and simulate each to its end.

        Raises `RuntimeError` if they are not counted, once each.
        """
        start, before = self.agenda.now, self._count()
        self.invocations = []
        for place in range(views):
            self.agenda.at(start + (place + 0.5) * seconds / views, self._get)
        self.agenda.run()
        if self._count() - before != views:
            raise RuntimeError(f"{views:,} views were counted as {self._count() - before:,}")
        return self.invocations

    def get_with(self, live_views: int) -> Invocation:
        """Run one GET while this many views are live, no fewer than at the last GET.

        They are later than all folded views, because TTL was late.
        """
        first = int(self.agenda.now - WINDOWS.grace) * 1000
        more = range(self._live, live_views)
        self.runner.table.put_all([view_item(first + place) for place in more])
        self._live = live_views
        return self.runner.invoke(GET, live_views, self.runner.design.get_event(BADGE_ID))[0]

    def _summary(self) -> Item:
        key = Key(keys.partition(BADGE_ID), self.runner.design.summary)
        return self.runner.table.get(key) or {}

    def _count(self) -> int:
        return number(self._summary(), "count")

    def _get(self) -> None:
        sent = self._invoke(GET, 0, self.runner.design.get_event(BADGE_ID))
        if not self._queued:
            self.agenda.at(self.agenda.now + self.deployed.put_window_seconds, self._deliver)
        self._queued += sent

    def _deliver(self) -> None:
        """Deliver the messages that Lambda's pollers received in a batching window."""
        queued, self._queued = self._queued, []
        for bodies in _chunks(queued, self.deployed.put_batch):
            batch = events.messages(bodies)
            self._invoke(PUT, len(bodies), batch)

    def _schedule_removals(self, run: Invocation) -> None:
        """Let TTL remove a run's items; those that end together in a partition go together."""
        written = {write.key for request in run.requests for write in request.written}
        for key in written:
            if key.sk.startswith(self.runner.design.expires):
                self._schedule_removal(key, self._ttl(key))

    def _ttl(self, key: Key) -> int:
        """Return the end of an item: a marker's own, or the mark of an original's view."""
        if key.sk == keys.WINDOW:
            return number(self.runner.table.get(key) or {}, "ttl")
        return WINDOWS.mark(int(self.agenda.now * 1000))

    def _schedule_removal(self, key: Key, ttl: int) -> None:
        place = (key.pk, ttl)
        if place not in self._expiring:
            self.agenda.at(ttl + self._chance.randint(*self.lag), partial(self._expire, *place))
        self._expiring.setdefault(place, {})[key] = None

    def _expire(self, partition: str, ttl: int) -> None:
        """Remove items, and run the fold on the records of the stream."""
        for removed in _chunks(self._expiring.pop((partition, ttl)), self.deployed.fold_batch):
            items: list[Item] = [{"PK": key.pk, "SK": key.sk, "ttl": ttl} for key in removed]
            for key in removed:
                self.runner.table.write(Delete(key))
            before = self._count()
            sequence = next(self._sequence) * self.deployed.fold_batch
            self._invoke(FOLD, 0, events.removed(items, self.agenda.now, sequence))
            counted = self._count() - before
            self.invocations[-1] = replace(self.invocations[-1], records=counted)

    def _invoke(self, function: str, records: int, event: dict[str, Any]) -> list[str]:
        invocation, sent = self.runner.invoke(function, records, event)
        self.invocations.append(invocation)
        self._schedule_removals(invocation)
        return [message.body for message in sent]


@contextmanager
def badge_of(
    design_of: Callable[[], Design],
    deployed: Deployed,
    lag: Lag = MINUTES,
    *,
    on_moto: bool = False,
) -> Iterator[Badge]:
    """Make a new badge of a design."""
    agenda = Agenda()
    with running(design_of, deployed.function_names, lambda: agenda.now, on_moto=on_moto) as runner:
        yield Badge(runner, deployed, agenda, lag)


def view_item(at: int, badge_id: str = BADGE_ID) -> Item:
    """Return a view at a time in milliseconds since 1970."""
    pk, sk = keys.view(badge_id, new_ulid(at))
    return {"PK": pk, "SK": sk, "ttl": WINDOWS.view_ttl(at)}


def view_items(count: int, at: int) -> Iterator[Item]:
    """Yield views of one millisecond, in the order of their keys."""
    time, ttl = new_ulid(at)[:TIME_CHARACTERS], WINDOWS.view_ttl(at)
    for place in range(count):
        pk, sk = keys.view(BADGE_ID, f"{time}{place:016}")
        yield {"PK": pk, "SK": sk, "ttl": ttl}


def _chunks(parts: Iterable[Any], size: int) -> Iterator[list[Any]]:
    left = iter(parts)
    while chunk := list(islice(left, size)):
        yield chunk
