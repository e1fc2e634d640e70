"""`python -m chaos.driver.visitors`: the load, over many keep-alive connections.

Most visitors get a JSON or SVG badge and are counted. Some peek, and some hang up in the middle of
their request or of its answer. Slow ones send their requests byte by byte, and may never finish;
they are fewer than the connections that the server keeps, so no other visitor may wait for them.
The history records each request with its outcome.
"""

from __future__ import annotations

import json
import random
import re
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import Enum, auto
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from chaos.checker.history import Kind, Operation, Outcome, Recorder
from simulation.raw_http import receive
from simulation.server_process import start_client

SILENCE_SECONDS = 30.0
"""A request without an answer for this time hangs."""
HUNG = "no answer"
SLOW, GAVE_UP = "slow", "slow, gave up"
RETRY_SECONDS = 0.02
HOT_SHARE = 0.3
SAID = re.compile(rb'"message":"([^"]*)"|<title>[^:<]*: ([^<]*)</title>')
TICK_SECONDS = 0.1
MAX_TICKS = 60
"""The most bytes of a slow visitor, fewer than the server takes to close its connection."""
RESET_ON_CLOSE = struct.pack("ii", 1, 0)
"""The value of SO_LINGER with which `close` resets the connection."""


class ClientBehaviour(Enum):
    """The behaviour of a visitor."""

    JSON = auto()
    OLD_ROUTE = auto()
    SVG = auto()
    PEEK = auto()
    HEAD = auto()
    CUT_REQUEST = auto()
    CUT_ANSWER = auto()
    SLOW = auto()

    @property
    def kind(self) -> Kind:
        return Kind.READ if self in (ClientBehaviour.PEEK, ClientBehaviour.HEAD) else Kind.HIT

    def request(self, badge_id: str) -> bytes:
        route = {
            ClientBehaviour.SVG: "/api/v1/views.svg",
            ClientBehaviour.OLD_ROUTE: "/v1/api/views",
        }
        method = "HEAD" if self is ClientBehaviour.HEAD else "GET"
        peek = "&peek=1" if self is ClientBehaviour.PEEK else ""
        target = f"{route.get(self, '/api/v1/views')}?id={quote(badge_id, safe='')}{peek}"
        return f"{method} {target} HTTP/1.1\r\nHost: chaos\r\n\r\n".encode()


CLIENT_BEHAVIOURS = {
    ClientBehaviour.JSON: 65,
    ClientBehaviour.OLD_ROUTE: 4,
    ClientBehaviour.SVG: 8,
    ClientBehaviour.PEEK: 13,
    ClientBehaviour.HEAD: 2,
    ClientBehaviour.CUT_REQUEST: 4,
    ClientBehaviour.CUT_ANSWER: 4,
}
"""The percentage of visits with each behaviour, without the slow ones."""


class Answer(NamedTuple):
    """The outcome of a request, and the count that it showed."""

    outcome: Outcome
    shown: int | None = None
    note: str = ""


def understood(received: bytes) -> Answer:
    """Read an answer, JSON or SVG. The text of an error says whether the view counts."""
    if not received.startswith(b"HTTP/1.1 200 "):
        return Answer(Outcome.UNKNOWN, note=received[:40].decode("latin-1"))
    found = SAID.search(received)
    said = (found[1] or found[2] or b"").decode() if found else ""
    if said.isdecimal():
        return Answer(Outcome.ACKNOWLEDGED, int(said))
    if "not counted" in said:
        return Answer(Outcome.REFUSED, note=said)
    taken = "view taken" in said or not found
    return Answer(Outcome.ACKNOWLEDGED if taken else Outcome.UNKNOWN, note=said)


@dataclass(frozen=True, slots=True)
class Visits:
    """A load: `connections` visitors of these badges for a time; the first badge is hot.

    `slow` more visitors are slow.
    """

    host: str
    port: int
    seed: str
    seconds: float
    connections: int
    slow: int
    badge_ids: Sequence[str]
    path: str

    def start(self) -> subprocess.Popen[bytes]:
        """Start the load in its own process, which ends by itself."""
        return start_client("chaos.driver.visitors", asdict(self))


