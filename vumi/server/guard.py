"""The guard of the web server, which closes connections that cost other clients their turn."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence

from chalicelib import telemetry
from chalicelib.units import Seconds
from vumi.server import sockets
from vumi.server.connections import Connections
from vumi.server.sockets import Accepted, Peer

SWEEP_SECONDS = 0.5
SLICE = 50
"""Descriptors that one step looks at or closes: a millisecond in which nothing is answered."""
PAUSE_SECONDS = 0.01
"""The time between two steps, in which requests are answered."""


class Guard:
    """A loop that looks at the open connections, and closes those that `Connections` chooses."""

    def __init__(
        self,
        connections: Connections,
        addresses: Sequence[Peer],
        accepted: Callable[[Sequence[Peer]], Iterable[Accepted | None]] = sockets.accepted,
        sleep: Callable[[Seconds], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._connections = connections
        self._addresses = addresses
        self._accepted = accepted
        self._sleep = sleep

    async def run(self) -> None:
        """Sweep until cancelled."""
        telemetry.begin("guard", None)
        sockets.limit(self._addresses, self._connections.limits.unread_seconds)
        while True:
            try:
                await self.sweep()
            except Exception:  # noqa: BLE001  without it, one client could keep all others out
                telemetry.event(logging.ERROR, "loop_failed")
            await self._sleep(SWEEP_SECONDS)

    async def sweep(self) -> None:
        """Look at all connections once, and close some."""
        began, seen = self._connections.clock(), dict[Peer, Accepted]()
        for place, one in enumerate(self._accepted(self._addresses), 1):
            if one is not None:
                seen[one.peer] = one
            await self._pause_after(place)
        self._connections.update(seen, began)
        closing = seen.keys() & self._connections.to_close()
        for place, peer in enumerate(closing, 1):
            seen[peer].close()
            await self._pause_after(place)

    async def _pause_after(self, place: int) -> None:
        """Let requests be answered after each slice."""
        if place % SLICE == 0:
            await self._sleep(PAUSE_SECONDS)
