"""The limits per client address: one token bucket per address and action, in memory only.

A bucket is one time, at which it is full again (the generic cell rate algorithm; ITU-T I.371).
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address, IPv6Network, ip_address
from threading import Lock
from typing import TypeAlias

from chalicelib.limits import Action
from chalicelib.units import Seconds, WholeSeconds

MAX_CLIENTS = 10_000
"""Buckets of an action. The one that was not used for the longest time is dropped for another."""
IPV6_PREFIX_BITS = 64
"""A network of this size has one client, because one subscriber has all of its addresses."""


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
        wait = buckets.take(network_of(client), now)
        self.refused[action] += wait > 0
        return wait / MICROSECONDS


class Buckets:
    """The buckets of one action. Requests on several threads use them."""

    def __init__(self, rate: Rate) -> None:
        self._period = rate.seconds * MICROSECONDS
        self._per_action = self._period // rate.actions
        self._full_at: OrderedDict[str, Microseconds] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._full_at)

    def take(self, client: str, now: Microseconds) -> Microseconds:
        """Take a token and return 0, or return the time until there is one."""
        with self._lock:
            full_at = max(now, self._full_at.get(client, now)) + self._per_action
            if (wait := full_at - now - self._period) > 0:
                return wait
            self._full_at[client] = full_at
            self._full_at.move_to_end(client)
            if len(self._full_at) > MAX_CLIENTS:
                self._full_at.popitem(last=False)
            return 0


def network_of(client: str) -> str:
    """Return the client that an address counts for; a text that is no address is its own."""
    try:
        address = ip_address(client)
    except ValueError:
        return client
    if not isinstance(address, IPv6Address):
        return client
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(IPv6Network((int(address), IPV6_PREFIX_BITS), strict=False))
