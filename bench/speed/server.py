"""`python -m vumi` as a process, on its own port and in a given folder."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from subprocess import Popen

from bench.speed.load import Load, Request, run_apart
from simulation.server_process import ServerProcess, killed, start
from vumi.storage.database import FILE

CONNECTIONS = 32
"""Keep-alive connections of a load."""
SETTLE_SECONDS = 60.0
"""The most that putting, expiry and folds of a round may take; views expire in two seconds."""
POLL_SECONDS = 0.05
UNDER_WAY = (
    "SELECT (SELECT count(*) FROM messages), (SELECT count(*) FROM views)"
    " + (SELECT count(*) FROM items WHERE sk = 'WINDOW'), (SELECT count(*) FROM changes)"
)
"""Messages to put, views and markers to remove, and removals to fold, in one statement."""


class Server(ServerProcess):
    """A running server."""

    def __init__(self, process: Popen[str], folder: Path) -> None:
        super().__init__(process)
        self.folder = folder

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

    def settle(self) -> None:
        """Wait until every view is folded. Raises `TimeoutError`."""
        started = time.monotonic()
        while any(left := self._under_way()):
            if time.monotonic() - started > SETTLE_SECONDS:
                raise TimeoutError(f"messages, views and removals still under way: {left}")
            time.sleep(POLL_SECONDS)

    def resident(self) -> int:
        """Return the bytes of memory of the process. Source: proc(5), `/proc/pid/statm`."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def _under_way(self) -> tuple[int, int, int]:
        with closing(sqlite3.connect(f"file:{self.folder / FILE}?mode=ro", uri=True)) as file:
            messages, views, removals = file.execute(UNDER_WAY).fetchone()
        return messages, views, removals


@contextmanager
def running(folder: Path, **settings: str) -> Iterator[Server]:
    """Run a server with these settings."""
    with killed(start(folder, ("vumi", "serve"), settings, stderr=None)) as process:
        yield Server(process, folder)
