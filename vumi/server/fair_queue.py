"""The queue in which clients share the time of the server equally.

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


@dataclass(slots=True, eq=False)
class Client(Generic[Item]):
    """The waiting items of a client, or of a crowd of clients, which has its turns like one.

    `cost` is that of its last item, and `end` the virtual end of that in the `queue`. `used` is the
    time that it had used beyond its `share` of the server at `used_at`: a leaky bucket.
    """

    name: str
    share: float = 0.0
    used_at: Seconds = 0.0
    used: Seconds = 0.0
    cost: Seconds = 0.0
    end: Seconds = 0.0
    queue: FairQueue[Item] | None = None
    waiting: deque[Item] = field(default_factory=deque)

    def use(self, cost: Seconds, now: Seconds) -> Seconds:
        """Note what an item has cost, and return the time used beyond the share."""
        self.used, self.used_at, self.cost = self.left(now) + cost, now, cost
        return self.used

    def left(self, now: Seconds) -> Seconds:
        """Return the time used beyond the share that no later share has made up for."""
        return max(0.0, self.used - (now - self.used_at) * self.share)


class FairQueue(Generic[Item]):
    """Clients with waiting items. One that was taken is charged, and then enters again."""

    def __init__(self) -> None:
        self._time: Seconds = 0.0
        self._last_end: Seconds = 0.0
        self._starts: list[tuple[Seconds, int, Client[Item]]] = []
        self._order = count()

    def __bool__(self) -> bool:
        return bool(self._starts)

    def next(self) -> Client[Item]:
        """Return the client whose item is next."""
        return self._starts[0][2]

    def enter(self, client: Client[Item]) -> None:
        """Let a client with waiting items wait for its turn. It owes only what it used here."""
        if client.queue is not self:
            client.queue, client.end = self, 0.0
        heappush(self._starts, (max(self._time, client.end), next(self._order), client))

    def take(self) -> Client[Item]:
        """Remove the client whose item is next, and return it."""
        self._time, _, client = heappop(self._starts)
        return client

    def charge(self, client: Client[Item], cost: Seconds) -> None:
        """Note what the client that was taken last owes, as long as any client waits."""
        client.end = self._time + cost
        self._last_end = max(self._last_end, client.end)
        if not client.waiting and not self._starts:
            self._time = self._last_end

    def clear(self) -> list[Client[Item]]:
        """Remove all clients, and return them in the order in which they would start."""
        clients = [client for _, _, client in sorted(self._starts)]
        self._starts.clear()
        return clients
