"""A real `python -m vumi` that tests start, call, kill and start again."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any
from urllib.parse import quote, urlsplit

from simulation.environment import NO_CLIENT_LIMITS

ROOT = Path(__file__).parent.parent.parent
PATIENCE_SECONDS = 30.0
"""The limit for steps that take a second or less on an idle machine."""


def start(folder: Path, *command: str, **settings: str) -> subprocess.Popen[str]:
    """Start the process without waiting for it."""
    own = {"PORT": "0", "DATA": str(folder), **NO_CLIENT_LIMITS}
    environment = {**os.environ, **own, **settings}
    return subprocess.Popen(  # noqa: S603  our own words
        [sys.executable, "-m", "vumi", *command],
        cwd=ROOT,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


class Server:
    """A running server."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        self.greeting = process.stdout.readline()
        found = re.search(r"http://\S+", self.greeting)
        assert found, f"no URL in {self.greeting!r}: {_rest(process.stderr)}"
        self.url = found.group()
        address = urlsplit(self.url)
        assert address.hostname is not None
        assert address.port is not None
        self.host, self.port = address.hostname, address.port

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
        assert shown == count

    def stop(self, how: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
        """Stop the server; return its exit status and the rest of its standard output and error."""
        self.process.send_signal(how)
        out, err = self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode, out, err


@contextmanager
def running(folder: Path, **settings: str) -> Iterator[Server]:
    process = start(folder, **settings)
    try:
        yield Server(process)
    finally:
        process.kill()
        process.communicate()


def _rest(stream: IO[str] | None) -> str:
    return stream.read() if stream is not None else ""
