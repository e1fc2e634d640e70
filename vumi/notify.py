"""The messages to the service manager that started the program, such as systemd.

Source: sd_notify(3) and sd_watchdog_enabled(3). The protocol is one datagram for each message.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import suppress

from chalicelib.settings import NOTHING
from chalicelib.units import Seconds

SEND_SECONDS = 1.0
"""A manager that takes no messages delays requests only for this time."""
MICROSECONDS = 1_000_000


class Notifier:
    """The messages of this process; they go nowhere without a service manager."""

    def __init__(self, environment: Mapping[str, str] = NOTHING, process: int = 0) -> None:
        address = environment.get("NOTIFY_SOCKET", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self.watchdog_seconds = _watchdog_seconds(environment, process) if address else 0.0

    def ready(self, status: str) -> None:
        """Tell that requests are answered."""
        self._send("READY=1", f"STATUS={status}")

    def alive(self) -> None:
        """Tell that a request was answered just now."""
        self._send("WATCHDOG=1")

    def stopping(self) -> None:
        """Tell that the process ends."""
        self._send("STOPPING=1", "STATUS=Finishes the current requests")

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
