"""The program under a service manager: its messages, its settings file and its warnings."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chalicelib.events.webhooks import signing
from tests.end_to_end.server import PATIENCE_SECONDS, Server, running


@contextmanager
def manager(address: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiving:
        receiving.bind(address)
        receiving.settimeout(PATIENCE_SECONDS)
        yield receiving


def test_the_manager_hears_that_it_is_ready_that_it_answers_and_that_it_stops(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "notify")
    with (
        manager(f"\0{path}") as receiving,
        running(tmp_path / "data", NOTIFY_SOCKET=f"@{path}", WATCHDOG_USEC="200000") as server,
    ):
        first = receiving.recv(1_000).decode()
        assert first == f"READY=1\nSTATUS=Serves badges on {server.url}"
        assert server.badge("a")["message"] == "0"
        assert [receiving.recv(1_000) for _ in range(5)] == [b"WATCHDOG=1"] * 5
        server.process.send_signal(signal.SIGTERM)
        last = b"WATCHDOG=1"
        while last == b"WATCHDOG=1":
            last = receiving.recv(1_000)
        assert last.startswith(b"STOPPING=1\nSTATUS=")
        assert server.process.wait(PATIENCE_SECONDS) == 0


def events(server: Server) -> list[dict[str, object]]:
    """Stop the server, and return its log."""
    return [json.loads(line) for line in server.stop()[2].splitlines()]


@pytest.mark.parametrize(("proxies", "logged"), [("", 1), ("127.0.0.1", 0)])
def test_an_address_that_others_reach_without_a_proxy_is_logged(
    tmp_path: Path, proxies: str, logged: int
) -> None:
    with running(tmp_path, HOST="0.0.0.0", TRUSTED_PROXIES=proxies) as server:  # noqa: S104  for its warning
        found = events(server)
    assert [one["message"] for one in found] == ["plain_http_exposed"] * logged
    for one in found:
        assert one["addresses"] == ["0.0.0.0"]  # noqa: S104  only named
        assert "TRUSTED_PROXIES" in str(one["fix"])


def test_the_settings_file_is_in_force_and_should_be_private(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    secret = signing.new_secret()
    path.write_text(f'IDS = ["owner/*"]\nPORT = 1\nWEBHOOK_SECRETS = ["{secret}"]\n')
    path.chmod(0o644)
    with running(tmp_path / "data", SETTINGS=str(path)) as server:
        assert server.port != 1, "the environment takes precedence"
        assert str(server.badge("other/a")["message"]).startswith("this id is not counted here")
        found = events(server)
    assert [one["message"] for one in found] == ["settings_file_not_private"]
    assert secret not in json.dumps(found)
