"""A real `python -m vumi` that tests start, call, kill and start again."""

from __future__ import annotations

import http.client
import json
import re
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from simulation import server_process
from simulation.server_process import NotStartedError, Process, ServerProcess, killed

PATIENCE_SECONDS = 30.0
"""The limit for steps that take a second or less on an idle machine."""


def start(folder: Path, *command: str, **settings: str) -> Process:
    """Start a command, or the server, without waiting for it."""
    return server_process.start(folder, ("vumi", *(command or ("serve",))), settings)


def create_token(folder: Path, name: str, user: str = "") -> str:
    """Create a token by the command, while a server runs or not."""
    options = ("--user", user) if user else ()
    process = start(folder, "token", "create", "--name", name, *options)
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    [token] = re.findall(rf"^Token {re.escape(name)}, shown only once: (\S+)$", out)
    assert (process.returncode, err) == (0, "")
    return str(token)


class Server(ServerProcess):
    """A running server."""

    def request(
        self,
        path: str,
        method: str = "GET",
        body: str | None = None,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE_SECONDS)
        try:
            connection.request(method, path, body and body.encode(), dict(headers))
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def badge(self, badge_id: str, query: str = "") -> dict[str, Any]:
        status, _, body = self.request(f"/api/v1/views?id={quote(badge_id, safe='')}{query}")
        assert status == 200
        badge: dict[str, Any] = json.loads(body)
        return badge

    def peek(self, badge_id: str) -> int:
        return int(self.badge(badge_id, "&peek=1")["message"])

    def wait_for(self, badge_id: str, count: int) -> None:
        """Wait until a badge shows a count; it must never show more."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (shown := self.peek(badge_id)) < count:
            assert time.monotonic() < deadline, f"{shown} shown, {count} expected"
            time.sleep(0.02)
        assert shown == count

    def stop(self, how: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
        """Stop the server; return its exit status and the rest of its standard output and error."""
        self.process.send_signal(how)
        out, err = self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode, out, err


@contextmanager
def running(folder: Path, **settings: str) -> Iterator[Server]:
    with killed(start(folder, **settings)) as process:
        try:
            server = Server(process)
        except NotStartedError as error:
            error.add_note(process.communicate()[1])
            raise
        yield server
