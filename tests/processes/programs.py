"""Programs that tests run: a real `python -m vumi`, which they start, call and kill, and others."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from http.client import HTTPMessage
from pathlib import Path
from subprocess import PIPE
from typing import Any, TypeVar
from urllib.parse import quote

import pytest

from chalicelib.http import tokens
from simulation import server_process
from simulation.environment import ROOT
from simulation.server_process import NO_HEADERS, NotStartedError, Process, ServerProcess, killed
from vumi.storage.database import FILE

PATIENCE_SECONDS = 60.0
"""The limit for steps that take two seconds or less on an idle machine."""

Found = TypeVar("Found")
WHEELS = Path(sys.prefix) / "wheels"
"""The wheels of requirements/standalone.txt and requirements/build.txt."""


def require(program: str) -> None:
    """Skip the test without a program that make can't install; on CI, fail."""
    if shutil.which(program) is None:
        missing = f"make can't install {program}: apt-get install {program}"
        (pytest.fail if "CI" in os.environ else pytest.skip)(missing)


def finish(
    *command: str | Path,
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
    given: str | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program until it ends; return its status and its output."""
    return subprocess.run(  # noqa: S603  words of the tests
        command,
        cwd=cwd,
        env=env,
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=10 * PATIENCE_SECONDS,
    )


def succeed(*command: str | Path, **how: Any) -> str:
    """Run a program as `finish` does, which must succeed; return its standard output."""
    finished = finish(*command, **how)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


def until(look: Callable[[], Found | None], what: str = "what the test waits for") -> Found:
    """Wait until `look` finds a value that is true, and return it."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (found := look()):
        assert time.monotonic() < deadline, f"{what}: not within {PATIENCE_SECONDS:.0f} s"
        time.sleep(0.01)
    return found


def offline_pip() -> dict[str, str]:
    """Return the environment of a pip and a uv that ignore the settings of this machine."""
    assert WHEELS.is_dir(), f"{WHEELS} is missing: run make test"
    return {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_FIND_LINKS": str(WHEELS),
        "PIP_NO_CACHE_DIR": "1",
        "PIP_NO_INDEX": "1",
        "UV_FIND_LINKS": str(WHEELS),
        "UV_NO_CACHE": "1",
        "UV_NO_CONFIG": "1",
        "UV_NO_INDEX": "1",
        "UV_OFFLINE": "1",
    }


TOKEN = tokens.new_token()
"""The operator's token on a server with the next settings."""
WITH_TOKEN = {"API_TOKEN_DIGESTS": tokens.digest(TOKEN)}


def start(folder: Path, *command: str, **settings: str) -> Process:
    """Start a command, or the server, without waiting for it."""
    return server_process.start(folder, ("vumi", *(command or ("serve",))), settings)


def run(folder: Path, *command: str, **settings: str) -> tuple[int, str, str]:
    """Run a command, or the server; return its exit status, standard output and standard error."""
    process = start(folder, *command, **settings)
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    return process.returncode, out, err


def create_token(folder: Path, name: str, user: str = "") -> str:
    """Create a token by the command, while a server runs or not."""
    options = ("--user", user) if user else ()
    status, out, err = run(folder, "token", "create", "--name", name, *options)
    assert status == 0, err
    [token] = re.findall(rf"^Token {re.escape(name)}, shown only once: (\S+)$", out)
    return str(token)


def read_row(folder: Path, query: str, *values: str) -> Any:
    """Return the first row that a query finds in the file of a folder."""
    with closing(sqlite3.connect(folder / FILE)) as connection:
        return connection.execute(query, values).fetchone()


class Server(ServerProcess):
    """A running server."""

    def request(
        self,
        path: str,
        method: str = "GET",
        body: str | None = None,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> tuple[int, HTTPMessage, bytes]:
        content = body.encode() if body else None
        return server_process.request((self.host, self.port), path, method, content, headers)

    def ask(self, method: str, path: str, body: object = None, token: str = "") -> tuple[int, Any]:
        """Send JSON, with a token or a secret; return the status and the JSON of the response."""
        bearer = {"Authorization": f"Bearer {token}"} if token else {}
        sent = None if body is None else json.dumps(body)
        status, _, answer = self.request(path, method, sent, bearer)
        return status, json.loads(answer) if answer else None

    def badge(self, badge_id: str, query: str = "") -> dict[str, Any]:
        status, badge = self.ask("GET", f"/api/v1/views?id={quote(badge_id, safe='')}{query}")
        assert status == 200
        return dict(badge)

    def peek(self, badge_id: str) -> int:
        return int(self.badge(badge_id, "&peek=1")["message"])

    def wait_for(self, badge_id: str, count: int) -> None:
        """Wait until a badge shows a count; it must never show more."""
        until(lambda: self.peek(badge_id) >= count, f"{badge_id} shows {count}")
        assert self.peek(badge_id) == count

    def visit(self, badge_id: str, times: int) -> None:
        """Count views, and wait until the badge shows them."""
        before = self.peek(badge_id)
        for _ in range(times):
            self.badge(badge_id)
        self.wait_for(badge_id, before + times)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
        """Stop the server; return its exit status and the rest of its standard output and error."""
        self.process.send_signal(how)
        out, err = self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode, out, err

    def log(self) -> list[dict[str, Any]]:
        """Stop the server; return the lines of its log."""
        return [json.loads(line) for line in self.stop()[2].splitlines()]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def running(folder: Path, **settings: str) -> Iterator[Server]:
    with killed(start(folder, **settings)) as process:
        try:
            server = Server(process)
        except NotStartedError as error:
            error.add_note(process.communicate()[1])
            raise
        yield server


@contextmanager
def serving(*command: str | Path, cwd: Path, env: Mapping[str, str]) -> Iterator[Server]:
    """Run an installed program that serves, in an environment of its own."""
    process = subprocess.Popen(  # noqa: S603  words of the tests
        command, cwd=cwd, env=env, stdout=PIPE, stderr=PIPE, encoding="utf-8"
    )
    with killed(process):
        yield Server(process)
