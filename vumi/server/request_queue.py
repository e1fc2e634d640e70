"""The queue of requests, in which heavy clients rest while others are answered.

A server that answers one client all the time has no time left when another one comes, even if that
one is next: the processors are busy with the connections of the first. So after the requests of
heavy clients the server answers none of them for a multiple of their time.

    heavy    ██▁▁▁▁▁▁▁▁██▁▁▁▁▁▁▁▁▁██
    light    ▁▁▁█▁▁▁▁▁█▁▁▁▁▁▁▁█▁▁▁

A client within its share has its turns as they come. A turn for each client would let a visitor who
comes back wait for one request of every client of a crowd. A crowd has one share (`crowds`).
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import takewhile
from typing import Generic, TypeVar

from chalicelib.units import Seconds
from vumi.server.fair_queue import MAX_IDLE, FairQueue

Item = TypeVar("Item")

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
        self._recent, self._crowds = RecentUse(), RecentUse(CROWD_SHARE)
        self._taken_from, self._taken_at = self._light, 0.0
        self._cost: Seconds = 0.0
        self._heavy_cost: Seconds = 0.0
        self._rest_until: Seconds = 0.0
        self._taken_client = self._other = ""
        self._others_at: Seconds = -OTHERS_SECONDS

    def __bool__(self) -> bool:
        return bool(self._light or self._heavy)

    def add(self, client: str, item: Item, now: Seconds) -> None:
        """Add an item of a client, behind its other ones."""
        is_heavy = self._recent.is_heavy(client, now)
        (self._heavy if is_heavy else self._light).add(client, item)

    def defer(self, crowd: str, item: Item) -> None:
        """Add the item that was taken last again, behind the others of its crowd, which rests."""
        self._heavy.add(crowd, item)

    def wait(self, now: Seconds) -> Seconds:
        """Return the time until the next item can be taken, of a queue that has items."""
        return 0.0 if self._light else max(0.0, self._rest_until - now)

    def peek(self, now: Seconds) -> tuple[bool, Seconds]:
        """Return whether the client whose item is next is heavy, and the cost of its last item."""
        queue = self._next(now)
        return queue is self._heavy, queue.expected_cost()

    def take(self, now: Seconds) -> tuple[str, Item]:
        """Remove the next item, and return its client and it."""
        self._taken_from, self._taken_at = self._next(now), now
        self._taken_client, item = self._taken_from.take()
        return self._taken_client, item

    def charge(self, client: str, cost: Seconds, now: Seconds, crowd: str = "") -> None:
        """Note what the item that was taken last has cost its client, and its crowd if it has one.

        A crowd is charged like a client.
        """
        cost = min(cost, MAX_COST_SECONDS)
        used = self._recent.add(client, cost, now)
        self._taken_from.charge(client, cost, owes=used > FREE_SECONDS)
        is_over = bool(crowd) and self._crowds.add(crowd, cost, now) > BURST_SECONDS
        is_heavy = self._recent.are_most_light and used > BURST_SECONDS
        self._cost += cost
        if is_heavy or (is_over and self._is_beside_others(now)):
            self._heavy_cost += cost
        elif not is_over:
            self._other, self._others_at = client, now

    def must_wait(self, crowd: str) -> bool:
        """Return whether the item that was taken last, of a crowd, came before its crowd's turn.

        A crowd is heavy only beside others that are light.
        """
        if self._taken_from is self._heavy or not self._is_beside_others(self._taken_at):
            return False
        return self._crowds.is_over(crowd, self._taken_at)

    def _is_beside_others(self, now: Seconds) -> bool:
        """Return whether another client than that of the last item was answered lately."""
        return self._other != self._taken_client and now < self._others_at + OTHERS_SECONDS

    def rest(self, spent: Seconds, now: Seconds) -> None:
        """Begin the rest after the items that were taken since the last one.

        `spent` is the time that the server spent on all of them, with their commit. The heavy ones
        have that part of it which they have of the costs.
        """
        if self._heavy_cost:
            owed = REST * spent * self._heavy_cost / self._cost
            rested = max(now, self._rest_until) + owed
            self._rest_until = min(rested, now + MAX_DELAY_SECONDS)
        self._cost = self._heavy_cost = 0.0

    def _next(self, now: Seconds) -> FairQueue[Item]:
        is_due = now >= self._rest_until + MAX_DELAY_SECONDS
        return self._heavy if self._heavy and (is_due or not self._light) else self._light


class RecentUse:
    """The time of the server that clients have used lately, by a leaky bucket each.

    A client is heavy if it has used more than its share of the time for longer than a burst, as
    long as most clients are light. So neither one client alone nor a crowd of equal ones is heavy.
    """

    def __init__(self, share: float = LIGHT_SHARE) -> None:
        self._share = share
        self._used: OrderedDict[str, tuple[Seconds, Seconds]] = OrderedDict()
        self.are_most_light = False
        self._counted_at: Seconds = 0.0

    def add(self, client: str, cost: Seconds, now: Seconds) -> Seconds:
        """Note what a client has used at a time, and return by how much it is beyond its share."""
        used = self._left(client, now) + cost
        self._used[client] = (used, now)
        self._used.move_to_end(client)
        if len(self._used) > MAX_IDLE:
            self._used.popitem(last=False)
        if now >= self._counted_at + COUNT_SECONDS:
            self._count(now)
        return used

    def is_over(self, client: str, now: Seconds) -> bool:
        """Return whether a client has used more than its share by more than a burst."""
        return self._left(client, now) > BURST_SECONDS

    def is_heavy(self, client: str, now: Seconds) -> bool:
        return self.are_most_light and self.is_over(client, now)

    def _left(self, client: str, now: Seconds) -> Seconds:
        used, then = self._used.get(client, (0.0, now))
        return max(0.0, used - (now - then) * self._share)

    def _count(self, now: Seconds) -> None:
        recent = takewhile(
            lambda one: self._used[one][1] > now - RECENT_SECONDS, reversed(self._used)
        )
        is_light = [not self.is_over(client, now) for client in recent]
        self.are_most_light, self._counted_at = 2 * sum(is_light) > len(is_light), now
