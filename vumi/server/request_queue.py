"""The queue of requests, in which heavy clients rest while others are answered.

A server that answers one client all the time has no time left when another one comes, even if that
one is next: the processors are busy with the connections of the first. So after the requests of
heavy clients the server answers none of them for a multiple of their time.

    heavy    ██▁▁▁▁▁▁▁▁██▁▁▁▁▁▁▁▁▁██
    light    ▁▁▁█▁▁▁▁▁█▁▁▁▁▁▁▁█▁▁▁

A client within its share has its turns as they come. A turn for each client would let a visitor who
comes back wait for one request of every client of a crowd. A crowd has one share.

Each of both queues is start-time fair queueing (Goyal, Vin and Cheng, 1997), with the measured time
of each answer as its cost. A client's request starts, in virtual time, when its last one has ended,
or now. The request that starts first is next. So a client that sends many requests, or dear ones,
waits for itself, and the first request of another client is answered before them.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count, takewhile
from typing import Generic, TypeVar

from chalicelib.units import Seconds

Item = TypeVar("Item")

MAX_CLIENTS = 10_000
"""Clients that are remembered. The one that was answered the longest time ago is forgotten."""
COMMIT_SECONDS = 0.002
"""The time in which a commit takes requests. Nothing else is answered meanwhile."""
SLOW_DISK = 2.0
"""The time in which a commit takes requests on a slow disk, as a multiple of what it takes itself:
to store the views of its requests, less than half of their time, and to wait for the disk."""
MAX_COMMIT_SECONDS = 0.02
"""The longest time in which a commit takes requests, however slow the disk is."""
MEAN_COMMITS = 8
"""Commits whose own times are averaged. A few copy the write-ahead log, and take longer."""
HEAVY_COMMIT_SECONDS = 0.001
"""The time after whose begin a commit takes no request of a heavy client, so that light ones, which
come meanwhile, wait for less."""
LIGHT_SHARE = 0.03
"""The share of the server's time that a client may use for long without being heavy."""
CROWD_SHARE = 0.1
"""The share of a crowd, which may be that of all visitors of a popular badge."""
FREE_SECONDS = 0.005
"""The time beyond this share up to which a client owes nothing: its next request waits for those
that wait already, and not for one of each client of a crowd."""
BURST_SECONDS = 0.05
"""The time beyond this share after which a client is heavy."""
MAX_COST_SECONDS = 0.02
"""The most that an answer costs its client. One that took longer was interrupted by the system."""
RECENT_SECONDS = 1.0
"""The time for which a client is counted after its last answer."""
OTHERS_SECONDS = 1.0
"""The time after an answer to another client for which a crowd may be heavy."""
COUNT_SECONDS = 0.1
"""The time between two counts of light clients."""
REST = 4.0
"""The rest after the requests of heavy clients, as a multiple of their time."""
MAX_DELAY_SECONDS = 1.0
"""The time after a rest for which requests of light clients are answered before heavy ones, and the
longest rest."""


