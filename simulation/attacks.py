"""Attacks on the web server of one machine, for programs that run them beside visitors.

`python -m simulation.attacks` reads an `Attack` as JSON from its standard input, and ends by
itself.
"""

from __future__ import annotations

import json
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count, cycle, repeat
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote

from chalicelib.counting import keys
from chalicelib.http import tokens
from chalicelib.storage.items import Value
from chalicelib.units import to_milliseconds
from simulation.raw_http import complete, receive
from simulation.server_process import start_client
from vumi.storage.database import FILE, Database
from vumi.storage.private_files import FOLDER_MODE
from vumi.storage.table import SqliteTable

SOURCES = tuple(f"127.0.0.{number}" for number in range(2, 7))
"""The addresses of attackers, which are not those of visitors."""
PROXY = "127.0.0.7"
"""The address of a trusted proxy, for attackers with many addresses."""
CLIENTS = tuple(f"10.{number // 250}.{number % 250}.1" for number in range(1_000))
"""Addresses of networks that share no limit."""
CROWD = 1_005
BUSY = 190
"""Connections of one address with a request under way. An address may have 200."""
STALLED = 2_500
SILENCE_SECONDS = 2.0
STEP_SECONDS = 0.5
COMBINING = "a" + "\u0316\u0301" * 40_000
BODY_BYTES = 262_144


def request(target: str, header: str = "A: a", body: bytes = b"", method: str = "GET") -> bytes:
    """Return a request with one header more."""
    head = f"{method} {target} HTTP/1.1\r\nHost: h\r\n{header}\r\nContent-Length: {len(body)}"
    return f"{head}\r\n\r\n".encode() + body


@dataclass
class Attacker:
    """A client with many connections, from one address or several.

    `unsent` has the rest of the first message of each connection, `received` the beginning of the
    response to a request under way.
    """

    address: tuple[str, int]
    deadline: float
    sources: Sequence[str] = SOURCES[:1]
    unsent: dict[socket.socket, bytes] = field(default_factory=dict)
    received: dict[socket.socket, bytes] = field(default_factory=dict)

    def open(self, number: int, first: bytes = b"") -> None:
        """Replace the connections that were closed, and send something on each new one."""
        self.unsent = {one: rest for one, rest in self.unsent.items() if _is_open(one)}
        while len(self.unsent) < number and time.monotonic() < self.deadline:
            try:
                connected = self._connect(len(self.unsent))
            except OSError:
                return
            connected.settimeout(0.0)
            self.unsent[connected] = first[_send(connected, first) :]

    def send(self, data: bytes) -> None:
        """Send something on each connection, as far as the server takes it."""
        for connected, rest in self.unsent.items():
            self.unsent[connected] = rest[_send(connected, rest or data) :]

    def exchange(self, requests: Iterator[bytes]) -> None:
        """Keep a request under way on each connection, for the time of a step."""
        end = time.monotonic() + STEP_SECONDS
        with selectors.DefaultSelector() as selector:
            for connected in self.unsent:
                selector.register(connected, selectors.EVENT_READ, connected)
                if connected not in self.received:
                    self._ask_next(connected, requests)
            while (left := end - time.monotonic()) > 0:
                for key, _ in selector.select(left):
                    if not self._read(key.data, requests):
                        selector.unregister(key.data)

    def _read(self, connected: socket.socket, requests: Iterator[bytes]) -> bool:
        """Read a part of a response; return whether the connection is still open."""
        try:
            part = connected.recv(65_536)
        except OSError:
            part = b""
        self.received[connected] += part
        if not part:
            del self.received[connected]
        elif complete(self.received[connected]):
            self._ask_next(connected, requests)
        return bool(part)

    def _ask_next(self, connected: socket.socket, requests: Iterator[bytes]) -> None:
        self.received[connected] = b""
        _send(connected, next(requests))

    def ask(self, raw: bytes) -> None:
        """Send a request and wait for its answer or the end of the connection."""
        with suppress(OSError), self._connect() as connected:
            connected.sendall(raw)
            receive(connected)

    def close(self) -> None:
        """Hang up on all connections."""
        for connected in self.unsent:
            connected.close()
        self.unsent.clear()

    def _connect(self, place: int = 0) -> socket.socket:
        source = self.sources[place % len(self.sources)]
        return socket.create_connection(self.address, SILENCE_SECONDS, (source, 0))


Play: TypeAlias = Callable[[Attacker], Iterator[float]]
"""An attack, which yields the seconds of each pause."""


def _send(connected: socket.socket, data: bytes) -> int:
    """Return the number of bytes that were sent."""
    with suppress(OSError):
        return connected.send(data)
    return 0


def _is_open(connected: socket.socket) -> bool:
    try:
        if connected.recv(1, socket.MSG_PEEK):
            return True
    except BlockingIOError:
        return True
    except OSError:
        pass
    connected.close()
    return False


def _repeat(*raw: bytes) -> Play:
    """Return an attack by one connection after another, as fast as the server answers."""

    def attack(attacker: Attacker) -> Iterator[float]:
        while True:
            for one in raw:
                attacker.ask(one)
                yield 0.0

    return attack


