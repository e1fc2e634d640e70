"""The messages to the service manager, over a real datagram socket."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from vumi.notify import Notifier

PATIENCE = 10.0
"""Seconds after which a step counts as hung."""


@contextmanager
def manager(address: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiving:
        receiving.bind(address)
        receiving.settimeout(PATIENCE)
        yield receiving


@pytest.mark.parametrize("kind", ["path", "abstract"])
def test_each_message_is_one_datagram(tmp_path: Path, kind: str) -> None:
    """The name of an abstract socket begins with a zero, and with @ in the variable."""
    path = str(tmp_path / "notify")
    bound, named = (path, path) if kind == "path" else (f"\0{path}", f"@{path}")
    with manager(bound) as receiving:
        notifier = Notifier({"NOTIFY_SOCKET": named})
        notifier.ready("Serves")
        notifier.alive()
        notifier.stopping()
        received = [receiving.recv(1_000).decode() for _ in range(3)]
    assert received == [
        "READY=1\nSTATUS=Serves",
        "WATCHDOG=1",
        "STOPPING=1\nSTATUS=Finishes the current requests",
    ]


@pytest.mark.parametrize(
    ("environment", "seconds"),
    [
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "500000", "WATCHDOG_PID": "7"}, 0.5),
        ({"WATCHDOG_USEC": "500000", "WATCHDOG_PID": ""}, 0.5),
        ({"WATCHDOG_USEC": "500000", "WATCHDOG_PID": "8"}, 0.0),
        ({"WATCHDOG_USEC": ""}, 0.0),
        ({"WATCHDOG_USEC": "-5"}, 0.0),
        ({}, 0.0),
    ],
)
def test_the_watchdog_has_the_time_that_the_manager_gave_this_process(
    environment: dict[str, str], seconds: float
) -> None:
    manager = {"NOTIFY_SOCKET": "/run/systemd/notify"}
    assert Notifier(manager | environment, process=7).watchdog_seconds == seconds
    assert Notifier(environment, process=7).watchdog_seconds == 0.0


@pytest.mark.parametrize("environment", [{}, {"NOTIFY_SOCKET": "/nowhere/notify"}])
def test_a_manager_that_is_not_there_changes_nothing(environment: dict[str, str]) -> None:
    Notifier(environment).ready("Serves")
