"""The queue of requests in which clients share the time of the server equally.

It is start-time fair queueing (Goyal, Vin and Cheng, 1997), with the measured time of each answer
as its cost. A client's request starts, in virtual time, when its last one has ended, or now. The
request that starts first is next. So a client that sends many requests, or dear ones, waits for
itself, and the first request of another client is answered before them.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

from chalicelib.units import Seconds

Item = TypeVar("Item")

MAX_IDLE = 10_000
"""Clients without a waiting request that are remembered, with a debt or without."""


@dataclass(slots=True)
class _Client(Generic[Item]):
    """The waiting requests of a client, the virtual end of its last one, and that one's cost."""

    waiting: deque[Item] = field(default_factory=deque)
    end: Seconds = 0.0
    cost: Seconds = 0.0


class FairQueue(Generic[Item]):
    """Waiting items. After each `take`, `charge` tells what the item has cost."""

    def __init__(self) -> None:
        self._time: Seconds = 0.0
        self._clients: dict[str, _Client[Item]] = {}
        self._starts: list[tuple[Seconds, int, str]] = []
        self._order = count()

    def __bool__(self) -> bool:
        return bool(self._starts)

    @property
    def clients(self) -> int:
        return len(self._clients)

    def add(self, client: str, item: Item) -> None:
        """Add an item of a client, behind its other ones."""
        own = self._clients.get(client)
        if own is None:
            own = self._clients[client] = _Client()
        own.waiting.append(item)
        if len(own.waiting) == 1:
            self._enter(client, own)

    def expected_cost(self) -> Seconds:
        """Return the cost of the last item of the client whose item is next."""
        _, _, client = self._starts[0]
        return self._clients[client].cost

    def take(self) -> tuple[str, Item]:
        """Remove the next item, and return its client and it."""
        self._time, _, client = heappop(self._starts)
        return client, self._clients[client].waiting.popleft()

    def charge(self, client: str, cost: Seconds, *, owes: bool = True) -> None:
        """Note what the item that was taken last has cost its client, and whether it owes that."""
        own = self._clients[client]
        own.cost, own.end = cost, self._time + cost * owes
        if own.waiting:
            self._enter(client, own)
        elif not self._starts:
            self._clients.clear()
        elif len(self._clients) - len(self._starts) > MAX_IDLE:
            self._forget_idle()

    def _enter(self, client: str, own: _Client[Item]) -> None:
        heappush(self._starts, (max(self._time, own.end), next(self._order), client))

    def _forget_idle(self) -> None:
        """Forget the clients without a waiting item whose next one would start now anyway."""
        self._clients = {
            client: own
            for client, own in self._clients.items()
            if own.waiting or own.end > self._time
        }