def _crowd(first: bytes, then: bytes = b"", number: int = CROWD) -> Play:
    """Return an attack by many connections that send something, and something in each step."""

    def attack(attacker: Attacker) -> Iterator[float]:
        while True:
            attacker.open(number, first)
            attacker.send(then)
            yield STEP_SECONDS

    return attack


def _busy(requests: Callable[[], Iterator[bytes]]) -> Play:
    """Return an attack by many connections that each have a request under way at all times."""

    def attack(attacker: Attacker) -> Iterator[float]:
        under_way = requests()
        while True:
            attacker.open(BUSY * len(attacker.sources))
            attacker.exchange(under_way)
            yield 0.0

    return attack


def _again(*targets: str) -> Play:
    """Return an attack by many connections with the same requests again and again."""
    return _busy(lambda: cycle([request(target) for target in targets]))


def _new_ids(encode: Callable[[int], str] = "n{}".format) -> Iterator[str]:
    """Yield targets of views of ids that no attack has viewed before, of 20 bytes by default."""
    return (f"{VIEW}{encode(number)}" for number in count(time.time_ns()))


def _forwarded(targets: Iterable[str]) -> Iterator[bytes]:
    """Yield requests that a proxy forwards, each from the next of many addresses."""
    for target, client in zip(targets, cycle(CLIENTS), strict=False):
        yield request(target, f"X-Forwarded-For: {client}")


def _emoji(number: int) -> str:
    """Encode a number as an id of 100 emoji, which has the most bytes."""
    digits = "".join(chr(0x1F600 + int(digit)) for digit in str(number))
    return quote(digits.rjust(100, "\N{PILE OF POO}"))


def _squat() -> Iterator[bytes]:
    """Yield claims of throwaways, 18 renames of each, and a proof of the last name."""
    for number in count():
        throwaway = {"id": f"throwaway/{number}", "digest": tokens.digest(SECRET)}
        yield _owner("POST", throwaway)
        for place in range(18):
            yield _owner("PATCH", {"rename": f"victim/{number}-{place}"}, throwaway["id"])
        yield _owner("POST", {"id": f"victim/{number}-17", "proof": "k" * 43})


def _proof(number: int) -> bytes:
    """Return a proof, which asks a host."""
    return _owner("POST", {"id": f"https://host{number}.example/", "proof": "k" * 43})


def _cannon() -> Iterator[bytes]:
    """Yield a claim and five milestones, and then resets that reach them all."""
    url = "http://127.0.0.9:9/"
    milestones = [{"count": number, "url": url} for number in range(1, 6)]
    yield _owner("POST", {"id": "cannon", "digest": tokens.digest(SECRET)})
    yield _owner("PATCH", {"milestones": milestones}, "cannon")
    while True:
        yield _owner("PATCH", {"reset": True, "base": 10**15}, "cannon")


def _owner(method: str, wanted: object, badge_id: str = "") -> bytes:
    target = f"/api/v1/badges{'?id=' if badge_id else ''}{quote(badge_id, safe='')}"
    header = f"Authorization: Bearer {SECRET}"
    return request(target, header, json.dumps(wanted).encode(), method)


