"""The messages to the service manager that started the program, such as systemd.

A watchdog sends a request to the server's own socket, as a visitor does. Its answer shows that the
server accepts connections, that the event loop runs, and that commits of the file begin and end.
Source: sd_notify(3) and sd_watchdog_enabled(3). The protocol is one datagram for each message.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path

from chalicelib import telemetry
from chalicelib.settings import NOTHING
from chalicelib.units import Seconds
from vumi.server.sockets import Endpoint

SEND_SECONDS = 1.0
"""A manager that takes no messages delays requests only for this time."""
MICROSECONDS = 1_000_000
REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
RESPONSE = b"HTTP/1.1 "
"""The beginning of any response: a corrupt file is 503, and a new start would not repair it."""
GIVEN_DESCRIPTOR = 3
"""The descriptor of the first socket that the manager gives. Source: sd_listen_fds(3)."""


class Notifier:
    """The messages of this process; they go nowhere without a service manager."""

    def __init__(self, environment: Mapping[str, str] = NOTHING, process: int = 0) -> None:
        address = environment.get("NOTIFY_SOCKET", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self.watchdog_seconds = _watchdog_seconds(environment, process) if address else 0.0
        self._is_given = environment.get("LISTEN_PID") == str(process)

    def ready(self, status: str) -> None:
        """Tell that requests are answered."""
        self._send("READY=1", f"STATUS={status}")

    def alive(self) -> None:
        """Tell that a request was answered just now."""
        self._send("WATCHDOG=1")

    def stopping(self) -> None:
        """Tell that the process ends."""
        self._send("STOPPING=1", "STATUS=Finishes the current requests")

    def given_socket(self) -> socket.socket | None:
        """Return the socket that the manager listens at for this process, once.

        Source: sd_listen_fds(3).
        """
        if not self._is_given:
            return None
        self._is_given = False
        given = socket.socket(fileno=GIVEN_DESCRIPTOR)
        given.set_inheritable(False)
        return given

    def _send(self, *lines: str) -> None:
        if not self._address:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sending:
            sending.settimeout(SEND_SECONDS)
            sending.sendto("\n".join(lines).encode(), self._address)


def _watchdog_seconds(environment: Mapping[str, str], process: int) -> Seconds:
    """Return the time in which the manager expects a message of this process; 0 for none."""
    if environment.get("WATCHDOG_PID") not in {None, "", str(process)}:
        return 0.0
    text = environment.get("WATCHDOG_USEC", "")
    return int(text) / MICROSECONDS if text.isascii() and text.isdecimal() else 0.0


async def watch(
    ask: Callable[[], Awaitable[bool]],
    report: Callable[[], None],
    seconds: Seconds,
    sleep: Callable[[Seconds], Awaitable[object]] = asyncio.sleep,
    clock: Callable[[], Seconds] = time.monotonic,
) -> None:
    """Ask for a response in each half of the manager's time and report it, until cancelled."""
    telemetry.begin("watchdog", None)
    period = seconds / 2
    while True:
        began = clock()
        try:
            async with asyncio.timeout(period):
                is_alive = await ask()
        except (OSError, TimeoutError):
            is_alive = False
        if is_alive:
            report()
        else:
            telemetry.event(logging.WARNING, "health_not_answered", seconds=period)
        await sleep(max(0.0, began + period - clock()))


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
        return (await reader.readline()).startswith(RESPONSE)
    finally:
        writer.close()