class Visitor:
    """A connection with at most one request under way."""

    def __init__(self, visits: Visits, number: int, recorder: Recorder) -> None:
        self._visits, self._is_slow = visits, number >= visits.connections
        self._random = random.Random(f"{visits.seed}/visitor/{number}")
        self._recorder = recorder
        self._socket: socket.socket | None = None

    def visit_until(self, deadline: float) -> None:
        while time.monotonic() < deadline:
            connected = self._socket or self._connect()
            if connected is None:
                time.sleep(RETRY_SECONDS)
            else:
                self._visit(connected)
        self._hang_up()

    def _visit(self, connected: socket.socket) -> None:
        behaviour = ClientBehaviour.SLOW if self._is_slow else self._choose_behaviour()
        hot = self._random.random() < HOT_SHARE
        badge_id = self._visits.badge_ids[0] if hot else self._random.choice(self._visits.badge_ids)
        invoked = time.monotonic()
        try:
            answer = self._ask(connected, behaviour, behaviour.request(badge_id))
        except TimeoutError:
            answer = Answer(Outcome.UNKNOWN, note=HUNG)
        except OSError as error:
            answer = Answer(Outcome.UNKNOWN, note=type(error).__name__)
        completed = time.monotonic()
        if answer.outcome is not Outcome.ACKNOWLEDGED:
            self._hang_up()
        self._recorder.add(
            Operation(badge_id, behaviour.kind, invoked, completed, *answer[:2], None, answer.note)
        )

    def _choose_behaviour(self) -> ClientBehaviour:
        weights = CLIENT_BEHAVIOURS.values()
        return self._random.choices(list(CLIENT_BEHAVIOURS), list(weights))[0]

    def _ask(self, connected: socket.socket, behaviour: ClientBehaviour, request: bytes) -> Answer:
        if behaviour is ClientBehaviour.CUT_REQUEST:
            with suppress(OSError):
                connected.sendall(request[: self._random.randrange(1, len(request))])
            return Answer(Outcome.REFUSED, note="cut mid-request")
        if behaviour is ClientBehaviour.SLOW:
            return self._ask_slowly(connected, request)
        connected.sendall(request)
        if behaviour is ClientBehaviour.CUT_ANSWER:
            if self._random.random() < 0.5:  # noqa: PLR2004  otherwise it hangs up immediately
                connected.recv(self._random.randrange(1, 100))
            return Answer(Outcome.UNKNOWN, note="cut mid-answer")
        received = receive(connected, without_body=behaviour is ClientBehaviour.HEAD)
        return understood(received)

    def _ask_slowly(self, connected: socket.socket, request: bytes) -> Answer:
        """Send some bytes one by one, but never the last; then finish, or give up."""
        number = self._random.randrange(5, min(MAX_TICKS, len(request)))
        try:
            for place in range(number):
                connected.sendall(request[place : place + 1])
                time.sleep(TICK_SECONDS)
        except OSError:
            number = 0
        if number == 0 or self._random.random() < 0.5:  # noqa: PLR2004
            return Answer(Outcome.REFUSED, note=GAVE_UP)
        connected.sendall(request[number:])
        answer = understood(receive(connected))
        return answer._replace(note=answer.note or SLOW)

    def _connect(self) -> socket.socket | None:
        try:
            self._socket = socket.create_connection(
                (self._visits.host, self._visits.port), SILENCE_SECONDS
            )
        except OSError:
            return None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._socket

    def _hang_up(self) -> None:
        """Hang up, half of the time with a reset, like a client that is gone."""
        if self._socket is None:
            return
        if self._random.random() < 0.5:  # noqa: PLR2004
            with suppress(OSError):
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        self._socket.close()
        self._socket = None


def run(visits: Visits) -> None:
    """Run all visitors, and record the answers."""
    recorder = Recorder(Path(visits.path))
    deadline = time.monotonic() + visits.seconds
    visitors = [
        Visitor(visits, number, recorder) for number in range(visits.connections + visits.slow)
    ]
    threads = [threading.Thread(target=one.visit_until, args=[deadline]) for one in visitors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorder.close()


if __name__ == "__main__":
    run(Visits(**json.load(sys.stdin)))
