"""The program on a Unix socket, with real curl, nginx and Caddy."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from simulation.server_process import Process, killed
from tests.end_to_end.server import PATIENCE_SECONDS, start


@contextmanager
def serving(folder: Path, path: Path, **settings: str) -> Iterator[Process]:
    """Serve on a Unix socket until the block ends."""
    with killed(start(folder, HOST=f"unix:{path}", **settings)) as process:
        assert process.stdout
        assert process.stdout.readline() == f"vu-mi serves badges on the Unix socket {path}\n"
        yield process


def curl(path: Path, target: str, *options: str) -> str:
    command = ["curl", "-sS", "--unix-socket", str(path), *options, f"http://localhost{target}"]
    return subprocess.check_output(command, text=True, timeout=PATIENCE_SECONDS)  # noqa: S603  our own words


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


def test_the_mode_is_a_setting(tmp_path: Path) -> None:
    path = tmp_path / "vumi.sock"
    with serving(tmp_path / "data", path, SOCKET_MODE="606"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o606


def test_a_killed_server_leaves_a_socket_that_the_next_one_replaces(tmp_path: Path) -> None:
    path = tmp_path / "vumi.sock"
    with serving(tmp_path / "data", path) as process:
        process.kill()
        process.wait(PATIENCE_SECONDS)
    assert path.is_socket()
    with serving(tmp_path / "data", path):
        assert curl(path, "/healthz") == '{"status":"ok"}'


def refusal(folder: Path, path: Path) -> str:
    process = start(folder, HOST=f"unix:{path}")
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, out, err.count("\n")) == (1, "", 1)
    return err.removeprefix("vu-mi: ")


def test_a_socket_of_another_server_is_refused_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "vumi.sock"
    with serving(tmp_path / "data", path):
        assert refusal(tmp_path / "other", path).startswith(f"HOST: {path} is in use: stop the")
        assert curl(path, "/healthz") == '{"status":"ok"}'


def test_paths_that_can_not_have_a_socket_are_refused(tmp_path: Path) -> None:
    taken = tmp_path / "file"
    taken.write_text("precious")
    assert "is not a socket" in refusal(tmp_path / "data", taken)
    assert taken.read_text() == "precious"
    assert "has room for 106" in refusal(tmp_path / "data", tmp_path / ("x" * 107))
    assert "create the folder" in refusal(tmp_path / "data", tmp_path / "none" / "vumi.sock")
    assert not (tmp_path / "data").exists()


def test_requests_without_an_address_are_one_client_s(tmp_path: Path) -> None:
    path = tmp_path / "vumi.sock"
    with serving(tmp_path / "data", path, CLIENT_NEW_IDS_PER_MINUTE="1"):
        named = ("-H", "X-Forwarded-For: 203.0.113.9")
        shown = [message(curl(path, f"/api/v1/views?id={name}")) for name in "ab"]
        assert shown[0] == "0"
        assert shown[1].startswith("too many new badges")
        assert message(curl(path, "/api/v1/views?id=c", *named)) == "0"


def test_a_socket_that_every_user_may_write_to_has_one_client(tmp_path: Path) -> None:
    path = tmp_path / "vumi.sock"
    with serving(tmp_path / "data", path, SOCKET_MODE="666", CLIENT_NEW_IDS_PER_MINUTE="1"):
        named = [("-H", f"X-Forwarded-For: 203.0.113.{number}") for number in range(2)]
        shown = [
            message(curl(path, f"/api/v1/views?id={number}", *one))
            for number, one in enumerate(named)
        ]
    assert shown[1].startswith("too many new badges")
