"""The limits per client address: token buckets per action, in memory only.

An action takes a token of the client's bucket and of those of the larger networks that it is in. So
neither many clients of one network, nor a client whose bucket was dropped, get more than the
network's shares. A bucket is one time, at which it is full again (the generic cell rate algorithm;
ITU-T I.371).
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from socket import AF_INET, AF_INET6, inet_ntop, inet_pton
from threading import Lock
from typing import TypeAlias

from chalicelib.http import errors
from chalicelib.http.errors import ClientError
from chalicelib.resources import Action
from chalicelib.units import Seconds, WholeSeconds

MAX_CLIENTS = 10_000
"""Buckets of an action and a size of networks. The one unused for the longest time is dropped."""
REFUSAL_SECONDS = 0.01
"""The shortest time between two refusals that a client gets."""
MAX_REFUSAL_DELAY_SECONDS = 2.0
"""The longest delay. In it the refusals of all connections of a client come one after another."""
MAX_BODIES = 400
"""Bodies that are read concurrently. Each takes up to 100 KB of the server's buffers beside it."""
MAX_MEMORY_BYTES = 32 * 1024 * 1024
"""128 of the longest bodies."""
IPV6_SHARES = {8: 1, 7: 2, 6: 4}
"""The shares of networks by the bytes of their prefixes.

One subscriber has all addresses of a /64, and often of a /56 or a /48.
"""
IPV4_SHARES = {4: 1, 3: 4}
"""Hosts rent out the addresses of a /24 together, and whole companies share one."""
IPV4_MAPPED = bytes(10) + b"\xff\xff"

MICROSECONDS = 1_000_000

Microseconds: TypeAlias = int
"""Whole microseconds, so that sums of the times of buckets are exact."""


@dataclass(frozen=True, slots=True)
class Rate:
    """The number of actions that a full bucket allows, and the seconds in which it fills."""

    actions: int
    seconds: WholeSeconds


class ClientLimits:
    """The limits of one machine, and the number of refused actions; `clock` is monotonic."""

    def __init__(self, rates: Mapping[Action, Rate], clock: Callable[[], Seconds]) -> None:
        self._buckets = {action: Buckets(rate) for action, rate in rates.items()}
        self._clock = clock
        self.refused = Counter[Action]()

    def wait(self, action: Action, client: str) -> Seconds:
        buckets = self._buckets.get(action)
        if buckets is None or not client:
            return 0.0
        now = int(self._clock() * MICROSECONDS)
        wait = buckets.take(client, now)
        self.refused[action] += wait > 0
        return wait / MICROSECONDS

    def left(self) -> dict[str, int]:
        """Return the actions that the client with the fewest has left, of each limit."""
        now = int(self._clock() * MICROSECONDS)
        return {action.name.lower(): one.left(now) for action, one in self._buckets.items()}


class Buckets:
    """The buckets of one action. Requests on several threads use them."""

    def __init__(self, rate: Rate) -> None:
        self._period = rate.seconds * MICROSECONDS
        self._per_action = self._period // rate.actions
        self._full_at = {
            shares: OrderedDict[str | bytes, Microseconds]() for shares in IPV6_SHARES.values()
        }
        self._lock = Lock()

    def take(self, client: str, now: Microseconds) -> Microseconds:
        """Take a token of each bucket and return 0, or return the time until all have one."""
        networks, full_at, wait = networks_of(client), {}, 0
        with self._lock:
            for network, shares in networks.items():
                full_at[network] = max(now, self._full_at[shares].pop(network, now))
                wanted = full_at[network] + self._per_action // shares
                wait = max(wait, wanted - now - self._period)
            for network, shares in networks.items():
                buckets, taken = self._full_at[shares], 0 if wait else self._per_action // shares
                buckets[network] = full_at[network] + taken
                if len(buckets) > MAX_CLIENTS:
                    buckets.popitem(last=False)
            return wait

    def left(self, now: Microseconds) -> int:
        """Return the fewest tokens that the bucket of a client has."""
        with self._lock:
            full_at = max(self._full_at[1].values(), default=now)
        return (self._period - max(0, full_at - now)) // self._per_action


class RefusalPace:
    """The delays of refusals, so that each client gets one after another.

    A client that asks again as soon as it is refused would otherwise cost the server a head, a body
    and a response as often as it can. `clock` is monotonic.
    """

    def __init__(self, clock: Callable[[], Seconds]) -> None:
        self._clock = clock
        self._next = OrderedDict[str, Seconds]()

    def delay(self, client: str) -> Seconds:
        """Return the time that the next refusal of a client waits before it is sent."""
        network, now = network_of(client), self._clock()
        wanted = max(now, self._next.pop(network, now))
        sent_at = min(wanted, now + MAX_REFUSAL_DELAY_SECONDS)
        self._next[network] = sent_at + REFUSAL_SECONDS
        if len(self._next) > MAX_CLIENTS:
            self._next.popitem(last=False)
        return sent_at - now


class TooManyBodiesError(ClientError):
    """The bodies that a client sends concurrently are too many, or take too much memory.

    Its connection ends, because its body may not have been read.
    """

    status = 429
    code = "too_many_requests"
    headers: Mapping[str, str] = {"Retry-After": errors.RETRY_SECONDS, "Connection": "close"}

    def __init__(self) -> None:
        super().__init__("your address sends too many bodies: send one after another")


class SharedCapacity:
    """What the bodies of all clients use together, from the head of a request to its response."""

    def __init__(self, most: int) -> None:
        self.free = most
        self._held = Counter[str]()

    @contextmanager
    def share(self, client: str, size: int) -> Iterator[None]:
        """Use a part for a client. Raises `TooManyBodiesError` if it has no share for it."""
        holder = network_of(client)
        if size and self._held[holder] + size > self.free:
            raise TooManyBodiesError
        self.free -= size
        self._held[holder] += size
        try:
            yield
        finally:
            self.free += size
            self._held -= Counter({holder: size})


def network_of(client: str) -> str:
    """Return the client that an address counts for; a text that is no address is its own."""
    if ":" not in client:
        return client
    packed = _pack(client)
    if len(packed) in IPV6_SHARES:
        return inet_ntop(AF_INET6, packed + bytes(8)) + "/64"
    return inet_ntop(AF_INET, packed) if packed else client


def networks_of(client: str) -> Mapping[str | bytes, int]:
    """Return the networks of an address, each with its shares of the limit of one client."""
    if not (packed := _pack(client)):
        return {client: 1}
    shares = IPV6_SHARES if len(packed) in IPV6_SHARES else IPV4_SHARES
    return {packed[:size]: shares[size] for size in shares}


def _pack(client: str) -> bytes:
    """Return the address of IPv4, the /64 of IPv6, or nothing of a text that is no address."""
    try:
        packed = inet_pton(AF_INET6 if ":" in client else AF_INET, client.partition("%")[0])
    except OSError:
        return b""
    return packed[12:] if packed.startswith(IPV4_MAPPED) else packed[:8]
