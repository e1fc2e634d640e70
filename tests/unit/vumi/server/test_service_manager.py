"""The service manager: it hears that requests are answered, only while they are."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

import pytest

from chalicelib.http.messages import Request, Response
from chalicelib.resources import NoLimits
from chalicelib.units import Seconds
from simulation.logs import logged_events
from tests import event_loop
from vumi.server.asgi import Application
from vumi.server.common_commits import CommonCommits, Crowds
from vumi.server.service_manager import Notifier, is_answered, watch
from vumi.server.sockets import UnixSocket
from vumi.server.web import WebServer

PATIENCE = 10.0
"""Seconds after which a step counts as hung."""
WATCHDOG_SECONDS = 0.2


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
    stop = "STOPPING=1\nSTATUS=Finishes the current requests"
    assert received == ["READY=1\nSTATUS=Serves", "WATCHDOG=1", stop]


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
    manager = {"NOTIFY_SOCKET": "/nowhere/notify"}
    assert Notifier(manager | environment, process=7).watchdog_seconds == seconds
    assert Notifier(environment, process=7).watchdog_seconds == 0.0
    Notifier(manager).ready("and no manager there changes nothing")


def test_a_socket_for_another_process_is_not_taken() -> None:
    assert Notifier({"LISTEN_PID": "8", "LISTEN_FDS": "1"}, process=7).given_socket() is None


def reports(asked: list[Seconds | Exception | None]) -> list[Seconds]:
    """Return when a watchdog of 10 s reports, if its responses take these times."""
    now, reported, asked = 0.0, list[Seconds](), [*asked]

    async def ask() -> bool:
        nonlocal now
        match asked.pop(0):
            case Exception() as error:
                raise error
            case None:
                return False
            case seconds:
                now += seconds
                return True

    async def sleep(seconds: Seconds) -> None:
        nonlocal now
        now += seconds
        if not asked:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        event_loop.run(watch(ask, lambda: reported.append(now), 10.0, sleep, lambda: now))
    return reported


def test_it_asks_in_each_half_of_the_time_also_if_answers_take_long() -> None:
    assert reports([0.0, 4.0, 1.0, 0.0]) == [0.0, 9.0, 11.0, 15.0]


@pytest.mark.parametrize("failure", [None, ConnectionRefusedError(), TimeoutError()])
def test_it_reports_nothing_without_an_answer_and_asks_again(
    failure: Exception | None, caplog: pytest.LogCaptureFixture
) -> None:
    assert reports([0.0, failure, 0.0]) == [0.0, 10.0]
    assert logged_events(caplog) == [(logging.WARNING, "health_not_answered", {"seconds": 5.0})]


class Commits:
    """Commits of requests, which hang while `goes_on` is not set; a corrupt file is 503."""

    def __init__(self) -> None:
        self.goes_on = threading.Event()
        self.goes_on.set()

    def route(self, request: Request) -> Response:
        assert request.path == "/healthz"
        return Response(503)

    def in_one_commit(self, function: Callable[[], object], /) -> object:
        assert self.goes_on.wait(PATIENCE)
        return function()


@contextmanager
def serving(folder: Path, commits: Commits, *, unix: bool) -> Iterator[socket.socket]:
    """Serve with a service manager, which has the socket, until the block ends."""
    path, microseconds = str(folder / "notify"), str(int(WATCHDOG_SECONDS * 1_000_000))
    notifier = Notifier({"NOTIFY_SOCKET": path, "WATCHDOG_USEC": microseconds})
    together = CommonCommits(commits.route, commits.in_one_commit, Crowds(NoLimits()))  # type: ignore[arg-type]
    unix_socket = UnixSocket(folder / "sock", 0o600) if unix else None
    server = WebServer(
        Application(together.answer), "::1", 0, unix_socket=unix_socket, notifier=notifier
    )
    thread = threading.Thread(target=server.serve, args=(lambda: notifier.ready("Serves"),))
    with manager(path) as receiving:
        thread.start()
        try:
            yield receiving
        finally:
            commits.goes_on.set()
            server.stop()
            thread.join(PATIENCE)
            together.close()


def until_silent(receiving: socket.socket) -> Iterator[str]:
    with suppress(TimeoutError):
        while True:
            yield receiving.recv(1_000).decode().partition("\n")[0]


@pytest.mark.parametrize("unix", [False, True])
def test_the_manager_hears_of_the_start_then_of_each_answer_until_commits_hang(
    tmp_path: Path, *, unix: bool
) -> None:
    """The test waits for five times the patience of the manager."""
    commits = Commits()
    with serving(tmp_path, commits, unix=unix) as receiving:
        assert [*islice(until_silent(receiving), 3)] == ["READY=1", "WATCHDOG=1", "WATCHDOG=1"]
        commits.goes_on.clear()
        receiving.settimeout(5 * WATCHDOG_SECONDS)
        assert len(list(islice(until_silent(receiving), 9))) <= 2  # answers that were on their way


@pytest.mark.parametrize(("sent", "answered"), [(b"HTTP/1.1 503 x\r\n", True), (b"", False)])
def test_only_the_beginning_of_an_answer_is_one(
    tmp_path: Path, sent: bytes, *, answered: bool
) -> None:
    async def ask() -> bool:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(sent)
            writer.close()

        path = tmp_path / "sock"
        async with await asyncio.start_unix_server(answer, path):
            return await is_answered(path)

    assert event_loop.run(ask()) is answered