class RequestQueue(Generic[Item]):
    """The waiting requests of light and of heavy clients; `now` is monotonic."""

    def __init__(self) -> None:
        self._light, self._heavy = FairQueue[Item](), FairQueue[Item]()
        self._clients = Clients[Item]()
        self._taken = self._other = Client[Item]("")
        self._taken_at: Seconds = 0.0
        self._others_at: Seconds = -OTHERS_SECONDS
        self._cost: Seconds = 0.0
        self._heavy_cost: Seconds = 0.0
        self._own_time: Seconds = 0.0
        self._rest_until: Seconds = 0.0

    def __bool__(self) -> bool:
        return bool(self._light.starts or self._heavy.starts)

    def add(self, client: str, item: Item, now: Seconds) -> None:
        """Add an item of a client, behind its other ones."""
        self._append(self._clients.of(client, now), item, now)

    def wait(self, now: Seconds) -> Seconds:
        """Return the time until the next item can be taken, of a queue that has items."""
        return 0.0 if self._light.starts else max(0.0, self._rest_until - now)

    def take(self, now: Seconds, began: Seconds | None = None) -> Item | None:
        """Remove the next item, and return it, or None if none can be taken now.

        A commit that `began` takes an item if one like the last one of its client ends in its time.
        """
        queue, seconds = self._light, max(COMMIT_SECONDS, SLOW_DISK * self._own_time)
        if self._heavy.starts and (not queue.starts or now >= self._rest_until + MAX_DELAY_SECONDS):
            queue, seconds = self._heavy, HEAVY_COMMIT_SECONDS
            if now < self._rest_until:
                return None
        if not queue.starts:
            return None
        if began is not None and now + queue.next().cost >= began + seconds:
            return None
        self._taken, self._taken_at = queue.take(), now
        return self._taken.waiting.popleft()

    def charge(self, cost: Seconds, now: Seconds, crowd: str = "") -> None:
        """Note what the item that was taken last has cost its client, and its crowd if it has one.

        A crowd is charged like a client.
        """
        cost, is_over = self._use(cost, now, crowd)
        is_heavy = self._clients.is_heavy(self._taken, now)
        if is_heavy or (is_over and self._is_beside_others(now)):
            self._heavy_cost += cost
        elif not is_over:
            self._other, self._others_at = self._taken, now

    def defer(self, item: Item, cost: Seconds, now: Seconds, crowd: str) -> None:
        """Add the item that was taken last again, behind the others of its crowd, which rests.

        It has cost so much until its crowd was known. That adds to no rest: otherwise a flood of
        such items would let none of them have its turn.
        """
        self._use(cost, now, crowd)
        self._append(self._clients.of(crowd, now, CROWD_SHARE), item, now)

    def must_wait(self, crowd: str) -> bool:
        """Return whether the item that was taken last, of a crowd, came before its crowd's turn.

        A crowd is heavy only beside others that are light.
        """
        if self._taken.queue is self._heavy or not self._is_beside_others(self._taken_at):
            return False
        now = self._taken_at
        return self._clients.of(crowd, now, CROWD_SHARE).left(now) > BURST_SECONDS

    def rest(self, spent: Seconds, now: Seconds) -> None:
        """Begin the rest after the items that were taken since the last one.

        `spent` is the time that the server spent on all of them, with their commit. The heavy ones
        have that part of it which they have of the costs.
        """
        if self._heavy_cost:
            owed = REST * spent * self._heavy_cost / self._cost
            rested = max(now, self._rest_until) + owed
            self._rest_until = min(rested, now + MAX_DELAY_SECONDS)
        own_time = min(spent - self._cost, MAX_COMMIT_SECONDS / SLOW_DISK)
        self._own_time += (own_time - self._own_time) / MEAN_COMMITS
        self._cost = self._heavy_cost = 0.0

    def clear(self) -> list[Item]:
        """Remove all items, and return them."""
        clients = dict.fromkeys([*self._light.clear(), *self._heavy.clear(), self._taken])
        items = [item for client in clients for item in client.waiting]
        for client in clients:
            client.waiting.clear()
        return items

    def _append(self, client: Client[Item], item: Item, now: Seconds) -> None:
        client.waiting.append(item)
        if len(client.waiting) == 1:
            self._enter(client, now)

    def _enter(self, client: Client[Item], now: Seconds) -> None:
        """Let a client wait for its turn. A crowd has turns of its own only when it is heavy."""
        is_heavy = client.share == CROWD_SHARE or self._clients.is_heavy(client, now)
        (self._heavy if is_heavy else self._light).enter(client)

    def _use(self, cost: Seconds, now: Seconds, crowd: str) -> tuple[Seconds, bool]:
        """Charge the client that was taken last, let it wait for its next turn, and charge a crowd.

        Return the cost that counts, and whether the crowd is beyond a burst. A crowd that was taken
        itself is charged once.
        """
        cost, client = min(cost, MAX_COST_SECONDS), self._taken
        self._cost += cost
        used = self._clients.use(client, cost, now)
        if client.queue is not None:
            client.queue.charge(client, cost if used > FREE_SECONDS else 0.0)
        if client.waiting:
            self._enter(client, now)
        if not crowd:
            return cost, False
        own = self._clients.of(crowd, now, CROWD_SHARE)
        used = own.used if own is client else self._clients.use(own, cost, now)
        return cost, used > BURST_SECONDS

    def _is_beside_others(self, now: Seconds) -> bool:
        """Return whether another client than that of the last item was answered lately."""
        return self._other is not self._taken and now < self._others_at + OTHERS_SECONDS


