"""The watchdog: it reports that requests are answered only while they are."""

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
from chalicelib.units import Seconds
from tests import event_loop
from vumi.notify import Notifier
from vumi.server.asgi import Application, Read
from vumi.server.common_commits import CommonCommits
from vumi.server.unix_socket import UnixSocket
from vumi.server.watchdog import Watchdog, is_answered
from vumi.server.web import WebServer

PATIENCE = 10.0
"""Seconds after which a step counts as hung."""
WATCHDOG_SECONDS = 0.2


class Steps:
    """A watchdog of 10 s, with a clock that a sleep moves, for some rounds."""

    def __init__(self, asked: list[Seconds | Exception | None], rounds: int) -> None:
        self.now = 0.0
        self.asked = iter(asked)
        self.rounds = rounds
        self.reported: list[Seconds] = []

    async def ask(self) -> bool:
        match next(self.asked):
            case Exception() as error:
                raise error
            case None:
                return False
            case seconds:
                self.now += seconds
                return True

    async def sleep(self, seconds: Seconds) -> None:
        self.now += seconds
        self.rounds -= 1
        if not self.rounds:
            raise asyncio.CancelledError

    def run(self) -> list[Seconds]:
        watchdog = Watchdog(
            self.ask,
            lambda: self.reported.append(self.now),
            10.0,
            sleep=self.sleep,
            clock=lambda: self.now,
        )
        with pytest.raises(asyncio.CancelledError):
            event_loop.run(watchdog.run())
        return self.reported


def test_it_asks_in_each_half_of_the_time_also_if_answers_take_long() -> None:
    assert Steps([0.0, 4.0, 1.0, 0.0], 4).run() == [0.0, 9.0, 11.0, 15.0]


@pytest.mark.parametrize("failure", [None, ConnectionRefusedError(), TimeoutError()])
def test_it_reports_nothing_without_an_answer_and_asks_again(
    failure: Exception | None, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "vu-mi"):
        assert Steps([0.0, failure, 0.0], 3).run() == [0.0, 10.0]
    logged = [(one.message, one.__dict__["fields"]) for one in caplog.records]
    assert logged == [("health_not_answered", {"function": "watchdog", "seconds": 5.0})]


class Commits:
    """Commits of requests that hang from `hang` on."""

    def __init__(self) -> None:
        self.goes_on = threading.Event()
        self.goes_on.set()
        self.status = 200

    def route(self, request: Request) -> Response:
        return Response(self.status if request.path == "/healthz" else 404)

    def in_one_commit(self, function: Callable[[], object], /) -> object:
        assert self.goes_on.wait(PATIENCE)
        return function()


@contextmanager
def manager(folder: Path) -> Iterator[tuple[socket.socket, Notifier]]:
    path = str(folder / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiving:
        receiving.bind(path)
        receiving.settimeout(PATIENCE)
        given = {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": str(int(WATCHDOG_SECONDS * 1_000_000))}
        yield receiving, Notifier(given)


@contextmanager
def serving(folder: Path, commits: Commits, *, unix: bool) -> Iterator[socket.socket]:
    """Serve with a service manager, which has the socket, until the block ends."""
    with manager(folder) as (receiving, notifier):
        together = CommonCommits(commits.route, commits.in_one_commit)  # type: ignore[arg-type]
        unix_socket = UnixSocket(folder / "sock", 0o600) if unix else None
        server = WebServer(
            Application(together.answer), "::1", 0, unix_socket=unix_socket, notifier=notifier
        )
        thread = threading.Thread(target=server.serve, args=(lambda: notifier.ready("Serves"),))
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
            yield received(receiving)


def received(receiving: socket.socket) -> str:
    return receiving.recv(1_000).decode().partition("\n")[0]


@pytest.mark.parametrize("unix", [False, True])
@pytest.mark.parametrize("status", [200, 503])
def test_the_manager_hears_of_the_start_then_of_each_answer(
    tmp_path: Path, status: int, *, unix: bool
) -> None:
    """A corrupt file is 503, which is an answer: a new start would not repair it."""
    commits = Commits()
    commits.status = status
    with serving(tmp_path, commits, unix=unix) as receiving:
        messages = [received(receiving) for _ in range(4)]
    assert messages == ["READY=1", "WATCHDOG=1", "WATCHDOG=1", "WATCHDOG=1"]


def test_the_manager_hears_nothing_while_commits_hang(tmp_path: Path) -> None:
    """The test waits for ten times the manager's patience."""
    commits = Commits()
    with serving(tmp_path, commits, unix=False) as receiving:
        assert [received(receiving) for _ in range(2)] == ["READY=1", "WATCHDOG=1"]
        commits.goes_on.clear()
        receiving.settimeout(10 * WATCHDOG_SECONDS)
        assert len(list(islice(until_silent(receiving), 9))) <= 2  # answers that were on their way


def test_the_manager_hears_of_the_stop(tmp_path: Path) -> None:
    with manager(tmp_path) as (receiving, notifier):
        server = WebServer(Application(answer_nothing), "::1", 0, notifier=notifier)
        stopping = threading.Thread(target=server.serve, args=(server.stop,))
        stopping.start()
        stopping.join()
        messages = [received(receiving)]
        while messages[-1] == "WATCHDOG=1":
            messages.append(received(receiving))
    assert messages[-1] == "STOPPING=1"


async def answer_nothing(_: str, __: Read) -> Response:
    return Response(204)


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
