"""The common commits: requests that wait while one commit runs share the next one.

Commits run on the thread of the event loop. The web server reads and writes its sockets on its own
threads, without the interpreter, so no thread has to be woken for a request.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from chalicelib import telemetry
from chalicelib.http import errors
from chalicelib.http.messages import Request, Response
from chalicelib.storage.errors import StorageError
from chalicelib.units import Seconds
from vumi.storage.commits import InOneCommit
from vumi.storage.database import Corrupt

MAX_REQUESTS = 100
"""Requests in one commit: a few milliseconds in which nothing else is answered."""
THREADS = 40
"""Requests that are answered alone concurrently."""
HEALTH = "/healthz"
METRICS = "/metrics"
ADMIN_DATA = "/admin/data"
SLOW = (METRICS, ADMIN_DATA)
"""The beginnings of paths whose answers read much of the file."""


class CommonCommits:
    """The answers to requests by `route`, up to 100 of them in one commit of `in_one_commit`.

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
        self._waiting: deque[tuple[Request, asyncio.Future[Response | None]]] = deque()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="request")

    async def answer(self, request: Request) -> Response:
        """Answer a request after its writes are on the disk."""
        if request.path.startswith(SLOW) or may_call_network(request):
            return await self._on_thread(self._route, request)
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[Response | None] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._commit)
        self._waiting.append((request, answered))
        response = await answered
        return response or await self._on_thread(self._answer_alone, request)

    def close(self) -> None:
        """Stop without waiting: a request that still runs finds the file closed."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _commit(self) -> None:
        """Answer the requests that waited longest."""
        size = min(len(self._waiting), MAX_REQUESTS)
        batch = [self._waiting.popleft() for _ in range(size)]
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._commit)
        began = self._stopwatch()
        responses = self._responses([request for request, _ in batch])
        self._on_commit(size, self._stopwatch() - began)
        for (_, answered), response in zip(batch, responses, strict=True):
            if not answered.done():
                answered.set_result(response)

    def _responses(self, requests: Sequence[Request]) -> Sequence[Response | None]:
        """Answer requests in one commit; return None for each if the commit failed."""
        try:
            return self._in_one_commit(lambda: [self._route(request) for request in requests])
        except Exception as error:  # noqa: BLE001  otherwise no request would be answered after it
            if not isinstance(error, StorageError):
                telemetry.event(logging.ERROR, "common_commit_failed")
            return [None] * len(requests)

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
