"""`python -m vumi` as a process, which tests, bench and chaos start, kill and start again.

Their clients are processes too, with an interpreter of their own.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, AnyStr, TypeAlias

from simulation.environment import NO_CLIENT_LIMITS, ROOT

START_SECONDS = 60.0
"""The limit for a start, which takes a second on an idle machine."""
ANSWER_SECONDS = 60.0
"""The limit for an answer."""
NO_HEADERS: Mapping[str, str] = MappingProxyType({})
LOG_BYTES = 2**20
"""Lines of the log that a server writes before anybody reads them; a full pipe would stop it."""

AT_UNIX_SOCKET = "vu-mi serves badges on the Unix socket"

Process: TypeAlias = subprocess.Popen[str]


class NotStartedError(Exception):
    """The server ended before it answered, or did not answer in time."""


def start(
    folder: Path,
    program: Sequence[str],
    settings: Mapping[str, str],
    stderr: int | None = subprocess.PIPE,
) -> Process:
    """Start a program, a module and its arguments, over a folder, without waiting for it."""
    return subprocess.Popen(  # noqa: S603  a module of this project
        [sys.executable, "-m", *program],
        cwd=ROOT,
        env=environment(folder, settings),
        stdout=subprocess.PIPE,
        stderr=stderr,
        pipesize=LOG_BYTES,
        encoding="utf-8",
        errors="replace",
    )


def environment(folder: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a program over a folder.

    All requests come from one address, so that client is not limited unless the settings say so.
    """
    own = {"HOST": "127.0.0.1", "PORT": "0", "DATA": str(folder), **NO_CLIENT_LIMITS}
    return {**os.environ, **own, **settings}


def start_client(module: str, given: object) -> subprocess.Popen[bytes]:
    """Start a module, which reads `given` as JSON from its standard input and ends by itself."""
    process = subprocess.Popen([sys.executable, "-m", module], cwd=ROOT, stdin=subprocess.PIPE)  # noqa: S603
    assert process.stdin is not None
    with process.stdin as stdin:
        stdin.write(json.dumps(given).encode())
    return process


def run_client(module: str, given: object) -> Any:
    """Run a module, which reads `given` as JSON and prints its result as JSON."""
    printed = subprocess.check_output(  # noqa: S603  a module of this project
        [sys.executable, "-m", module], input=json.dumps(given), cwd=ROOT, text=True
    )
    return json.loads(printed)


@contextmanager
def killed(process: subprocess.Popen[AnyStr]) -> Iterator[subprocess.Popen[AnyStr]]:
    """Kill the process at the end of the block."""
    with process:
        try:
            yield process
        finally:
            process.kill()


def request(
    address: tuple[str, int],
    path: str,
    method: str = "GET",
    body: bytes | None = None,
    headers: Mapping[str, str] = NO_HEADERS,
) -> tuple[int, http.client.HTTPMessage, bytes]:
    """Return the status, the headers and the body of the answer on a new connection.

    Raises `OSError` and `HTTPException`.
    """
    with closing(http.client.HTTPConnection(*address, timeout=ANSWER_SECONDS)) as connection:
        connection.request(method, path, body, dict(headers))
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()


class ServerProcess:
    """A server that answers, and its address. Raises `NotStartedError`.

    A server at a Unix socket has no address of its own.
    """

    url, host, port = "", "127.0.0.1", 0

    def __init__(self, process: Process) -> None:
        self.process = process
        self.greeting = _read_greeting(process)
        if self.greeting.startswith(AT_UNIX_SOCKET):
            return
        found = re.search(r"http://([^:/]+):(\d+)/", self.greeting)
        if not found:
            raise NotStartedError(f"python -m vumi does not answer, it printed {self.greeting!r}")
        self.url, self.host, self.port = found[0], found[1], int(found[2])


def _read_greeting(process: Process) -> str:
    """Return the first line, which a server prints when it accepts requests."""
    watchdog = threading.Timer(START_SECONDS, process.kill)
    watchdog.start()
    try:
        return process.stdout.readline() if process.stdout else ""
    finally:
        watchdog.cancel()
