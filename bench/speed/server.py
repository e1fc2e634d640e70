"""`python -m vumi` as a process, on its own port and in a given folder."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

from bench.speed.load import Load, Request, run_apart
from simulation.environment import NO_CLIENT_LIMITS, ROOT
from vumi.storage.database import FILE

CONNECTIONS = 32
"""Keep-alive connections of a load."""
STOP_SECONDS = 15.0
SETTLE_SECONDS = 60.0
"""The most that putting, expiry and folds of a round may take; views expire in two seconds."""
POLL_SECONDS = 0.05
UNDER_WAY = (
    "SELECT (SELECT count(*) FROM messages), (SELECT count(*) FROM items WHERE ttl IS NOT NULL),"
    " (SELECT count(*) FROM changes)"
)
"""Messages to put, markers and views to remove, and removals to fold, in one statement."""


@dataclass(frozen=True, slots=True)
class Server:
    """A running server."""

    host: str
    port: int
    folder: Path
    process_id: int

    def load(self, requests: Sequence[Request]) -> Load:
        """Make every request once, from a separate process."""
        return run_apart(self.host, self.port, requests, CONNECTIONS)

    def shown(self, ids: Sequence[str]) -> dict[str, int]:
        """Return the counts that badges show, by their encoded ids; this counts no view."""
        connection = HTTPConnection(self.host, self.port)
        counts = {}
        for badge_id in ids:
            connection.request("GET", f"/api/v1/views?id={badge_id}&peek=1")
            counts[badge_id] = int(json.load(connection.getresponse())["message"])
        connection.close()
        return counts

    def settle(self) -> float:
        """Wait until every view is folded; return the wait in seconds.

        Raises `TimeoutError`.
        """
        started = time.monotonic()
        while any(left := self._under_way()):
            if time.monotonic() - started > SETTLE_SECONDS:
                raise TimeoutError(f"messages, views and removals still under way: {left}")
            time.sleep(POLL_SECONDS)
        return time.monotonic() - started

    def _under_way(self) -> tuple[int, int, int]:
        with closing(sqlite3.connect(f"file:{self.folder / FILE}?mode=ro", uri=True)) as file:
            messages, views, removals = file.execute(UNDER_WAY).fetchone()
        return messages, views, removals


@contextmanager
def running(folder: Path, program: Sequence[str] = ("vumi",), **settings: str) -> Iterator[Server]:
    """Run a server with these settings; `program` is its module and arguments."""
    own = {"HOST": "127.0.0.1", "PORT": "0", "DATA": str(folder), **NO_CLIENT_LIMITS}
    with subprocess.Popen(  # noqa: S603  a module of this project
        [sys.executable, "-m", *program],
        cwd=ROOT,
        env=os.environ | own | settings,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            host, port = _address(process)
            yield Server(host, port, folder, process.pid)
        finally:
            _stop(process)


def _address(process: subprocess.Popen[str]) -> tuple[str, int]:
    """Return the server's address, from the first line that it prints."""
    line = process.stdout.readline() if process.stdout else ""
    found = re.search(r"http://([^:/]+):(\d+)/", line)
    if not found:
        raise RuntimeError(f"python -m vumi did not start, it printed {line!r}")
    return found[1], int(found[2])


def _stop(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
