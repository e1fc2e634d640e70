"""The program on a Unix socket, with real curl, nginx and Caddy."""

from __future__ import annotations

import json
import os
import signal
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from simulation.server_process import Process, killed
from tests.processes.programs import PATIENCE_SECONDS, require, succeed
from tests.processes.server import run, start


@contextmanager
def serving(folder: Path, path: Path, **settings: str) -> Iterator[Process]:
    """Serve on a Unix socket until the block ends."""
    with killed(start(folder, HOST=f"unix:{path}", **settings)) as process:
        assert process.stdout
        assert process.stdout.readline() == f"vu-mi serves badges on the Unix socket {path}\n"
        yield process


def curl(path: Path, target: str, *options: str) -> str:
    require("curl")
    return succeed("curl", "-sS", "--unix-socket", path, *options, f"http://localhost{target}")


def message(answer: str) -> str:
    return str(json.loads(answer)["message"])


def test_curl_counts_a_view_and_the_greeting_says_how(tmp_path: Path) -> None:
    path = tmp_path / "vumi.sock"
    with serving(tmp_path / "data", path) as process:
        assert process.stdout
        line = f"Try it: curl --unix-socket {path} http://localhost/healthz\n"
        assert process.stdout.readline() == line
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        assert curl(path, "/healthz") == '{"status":"ok"}'
        assert [message(curl(path, "/api/v1/views?id=a")) for _ in range(2)] == ["0", "1"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_SECONDS) == 0
    assert os.listdir(tmp_path) == ["data"]  # noqa: PTH208  names


def test_a_killed_server_leaves_a_socket_that_the_next_one_replaces(tmp_path: Path) -> None:
    path = tmp_path / "vumi.sock"
    with serving(tmp_path / "data", path) as process:
        process.kill()
        process.wait(PATIENCE_SECONDS)
    assert path.is_socket()
    with serving(tmp_path / "data", path):
        assert curl(path, "/healthz") == '{"status":"ok"}'
        status, out, err = run(tmp_path / "other", HOST=f"unix:{path}")
        assert (status, out, err.count("\n")) == (1, "", 1)
        assert err.startswith(f"Error: HOST: {path} is in use: stop the")
        assert curl(path, "/healthz") == '{"status":"ok"}'
