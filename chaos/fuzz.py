"""Bad input: random bytes, each answered below 500 or by a closed connection.

No client of the described API sends them: headers of any characters, requests that end too early or
have changed bytes, and bytes that are no HTTP. Tests of the web server send wrong framing and
sizes, and schemathesis sends wrong ids, options, methods and bodies. No case is a view of a badge
under check.

A case counts only if no fault was under way from its beginning to its end. Otherwise the machine
may give any answer, and the case is tried again.
"""

from __future__ import annotations

import http.client
import random
import re
import socket
import threading
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import quote

from chaos.faults.fault_state import FaultState
from simulation.raw_http import receive

THREADS = 4
PATIENCE_SECONDS = 15.0
"""An input with neither an answer nor a closed connection in this time hangs."""
RETRY_SECONDS = 0.05
STATUS = re.compile(rb"HTTP/1\.[01] (\d{3}) ")
CLOSED = "closed"
HUNG = "hung"
SHOWN = 160
MAX_RANDOM_BYTES = 3_000
NAMES = ("X-Odd", "Content-Type", "Accept", "Authorization", "Host", "Expect", "Upgrade", "Range")


@dataclass(frozen=True, slots=True)
class Case:
    """One bad input as bytes.

    `whole` says whether it is a whole request; otherwise the client shuts down its side after it.
    """

    raw: bytes
    whole: bool = False


Chance: TypeAlias = random.Random
Family: TypeAlias = Callable[[Chance, Sequence[str]], Case]


def cases(seed: object, number: int, checked: Sequence[str]) -> Iterator[Case]:
    """Yield cases of each family; the counts of the badges in `checked` must not change."""
    chance = random.Random(f"{seed}/fuzz")
    for place in range(number):
        yield FAMILIES[place % len(FAMILIES)](chance, checked)


def _request(badge_id: str, *headers: str) -> bytes:
    """Return a request in the form that a client writes, whatever its headers contain."""
    lines = (f"GET /api/v1/views?id={quote(badge_id, safe='')} HTTP/1.1", *headers, "", "")
    return "\r\n".join(lines).encode("latin-1", "replace")


def _header(chance: Chance, _: Sequence[str]) -> Case:
    letters = (chr(chance.randrange(0x11_0000)) for _ in range(chance.randrange(1, 40)))
    odd = "".join(one for one in letters if unicodedata.category(one) != "Cs" and one not in "\r\n")
    name = chance.choice((*NAMES, odd))
    return Case(_request("bad", "Host: chaos", f"{name}: {odd}"), whole=True)


def _no_http(chance: Chance, _: Sequence[str]) -> Case:
    return Case(chance.randbytes(chance.randrange(1, MAX_RANDOM_BYTES)))


def _cut(chance: Chance, checked: Sequence[str]) -> Case:
    """Return an incomplete request for a badge under check."""
    whole = _request(chance.choice(checked), "Host: chaos")
    return Case(whole[: chance.randrange(1, len(whole))])


def _flip_bytes(chance: Chance, _: Sequence[str]) -> Case:
    """Return a right request with some bytes changed, but for no badge under check."""
    raw = bytearray(_request("bad", "Host: chaos", "Accept: */*", "X: y"))
    for _place in range(chance.randrange(1, 6)):
        raw[chance.randrange(len(raw))] = chance.randrange(256)
    return Case(bytes(raw))


FAMILIES: tuple[Family, ...] = (_header, _no_http, _cut, _flip_bytes)


@dataclass(slots=True)
class Tried:
    """The number of cases by their answer, and the cases with a wrong answer."""

    answers: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    @property
    def number(self) -> int:
        return self.answers.total()

    def note(self, case: Case, answer: str) -> None:
        self.answers[answer] += 1
        is_status = answer.isdecimal() and int(answer) < http.client.INTERNAL_SERVER_ERROR
        if answer != CLOSED and not is_status:
            self.wrong.append(f"{answer} for {case.raw[:SHOWN]!r}")


def answer_of(case: Case, host: str, port: int) -> str:
    """Return the answer's status or the connection's end. Raises `ConnectionRefusedError`."""
    with socket.create_connection((host, port), PATIENCE_SECONDS) as connected:
        try:
            connected.sendall(case.raw)
            if not case.whole:
                with suppress(OSError):  # the server has hung up already
                    connected.shutdown(socket.SHUT_WR)
            received = receive(connected)
        except TimeoutError:
            return HUNG
        except ConnectionError:
            return CLOSED
    status = STATUS.match(received)
    return status[1].decode() if status else f"no status: {received[:40]!r}"


class BadInput:
    """Threads that try cases until all are tried or the time is over."""

    def __init__(
        self, host: str, port: int, cases: Iterator[Case], fault_state: FaultState, deadline: float
    ) -> None:
        self.tried = Tried()
        self._address = host, port
        self._cases, self._fault_state, self._deadline = cases, fault_state, deadline
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._run, name="bad input") for _ in range(THREADS)
        ]
        for thread in self._threads:
            thread.start()

    def wait(self) -> None:
        """Wait until all cases are tried."""
        for thread in self._threads:
            thread.join()

    def stop(self) -> None:
        """Stop before the next case."""
        self._deadline = 0.0
        self.wait()

    def _run(self) -> None:
        while time.monotonic() < self._deadline and (case := self._next()):
            answer = self._try(case)
            with self._lock:
                self.tried.note(case, answer)

    def _next(self) -> Case | None:
        with self._lock:
            return next(self._cases, None)

    def _try(self, case: Case) -> str:
        while True:
            before = self._fault_state.changes
            try:
                answer = answer_of(case, *self._address)
            except OSError as error:
                answer = type(error).__name__
            if self._fault_state.no_fault_since(before):
                return answer
            time.sleep(RETRY_SECONDS)
