"""Malformed input: each case must get an answer below 500 or a closed connection.

A case counts only if no fault was under way from its beginning to its end. Otherwise the machine
may give any answer, and the case is tried again.
"""

from __future__ import annotations

import http.client
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from chaos.faults.fault_state import FaultState
from chaos.fuzz.fuzz_cases import Case
from simulation.raw_http import END_OF_HEAD, receive

THREADS = 4
PATIENCE_SECONDS = 15.0
"""An input with neither an answer nor a closed connection in this time hangs."""
RETRY_SECONDS = 0.05
STATUS = re.compile(rb"HTTP/1\.[01] (\d{3}) ")
CLOSED = "closed"
HUNG = "hung"
SHOWN = 160


@dataclass(slots=True)
class Tried:
    """The number of cases by their answer, and the cases with a wrong answer."""

    answers: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    @property
    def number(self) -> int:
        return self.answers.total()


def answer_of(case: Case, host: str, port: int) -> str:
    """Return the answer's status or the connection's end. Raises `ConnectionRefusedError`."""
    with socket.create_connection((host, port), PATIENCE_SECONDS) as connected:
        try:
            received = _ask(connected, case)
        except TimeoutError:
            return HUNG
        except ConnectionError:
            return CLOSED
    status = STATUS.match(received)
    return status[1].decode() if status else f"no status: {received[:40]!r}"


def _ask(connected: socket.socket, case: Case) -> bytes:
    connected.sendall(case.raw)
    if not case.whole:
        with suppress(OSError):  # the server has hung up already
            connected.shutdown(socket.SHUT_WR)
    received = receive(connected)
    while received.startswith(b"HTTP/1.1 100 "):
        rest = received.partition(END_OF_HEAD)[2]
        received = receive(connected, rest)
    return received


def is_right(case: Case, answer: str) -> bool:
    """Return whether a bad input may get this answer."""
    if answer == CLOSED:
        return True
    if not answer.isdecimal():
        return False
    return int(answer) < http.client.INTERNAL_SERVER_ERROR or int(answer) in case.also


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
            self._note(case, self._try(case))

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

    def _note(self, case: Case, answer: str) -> None:
        with self._lock:
            self.tried.answers[answer] += 1
            if not is_right(case, answer):
                self.tried.wrong.append(f"{case.family}: {answer} for {case.raw[:SHOWN]!r}")