def _reconnect(attacker: Attacker) -> Iterator[float]:
    while True:
        attacker.open(CROWD // 10)
        attacker.close()
        yield STEP_SECONDS / 10


VIEW = "/api/v1/views?id="
BURST = f"{VIEW}burst"
HOT = "attacked"
"""A badge with many live views, for the attacks that count nothing."""
DEAR = "dear"
"""A badge with views in each hour of 31 days, by `prepare`."""
DAYS = 31
SECRET = "s" * 43
DEAR_READS = (
    f"/api/v1/views/history?id={DEAR}&days=31&by=hour",
    f"/api/v1/views/history.svg?id={DEAR}&days=31&by=hour",
    f"/api/v1/views.svg?id={DEAR}&peek=1&spark=90&show=year",
    f"/s?id={DEAR}&days=365",
    f"/s.png?id={DEAR}",
)
"""The dearest requests of strangers, which count nothing."""
BUSY_READS: dict[str, Play] = {
    f"{BUSY} connections: histories by hour": _again(DEAR_READS[0]),
    f"{BUSY} connections: sparklines, pages, pictures": _again(*DEAR_READS),
}
OLD_ATTACKS: dict[str, Play] = {
    "request lines of 8 KB and 261 KB": _repeat(
        request("/" + "a" * 8_000), request("/" + "a" * 261_000)
    ),
    "headers with long runs of spaces": _repeat(
        request("/", f"A: a{' ' * 16_000}b"), request("/", f"A: a{' ' * 261_000}b")
    ),
    "ids of 80,000 combining characters": _repeat(
        request("/api/v1/badges", body=json.dumps({"id": COMBINING}).encode(), method="POST"),
        request("/api/v1/badges", body=f'{{"id":"{COMBINING}"}}'.encode(), method="POST"),
        request(f"/api/v1/views?peek=1&id={quote(COMBINING[:2_500])}"),
        *(
            request(f"/api/v1/badges/{quote(COMBINING[:1_000])}", method=m)
            for m in ("PATCH", "DELETE")
        ),
    ),
    "queries of thousands of parameters": _repeat(
        request("/api/v1/views?" + "a&" * 8_000), request("/api/v1/views?" + "a&" * 130_000)
    ),
    "claims of 256 KB of JSON": _repeat(
        request("/api/v1/badges", body=b'{"id":[' + b"[]," * 87_000 + b"0]}", method="POST")
    ),
    "histories of a badge with many live views": _repeat(
        request(f"/api/v1/views/history?id={HOT}&days=400"),
        request(f"/api/v1/views/history.svg?id={HOT}&days=400"),
    ),
    "malformed framing": _repeat(
        request("//x/api/v1/events", "Connection: close"),
        request("http://["),
        request("/", f"Content-Length: {'0' * 5_000}"),
        request("/", "Transfer-Encoding: chunked", b"-5\r\na\r\n0\r\n\r\n", "POST"),
    ),
    f"{CROWD:,} connections that pipeline and never read": _crowd(
        b"", request("/openapi.json") * 20
    ),
    f"{CROWD:,} heads, byte by byte": _crowd(b"GET / HTTP/1.1\r\nA: ", b"a"),
    f"{CROWD:,} half bodies": _crowd(
        request("/api/v1/badges", body=bytes(BODY_BYTES), method="POST")[: BODY_BYTES // 2]
    ),
    f"{CROWD:,} idle connections": _crowd(request("/healthz")),
    "connections opened and closed": _reconnect,
}
BUSY_WRITES: dict[str, Play] = {
    f"{BUSY} connections: views": _again(*(f"{VIEW}{number}" for number in range(200))),
    f"{BUSY} connections: views of ids of emoji": _again(
        *(f"{VIEW}{_emoji(number)}" for number in range(200))
    ),
    f"{BUSY} connections: new ids of emoji": _busy(lambda: map(request, _new_ids(_emoji))),
    f"{BUSY} connections: claims, renames": _busy(_squat),
    f"{BUSY} connections: resets with milestones": _busy(_cannon),
    f"{BUSY} connections: proofs": _busy(lambda: map(_proof, count())),
}
PROXIED: dict[str, Play] = {
    f"{len(CLIENTS):,} addresses: new ids": _busy(lambda: _forwarded(_new_ids())),
    f"{len(CLIENTS):,} addresses: a burst on one id": _busy(lambda: _forwarded(repeat(BURST))),
}
"""Attacks of many addresses through `PROXY`."""
FLOODS: dict[str, Play] = PROXIED | {
    f"{BUSY} connections: new ids": _busy(lambda: map(request, _new_ids())),
    f"{BUSY} connections: a burst on one id": _again(BURST),
}
STALLING: dict[str, Play] = {
    f"{STALLED:,} bodies of 255 KB that stall": _crowd(
        request("/api/v1/badges", body=bytes(BODY_BYTES - 1_024), method="POST")[:-1],
        number=STALLED,
    )
}
READS = OLD_ATTACKS | BUSY_READS
"""The attacks that count nothing and change nothing."""
BUSY_ATTACKS = BUSY_READS | BUSY_WRITES
ATTACKS = BUSY_ATTACKS | FLOODS | STALLING | OLD_ATTACKS


def prepare(folder: Path) -> None:
    """Put `DEAR` into a new file of a folder, which is made if it is missing."""
    folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
    now, hours = datetime.now(UTC), {f"h{hour:02}": 1_000 for hour in range(24)}
    last, *days = [f"{(now - timedelta(days=ago)).date()}" for ago in range(1, DAYS + 1)]
    today: Value = {"day": last, **hours}
    watermark = to_milliseconds(now.timestamp())
    summary = keys.summary(DEAR).item(
        count=24_000 * DAYS, watermark=watermark, today=today, version=1, created=1
    )
    with closing(Database(folder / FILE)) as database:
        items = [keys.day(DEAR, day).item(views=24_000, **hours) for day in days]
        SqliteTable(database).put_all([summary, *items])


@dataclass(frozen=True, slots=True)
class Attack:
    """An attack on a server, named as in `ATTACKS`, for a time, from a number of addresses."""

    host: str
    port: int
    name: str
    seconds: float
    addresses: int = 1

    @property
    def sources(self) -> Sequence[str]:
        """The addresses of its connections."""
        return (PROXY,) if self.name in PROXIED else SOURCES[: self.addresses]

    def start(self) -> subprocess.Popen[bytes]:
        """Start the attack in its own process, which ends by itself."""
        return start_client("simulation.attacks", asdict(self))

    def run(self) -> None:
        """Attack until the time is over."""
        deadline = time.monotonic() + self.seconds
        attacker = Attacker((self.host, self.port), deadline, self.sources)
        for pause in ATTACKS[self.name](attacker):
            time.sleep(max(0.0, min(pause, attacker.deadline - time.monotonic())))
            if time.monotonic() >= attacker.deadline:
                break
        attacker.close()


if __name__ == "__main__":
    Attack(**json.load(sys.stdin)).run()
