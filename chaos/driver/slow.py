"""Slow clients: each sends a request byte by byte, and may never finish it.

They are far fewer than the connections that the server keeps, so no other client may wait for them.
"""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from chaos.checker.history import Kind, Operation, Outcome, Recorder
from chaos.driver.visitors import SILENCE_SECONDS, Answer, ClientBehaviour, understood
from simulation.raw_http import receive

CLIENTS = 60
TICK_SECONDS = 0.1
MAX_TICKS = 60
"""The most ticks of a client, fewer than the server takes to close its connection."""


@dataclass(slots=True)
class Slow:
    """A client that finishes or gives up after `patience` ticks."""

    connected: socket.socket
    badge_id: str
    request: bytes
    patience: int
    finishes: bool
    invoked: float = field(default_factory=time.monotonic)
    sent: int = 0
    ticks: int = 0

    def tick(self) -> bool:
        """Send one byte, but never the last; return whether to go on. Raises `OSError`."""
        self.ticks += 1
        if self.sent < len(self.request) - 1:
            self.sent += self.connected.send(self.request[self.sent : self.sent + 1])
        return self.ticks < self.patience

    def end(self) -> Answer:
        """Finish the request or give up. Raises `OSError`."""
        if not self.finishes:
            return Answer(Outcome.REFUSED, note="a slow client gave up")
        rest, self.sent = self.request[self.sent :], len(self.request)
        self.connected.sendall(rest)
        return understood(receive(self.connected))


class SlowClients:
    """A thread that runs a number of slow clients, and replaces each that ends."""

    def __init__(
        self, host: str, port: int, seed: str, badge_ids: Sequence[str], recorder: Recorder
    ) -> None:
        self.held = 0
        self._address = host, port
        self._random = random.Random(f"{seed}/slow")
        self._badge_ids = badge_ids
        self._recorder = recorder
        self._clients: list[Slow] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="slow clients")
        self._thread.start()

    def stop(self) -> None:
        """Wait until the clients under way end."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while self._clients or not self._stopping.is_set():
            if not self._stopping.wait(TICK_SECONDS):
                self._open()
            else:
                time.sleep(TICK_SECONDS)
            for client in list(self._clients):
                self._tick(client)

    def _open(self) -> None:
        while len(self._clients) < CLIENTS:
            try:
                connected = socket.create_connection(self._address, SILENCE_SECONDS)
            except OSError:
                return
            badge_id = self._random.choice(self._badge_ids)
            request = ClientBehaviour.JSON.request(badge_id)
            patience, finishes = self._random.randrange(5, MAX_TICKS), self._random.random() < 0.5  # noqa: PLR2004
            self._clients.append(Slow(connected, badge_id, request, patience, finishes))
            self.held += 1

    def _tick(self, client: Slow) -> None:
        try:
            if client.tick():
                return
            answer = client.end()
        except OSError as error:
            whole = client.sent == len(client.request)
            outcome = Outcome.UNKNOWN if whole else Outcome.REFUSED
            answer = Answer(outcome, note=f"a slow client's {type(error).__name__}")
        with suppress(OSError):
            client.connected.close()
        self._clients.remove(client)
        badge_id, invoked = client.badge_id, client.invoked
        self._recorder.add(
            Operation(badge_id, Kind.HIT, invoked, time.monotonic(), *answer[:2], None, answer.note)
        )
