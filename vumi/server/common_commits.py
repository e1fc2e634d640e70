"""The common commits: requests that wait while one commit runs share the next one.

Clients take turns by the time that their requests cost (`fair_queue`), and a commit is bounded by
its time. Commits run on the thread of the event loop. The web server reads and writes its sockets
on its own threads, without the interpreter, so no thread has to be woken for a request.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

from chalicelib import telemetry
from chalicelib.http import errors
from chalicelib.http.messages import Request, Response
from chalicelib.storage.errors import StorageError
from chalicelib.units import Seconds
from vumi.server.client_limits import network_of
from vumi.server.fair_queue import FairQueue
from vumi.storage.commits import InOneCommit
from vumi.storage.database import Corrupt

COMMIT_SECONDS = 0.005
"""The time in which a commit takes requests. Nothing else is answered meanwhile."""
THREADS = 40
"""Requests that are answered alone concurrently."""
HEALTH = "/healthz"
METRICS = "/metrics"
ADMIN_DATA = "/admin/data"
SLOW = (METRICS, ADMIN_DATA)
"""The beginnings of paths whose answers read much of the file."""


Waiting: TypeAlias = tuple[Request, "asyncio.Future[Response | None]"]
"""A request, and the future that gets its response, or None if its commit failed."""


class CommonCommits:
    """The answers to requests by `route`, several of them in one commit of `in_one_commit`.

    A request that may wait for the network is answered alone, on a thread. So are a scrape of the
    metrics, a request for the operator's data, and each request of a failed common commit.
    `on_commit` gets the number of requests and the time of each commit.
    """

    def __init__(
        self,
        route: Callable[[Request], Response],
        in_one_commit: InOneCommit,
        on_commit: Callable[[int, Seconds], object] = lambda _, __: None,
        stopwatch: Callable[[], Seconds] = time.perf_counter,
    ) -> None:
        self._route = route
        self._in_one_commit = in_one_commit
        self._on_commit = on_commit
        self._stopwatch = stopwatch
        self._waiting: FairQueue[Waiting] = FairQueue()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="request")

    async def answer(self, request: Request) -> Response:
        """Answer a request after its writes are on the disk."""
        if request.path.startswith(SLOW) or may_call_network(request):
            return await self._on_thread(self._route, request)
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[Response | None] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._commit)
        self._waiting.add(network_of(request.client), (request, answered))
        response = await answered
        return response or await self._on_thread(self._answer_alone, request)

    def close(self) -> None:
        """Stop without waiting: a request that still runs finds the file closed."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _commit(self) -> None:
        """Answer waiting requests in one commit."""
        batch: list[Waiting] = []
        began = self._stopwatch()
        responses = self._responses(batch)
        self._on_commit(len(batch), self._stopwatch() - began)
        for (_, answered), response in zip(batch, responses, strict=True):
            if not answered.done():
                answered.set_result(response)
        if self._waiting:
            # First the loop sends these responses, and takes the requests that came meanwhile.
            loop = asyncio.get_running_loop()
            loop.call_soon(loop.call_soon, self._commit)

    def _responses(self, batch: list[Waiting]) -> Sequence[Response | None]:
        """Answer requests, and add them to the batch; return None for each if the commit failed."""
        try:
            return self._in_one_commit(lambda: self._answer_in_turn(batch))
        except Exception as error:  # noqa: BLE001  otherwise no request would be answered after it
            if not isinstance(error, StorageError):
                telemetry.event(logging.ERROR, "common_commit_failed")
            batch.extend(self._take_all())
            return [None] * len(batch)

    def _answer_in_turn(self, batch: list[Waiting]) -> list[Response]:
        """Answer requests until the time of a commit is over.

        The commit may call this again: then the batch has the requests of the first call.
        """
        responses = [self._route(request) for request, _ in batch]
        now = self._stopwatch()
        end = now + COMMIT_SECONDS
        while self._waiting and (not batch or now + self._waiting.expected_cost() < end):
            client, waiting = self._waiting.take()
            batch.append(waiting)
            responses.append(self._route(waiting[0]))
            began, now = now, self._stopwatch()
            self._waiting.charge(client, now - began)
        return responses

    def _take_all(self) -> Iterator[Waiting]:
        """Take all waiting requests, after a commit that failed."""
        while self._waiting:
            client, waiting = self._waiting.take()
            self._waiting.charge(client, 0.0)
            yield waiting

    def _answer_alone(self, request: Request) -> Response:
        """Answer a request whose common commit failed."""
        try:
            return self._in_one_commit(lambda: self._route(request))
        except StorageError as error:
            if isinstance(error, Corrupt) and request.path == HEALTH:
                # The route would answer 200, because reads continue.
                return errors.unavailable("the file is corrupt: see the log")
            # Without a commit around it, the route meets the same error and answers it.
            return self._route(request)

    async def _on_thread(self, answer: Callable[[Request], Response], request: Request) -> Response:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, answer, request)


def may_call_network(request: Request) -> bool:
    """Return whether a request may name a URL, whose host is resolved, or prove an owner.

    JSON may have the letters as escapes, and in UTF-16.
    """
    if not request.body:
        return False
    body = request.body.replace(b"\0", b"")
    return any(part in body for part in (b"url", b"proof", b"\\u"))