class Clients(Generic[Item]):
    """The clients and crowds that used the server lately, by their names.

    A client is heavy if it has used more than its share of the time for longer than a burst, as
    long as most clients are light. So neither one client alone nor a crowd of equal ones is heavy.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[str, Client[Item]] = OrderedDict()
        self._are_most_light = False
        self._counted_at: Seconds = 0.0

    def of(self, name: str, now: Seconds, share: float = LIGHT_SHARE) -> Client[Item]:
        """Return a client by its name, a new one if it is not known."""
        client = self._known.get(name)
        if client is None:
            client = self._known[name] = Client(name, share, now)
            if len(self._known) > MAX_CLIENTS:
                self._forget()
        return client

    def use(self, client: Client[Item], cost: Seconds, now: Seconds) -> Seconds:
        """Note what a client has used at a time, and return by how much it is beyond its share."""
        self._known[client.name] = client
        self._known.move_to_end(client.name)
        client.used, client.used_at, client.cost = client.left(now) + cost, now, cost
        return client.used

    def is_heavy(self, client: Client[Item], now: Seconds) -> bool:
        """Return whether a client is heavy, and most clients were light a moment ago."""
        if now >= self._counted_at + COUNT_SECONDS:
            recent = takewhile(
                lambda one: one.used_at > now - RECENT_SECONDS, reversed(self._known.values())
            )
            lefts = [one.left(now) for one in recent if one.share == LIGHT_SHARE]
            is_light = [left <= BURST_SECONDS for left in lefts]
            self._are_most_light, self._counted_at = 2 * sum(is_light) > len(is_light), now
        return self._are_most_light and client.left(now) > BURST_SECONDS

    def _forget(self) -> None:
        """Forget the clients that were answered the longest time ago, if none of theirs waits."""
        for _ in range(2):
            name, client = self._known.popitem(last=False)
            if client.waiting:
                self._known[name] = client


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

    def left(self, now: Seconds) -> Seconds:
        """Return the time used beyond the share that no later share has made up for."""
        return max(0.0, self.used - (now - self.used_at) * self.share)


class FairQueue(Generic[Item]):
    """Clients with waiting items. One that was taken is charged, and then enters again."""

    def __init__(self) -> None:
        self._time: Seconds = 0.0
        self._last_end: Seconds = 0.0
        self.starts: list[tuple[Seconds, int, Client[Item]]] = []
        """The heap of clients with waiting items, by their virtual starts."""
        self._order = count()

    def next(self) -> Client[Item]:
        """Return the client whose item is next."""
        return self.starts[0][2]

    def enter(self, client: Client[Item]) -> None:
        """Let a client with waiting items wait for its turn. It owes only what it used here."""
        if client.queue is not self:
            client.queue, client.end = self, 0.0
        heappush(self.starts, (max(self._time, client.end), next(self._order), client))

    def take(self) -> Client[Item]:
        """Remove the client whose item is next, and return it."""
        self._time, _, client = heappop(self.starts)
        return client

    def charge(self, client: Client[Item], cost: Seconds) -> None:
        """Note what the client that was taken last owes, as long as any client waits."""
        client.end = self._time + cost
        self._last_end = max(self._last_end, client.end)
        if not client.waiting and not self.starts:
            self._time = self._last_end

    def clear(self) -> list[Client[Item]]:
        """Remove all clients, and return them in the order in which they would start."""
        clients = [client for _, _, client in sorted(self.starts)]
        self.starts.clear()
        return clients
