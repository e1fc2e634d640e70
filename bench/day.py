"""Views of one badge on a simulated clock, each from its GET to its fold.

Messages and removals come in the batches that the deployed event sources collect; each view is
removed at its mark.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Any

from ulid import ULID

from bench import events
from bench.deployed import Deployed
from bench.invoking import API, FOLD, PUT, Design, Invocation, Runner, running
from bench.stubbed_aws import BADGE_ID
from chalicelib.ports import Delete, Item, Key, number
from chalicelib.settings import Settings
from chalicelib.views import keys
from chalicelib.views.storing import Lifetime
from local.events import queue_event, stream_event
from local.queue import Message
from local.table import Change

START = 1_767_225_600.0
"""2026-01-01T00:00:00Z."""
FAR = 86_400
"""Seconds, until long after the last mark."""


@dataclass
class Agenda:
    """What is to happen when, and a clock that goes from one to the next."""

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
    """A badge that nobody else's views share a batch with; `invocations` are what it took."""

    runner: Runner
    deployed: Deployed
    agenda: Agenda
    invocations: list[Invocation] = field(default_factory=list)
    _queued: list[str] = field(default_factory=list)
    _live: defaultdict[int, list[Key]] = field(default_factory=lambda: defaultdict(list))
    _sequence: Iterator[int] = field(default_factory=lambda: count(1))

    def take(self, views: int, seconds: int) -> list[Invocation]:
        """Take so many views, spread evenly over the time to come, and see each to its end."""
        start = self.agenda.now
        for place in range(views):
            self.agenda.at(start + (place + 0.5) * seconds / views, self._get)
        self.agenda.run()
        user = self.runner.table.get(keys.user(BADGE_ID)) or {}
        if number(user, "count") != views:
            raise RuntimeError(f"{views:,} views were counted as {user}")
        return self.invocations

    def get_with(self, live_views: int) -> Invocation:
        """One GET while so many views are live, no fewer than at the one before."""
        stored = self.runner.table.count(
            keys.partition(BADGE_ID), after=keys.USER, limit=live_views + 1
        )
        ttl = int(self.agenda.now) + FAR
        self.runner.table.put_all([_view(place, ttl) for place in range(stored, live_views)])
        return self.runner.invoke(API, live_views, events.get_views(BADGE_ID))[0]

    def _get(self) -> None:
        sent = self._invoke(API, 0, events.get_views(BADGE_ID))
        if not self._queued:
            self.agenda.at(self.agenda.now + self.deployed.put_window_seconds, self._deliver)
        self._queued += sent

    def _deliver(self) -> None:
        """Lambda hands on what its pollers took in a batching window."""
        now = self.agenda.now
        queued, self._queued = self._queued, []
        for bodies in _chunks(queued, self.deployed.put_batch):
            batch = [Message(place, body, now, 1, now) for place, body in enumerate(bodies)]
            self._invoke(PUT, len(batch), queue_event("vu-mi-views", batch))
            self._mark(self.invocations[-1])

    def _mark(self, put: Invocation) -> None:
        """The views of a batch live until one mark."""
        mark = Lifetime.of(Settings()).ttl(self.agenda.now)
        if mark not in self._live:
            self.agenda.at(mark, lambda: self._expire(mark))
        written = [write.key for request in put.requests for write in request.written]
        self._live[mark] += [key for key in written if key.sk.startswith(keys.VIEW)]

    def _expire(self, mark: int) -> None:
        """TTL removes the views of a mark, and the stream tells of it."""
        for removed in _chunks(self._live.pop(mark), self.deployed.fold_batch):
            for key in removed:
                self.runner.table.write(Delete(key))
            changes = [
                Change(sequence, mark, {"PK": key.pk, "SK": key.sk, "ttl": mark})
                for key, sequence in zip(removed, self._sequence, strict=False)
            ]
            self._invoke(FOLD, len(removed), stream_event(events.STREAM_LABEL, changes))

    def _invoke(self, function: str, records: int, event: dict[str, Any]) -> list[str]:
        invocation, sent = self.runner.invoke(function, records, event)
        self.invocations.append(invocation)
        return [message.body for message in sent]


@contextmanager
def badge_of(design_of: Callable[[], Design], deployed: Deployed) -> Iterator[Badge]:
    """A new badge of a design."""
    agenda = Agenda()
    with running(design_of, deployed.function_names, lambda: agenda.now) as runner:
        yield Badge(runner, deployed, agenda)


def _view(place: int, ttl: int) -> Item:
    key = keys.view(BADGE_ID, str(ULID.from_timestamp(START + place / 1000)))
    return {"PK": key.pk, "SK": key.sk, "ttl": ttl}


def _chunks(parts: Sequence[Any], size: int) -> Iterator[list[Any]]:
    left = iter(parts)
    while chunk := list(islice(left, size)):
        yield chunk
