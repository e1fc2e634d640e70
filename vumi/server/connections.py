"""The open connections of clients, and the guard, which closes those that cost others their turn.

Each phase of a request has an absolute deadline, so a client that sends or reads one byte now and
then gains nothing. The server itself closes a connection whose next head is not complete in time,
and the application refuses a body that is not.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, auto
from typing import TypeAlias

from chalicelib import telemetry
from chalicelib.units import Seconds
from vumi.server import sockets
from vumi.server.clients import network_of
from vumi.server.sockets import Accepted, Peer

Look: TypeAlias = Callable[[Sequence[Peer]], Iterable[Accepted | None]]
"""A function that yields a connection at some addresses, or None, for each open file."""
Sleep: TypeAlias = Callable[[Seconds], Awaitable[object]]

SWEEP_SECONDS = 0.5
SLICE = 50
"""Descriptors that one step looks at or closes: a millisecond in which nothing is answered."""
PAUSE_SECONDS = 0.01
"""The time between two steps, in which requests are answered."""


class Phase(IntEnum):
    """The phase of a connection; a lower one is closed before a higher one."""

    HEAD = auto()
    """No request has arrived yet."""
    BODY = auto()
    """A body has not arrived completely."""
    IDLE = auto()
    """The last request was answered."""
    ANSWER = auto()
    """A request is being answered. Its connection is closed only if its client does not read."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of connections.

    `head_seconds`: the time until the first request.
    `unread_seconds`: the time in which answers must be received completely.
    `connections`: the number of open connections.
    `share`: the number of open connections of one address, or of one IPv6 network of /64.
    """

    head_seconds: Seconds = 10.0
    unread_seconds: Seconds = 60.0
    connections: int = 1_000
    share: int = 200


@dataclass(slots=True)
class Connection:
    """A connection in a phase since a time; `unread_since` is when its client stopped reading.

    `holder` is the address or network whose share it uses, empty for a proxy.
    """

    holder: str
    phase: Phase
    since: Seconds
    unread_since: Seconds | None = None

    @property
    def order(self) -> tuple[bool, Phase, Seconds]:
        """Return the order in which connections are closed, the first one first."""
        return self.phase is Phase.IDLE and self.unread_since is None, self.phase, self.since


@dataclass(slots=True)
class Connections:
    """The phases of connections: the application tells of requests, the guard of all others.

    Connections of a proxy have no share, because their clients are others.
    """

    limits: Limits = field(default_factory=Limits)
    is_proxy: Callable[[str], bool] = lambda _: False
    clock: Callable[[], Seconds] = time.monotonic
    _open: dict[Peer, Connection] = field(default_factory=dict)

    def enter(self, peer: Peer, phase: Phase) -> None:
        """Note that the request of a connection has reached a phase."""
        connection = self._open.get(peer)
        if connection is None:
            holder = "" if self.is_proxy(peer[0]) else network_of(peer[0])
            self._open[peer] = Connection(holder, phase, self.clock())
        else:
            connection.phase, connection.since = phase, self.clock()

    def is_idle(self, peer: Peer) -> bool:
        """Return whether the last request of a connection was answered; False at a Unix socket."""
        connection = self._open.get(peer)
        return peer[0] != sockets.UNIX and connection is not None and connection.phase is Phase.IDLE

    def update(self, seen: Mapping[Peer, Accepted], began: Seconds) -> None:
        """Note which connections are open; `began` is when the look at them began."""
        for peer in [peer for peer, one in self._open.items() if one.since < began]:
            if peer not in seen:
                del self._open[peer]
        for peer, accepted in seen.items():
            if peer not in self._open:
                self.enter(peer, Phase.HEAD)
            connection = self._open[peer]
            if not accepted.unsent:
                connection.unread_since = None
            elif connection.unread_since is None:
                connection.unread_since = self.clock()

    def to_close(self) -> Collection[Peer]:
        """Return the connections to close: the overdue ones, and those that are too many."""
        now = self.clock()
        closing = {peer for peer, one in self._open.items() if self._is_overdue(one, now)}
        closing.update(self._too_many(closing))
        return closing

    def _is_overdue(self, one: Connection, now: Seconds) -> bool:
        if one.unread_since is not None and now - one.unread_since > self.limits.unread_seconds:
            return True
        return one.phase is Phase.HEAD and now - one.since > self.limits.head_seconds

    def _too_many(self, closing: Collection[Peer]) -> Iterator[Peer]:
        """Yield the connections beyond the share of their holder, and beyond the number of all."""
        left = {peer: one for peer, one in self._open.items() if peer not in closing}
        if len(left) <= self.limits.share:
            return
        total, shares = len(left), Counter(one.holder for one in left.values() if one.holder)
        closable = [entry for entry in left.items() if entry[1].phase is not Phase.ANSWER]
        kept: list[Peer] = []
        for peer, one in sorted(closable, key=lambda entry: entry[1].order):
            if shares[one.holder] > self.limits.share:
                shares[one.holder] -= 1
                total -= 1
                yield peer
            else:
                kept.append(peer)
        yield from kept[: max(0, total - self.limits.connections)]


async def guard(
    connections: Connections,
    addresses: Sequence[Peer],
    look: Look = sockets.accepted,
    sleep: Sleep = asyncio.sleep,
) -> None:
    """Look at the open connections and close some, until cancelled."""
    telemetry.begin("guard", None)
    sockets.limit(addresses, connections.limits.unread_seconds)
    while True:
        try:
            await _sweep(connections, look(addresses), sleep)
        except Exception:  # noqa: BLE001  without it, one client could keep all others out
            telemetry.event(logging.ERROR, "loop_failed")
        await sleep(SWEEP_SECONDS)


async def _sweep(connections: Connections, files: Iterable[Accepted | None], sleep: Sleep) -> None:
    """Look at all files once, and close some connections. Pause after each slice of them."""
    began, seen = connections.clock(), dict[Peer, Accepted]()
    for place, one in enumerate(files, 1):
        if one is not None:
            seen[one.peer] = one
        if place % SLICE == 0:
            await sleep(PAUSE_SECONDS)
    connections.update(seen, began)
    for place, peer in enumerate(seen.keys() & connections.to_close(), 1):
        seen[peer].close()
        if place % SLICE == 0:
            await sleep(PAUSE_SECONDS)
