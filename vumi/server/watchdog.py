"""The watchdog of the web server, which tells the service manager that requests are answered.

It sends a request to the server's own socket, as a visitor does. Its answer shows that the server
accepts connections, that the event loop runs, and that commits of the file begin and end.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

from chalicelib import telemetry
from chalicelib.units import Seconds
from vumi.server.sockets import Peer

Endpoint: TypeAlias = Peer | Path
"""The address of a server, or the path of its Unix socket."""

REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
ANSWER = b"HTTP/1.1 "
"""The beginning of any answer: a corrupt file is 503, and a new start would not repair it."""


class Watchdog:
    """A loop that asks for an answer in each half of the manager's time, and reports it."""

    def __init__(
        self,
        ask: Callable[[], Awaitable[bool]],
        report: Callable[[], None],
        seconds: Seconds,
        sleep: Callable[[Seconds], Awaitable[object]] = asyncio.sleep,
        clock: Callable[[], Seconds] = time.monotonic,
    ) -> None:
        self._ask = ask
        self._report = report
        self._period = seconds / 2
        self._sleep = sleep
        self._clock = clock

    async def run(self) -> None:
        """Ask and report until cancelled."""
        telemetry.begin("watchdog", None)
        while True:
            began = self._clock()
            await self.check()
            await self._sleep(max(0.0, began + self._period - self._clock()))

    async def check(self) -> None:
        """Report an answer that comes within the period, and log that none does."""
        try:
            async with asyncio.timeout(self._period):
                answered = await self._ask()
        except (OSError, TimeoutError):
            answered = False
        if answered:
            self._report()
        else:
            telemetry.event(logging.WARNING, "health_not_answered", seconds=self._period)


async def connect(endpoint: Endpoint) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a server. Raises `OSError`."""
    if isinstance(endpoint, Path):
        return await asyncio.open_unix_connection(endpoint)
    return await asyncio.open_connection(*endpoint)


async def is_answered(endpoint: Endpoint) -> bool:
    """Return whether a server answers a request with any status. Raises `OSError`."""
    reader, writer = await connect(endpoint)
    try:
        writer.write(REQUEST)
        return (await reader.readline()).startswith(ANSWER)
    finally:
        writer.close()
