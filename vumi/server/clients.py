"""The address of a client, which a trusted proxy may tell, and the limits of each client.

The limits of actions are token buckets, in memory only. An action takes a token of the client's
bucket and of those of the larger networks that it is in. So neither many clients of one network,
nor a client whose bucket was dropped, get more than the network's shares. A bucket is one time, at
which it is full again (the generic cell rate algorithm; ITU-T I.371).
"""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from socket import AF_INET, AF_INET6, inet_ntop, inet_pton
from threading import Lock
from typing import TypeAlias

from chalicelib import telemetry
from chalicelib.http import errors
from chalicelib.http.errors import ClientError
from chalicelib.resources import Action
from chalicelib.settings import parts_of
from chalicelib.units import Seconds, WholeSeconds
from vumi.server.sockets import UNIX

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
MAX_PROXIES = 10
"""Addresses of a header that are read. A request has passed fewer proxies."""

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network
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
    """What the bodies of all clients use together, from the head of a request to its response.

    A client may hold as much as is free (the dynamic threshold of Choudhury and Hahne, 1998). So
    one client holds at most half, and many clients leave some for the next one.
    """

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


@dataclass(frozen=True, slots=True)
class TrustedProxies:
    """The networks of trusted proxies; `unix` trusts the peer at a Unix socket, too."""

    networks: tuple[Network, ...] = ()
    unix: bool = False

    @classmethod
    def parse(cls, setting: str) -> TrustedProxies:
        """Parse the setting TRUSTED_PROXIES. Raises `ValueError`."""
        return cls(tuple(map(_parse_network, parts_of(setting))))

    def __bool__(self) -> bool:
        return bool(self.networks or self.unix)

    def client_of(self, peer: str, forwarded: str) -> str:
        """Return the address of the client, or `UNIX` if the proxy does not tell it.

        `forwarded` is the header. Each proxy appends the address of its own peer, so only the
        addresses that trusted proxies have appended are believed: from the right, up to the first
        one that is not trusted. A malformed one ends the search too.
        """
        client = peer
        for given in reversed(forwarded.rsplit(",", MAX_PROXIES)[-MAX_PROXIES:]):
            address = parse_address(given.strip())
            if address is None or not self.trusts(client):
                break
            client = str(address)
        return client

    def trusts(self, client: str) -> bool:
        """Return whether an address is a trusted proxy's."""
        address = parse_address(client)
        if address is None:
            return self.unix and client == UNIX
        return any(address in network for network in self.networks)


def warn_of_exposure(hosts: Iterable[str], proxies: TrustedProxies) -> None:
    """Log if other machines reach the server without a proxy, which would end TLS."""
    exposed = [host for host in hosts if not ip_address(host.partition("%")[0]).is_loopback]
    if exposed and not proxies.networks:
        telemetry.event(
            logging.WARNING,
            "plain_http_exposed",
            addresses=exposed,
            fix="put a proxy with TLS before it and name its network in TRUSTED_PROXIES, or unset"
            " HOST",
        )


def parse_address(given: str) -> Address | None:
    """Return an address, as IPv4 if it is mapped to IPv6, or None for any other text."""
    try:
        address = ip_address(given)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _parse_network(part: str) -> Network:
    try:
        return ip_network(part)
    except ValueError as reason:
        raise ValueError(
            "must be networks like 10.0.0.0/8 or fd00::/8, separated by commas, not"
            f" {part!r}: {reason}"
        ) from None
