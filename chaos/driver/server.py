"""The machine under test: a real process on a fixed port, killed and started again.

`python -m chaos.driver.server CLOCK CRASH` is the process: `python -m vumi` with injected faults.
CLOCK is the file with the offset of the clock, CRASH the file that says when it kills itself.
"""

from __future__ import annotations

import http.client
import os
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from chaos.faults import OffsetClock
from simulation.server_process import NotStartedError, ServerProcess, request, start
from vumi.cli.program import main

HOST = "127.0.0.1"
PORTS = range(20_000, 30_000)
"""Ports below those that the system gives to clients; otherwise a client could connect to itself
while the server is down."""
PATIENCE_SECONDS = 60.0
CRASH_SECONDS = 3.0
"""The time that a thread has to begin the transaction at which the process ends itself."""
SETTINGS = {
    "VIEW_WINDOW_SECONDS": "1",
    "GRACE_SECONDS": "1",
    "RETENTION_SECONDS": "3",
    "MIN_FREE_BYTES": "0",
    "HOT_VIEWS": "100",
}
"""Windows of one second, so views are folded after a second or two, and removed soon after.

So a badge is hot with fewer views.
"""


THREADS = ("MainThread", "expiry", "fold_views")
"""The threads that commit: for visitors, for expired items, and for folds."""
MAX_TRANSACTIONS = 2
"""The most transactions that begin before the process ends."""


class DiedError(Exception):
    """The server ended by itself, or does not start."""


def free_port(seed: object) -> int:
    """Return a port on which no process listens."""
    ports = random.Random(str(seed)).sample(PORTS, 100)
    for port in ports:
        with socket.socket() as candidate:
            candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                candidate.bind((HOST, port))
            except OSError:
                continue
            return port
    raise DiedError(f"no free port among {ports}")


class Server:
    """The process of this module, with its own log for each start."""

    def __init__(self, data: Path, clock: Path, logs: Path, port: int) -> None:
        self.data, self.port = data, port
        self.starts = 0
        self._clock, self._logs = clock, logs
        self._crash_file = clock.with_name("crash")
        self._process: subprocess.Popen[str] | None = None
        self._logging = threading.Thread()

    @property
    def pid(self) -> int:
        """The id of the running process. Raises `DiedError` if none runs."""
        return self.check().pid

    def start(self) -> None:
        """Start the server, and wait until it answers. Raises `DiedError`."""
        try:
            ServerProcess(self._begin())
        except NotStartedError as error:
            raise DiedError(f"{error}: {self._last_log()}") from error

    def start_and_kill(self, seconds: float) -> None:
        """Kill the server during its start or just after it."""
        self._begin()
        time.sleep(seconds)
        self.kill()

    def _begin(self) -> subprocess.Popen[str]:
        self.starts += 1
        program = ("chaos.driver.server", str(self._clock), str(self._crash_file))
        settings = {"PORT": str(self.port), **SETTINGS}
        self._process = start(self.data, program, settings)
        log = (self._logs / f"server-{self.starts:03}.log").open("w", encoding="utf-8")
        self._logging = threading.Thread(target=_copy, args=[self._process.stderr, log])
        self._logging.start()
        return self._process

    def check(self) -> subprocess.Popen[str]:
        """Return the process, if it runs. Raises `DiedError`."""
        if self._process is None or self._process.poll() is not None:
            status = self._process and self._process.returncode
            raise DiedError(f"the server ended by itself, exit status {status}: {self._last_log()}")
        return self._process

    def kill(self) -> None:
        """Kill the server with SIGKILL, so none of its code runs after this."""
        self._kill(self.check())

    def kill_between(self, thread: str, begins: int) -> None:
        """Let the server end itself when a thread begins a transaction, or kill it if none does."""
        self._crash_file.write_text(f"{begins} {thread}")
        process = self.check()
        process.send_signal(signal.SIGUSR1)
        with suppress(subprocess.TimeoutExpired):
            process.wait(CRASH_SECONDS)
        self._kill(process)

    def _kill(self, process: subprocess.Popen[str]) -> None:
        process.kill()
        process.wait(PATIENCE_SECONDS)
        self._logging.join()

    def pause(self, seconds: float) -> None:
        """Pause the server, as when the machine is out of memory or asleep."""
        self.check().send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.check().send_signal(signal.SIGCONT)

    def close(self) -> None:
        """End the server if it runs."""
        if self._process is not None and self._process.poll() is None:
            self._kill(self._process)

    def request(
        self, target: str, method: str = "GET", body: str | None = None, secret: str = ""
    ) -> tuple[int, bytes]:
        """Return the status and the body of an answer. Raises `OSError`."""
        content, bearer = body and body.encode(), {"Authorization": f"Bearer {secret}"}
        try:
            status, _, answer = request((HOST, self.port), target, method, content or None, bearer)
        except http.client.HTTPException as error:
            raise ConnectionError(str(error)) from error
        return status, answer

    def _last_log(self) -> str:
        log = self._logs / f"server-{self.starts:03}.log"
        return log.read_text(errors="replace")[-1_000:] if log.exists() else ""


def _copy(stderr: IO[str], log: IO[str]) -> None:
    """Copy the server's log until it ends, by a pipe, because its own files may have a quota."""
    with stderr, log:
        shutil.copyfileobj(stderr, log)


class CrashInjection:
    """Crashes between two commits of one step, which a SIGKILL from outside rarely hits.

    A file names a thread. After SIGUSR1 the process ends itself when that thread begins a
    transaction. The commits before it stay, and the commits after it never happen. Call `install`
    before the first connection opens.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connections: list[sqlite3.Connection] = []
        self._thread, self._left = "", 0

    def install(self) -> None:
        sys.addaudithook(self._note)
        signal.signal(signal.SIGUSR1, lambda *_: self._begin())

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "sqlite3.connect/handle":
            self._connections.append(arguments[0])

    def _begin(self) -> None:
        left, self._thread = self._path.read_text().split(maxsplit=1)
        self._left = int(left)
        for connection in self._connections:
            with suppress(sqlite3.ProgrammingError):  # the connection is closed
                connection.set_trace_callback(self._look)

    def _look(self, statement: str) -> None:
        if statement.startswith("BEGIN") and threading.current_thread().name == self._thread:
            self._left -= 1
            if not self._left:
                os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    CrashInjection(Path(sys.argv[2])).install()
    sys.exit(main(["serve"], OffsetClock(Path(sys.argv[1]))))
