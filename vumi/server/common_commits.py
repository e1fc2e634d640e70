"""The common commits: requests that wait while one commit runs share the next one.

Clients take turns by the time that their requests cost, from the reading of a head on, and those
that cost most rest while others are answered (`request_queue`). A commit is bounded by its time.
Commits run on the thread of the event loop. The web server reads and writes its sockets on its own
threads, without the interpreter, so no thread has to be woken for a request.

Requests of many clients for the same, which is a new id or one hot badge, are a crowd. Each of its
clients may be light, and all of them together use the server up. So a crowd has its turns like one
client, and is heavy like one. To what crowd a request belongs is known after its badge was read. If
the crowd is heavy then, the request leaves its turn, and is answered again in a turn of its crowd.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeAlias

from chalicelib import telemetry
from chalicelib.history.routes import TOP
from chalicelib.http import errors
from chalicelib.http.messages import Request, Response
from chalicelib.resources import Action, Limits
from chalicelib.storage.errors import StorageError
from chalicelib.units import Seconds
from vumi.resources import MayWait, is_on_event_loop
from vumi.server.asgi import BodyExpected, Read
from vumi.server.clients import network_of
from vumi.server.request_queue import RequestQueue
from vumi.storage.commits import InOneCommit
from vumi.storage.database import CorruptFileError

MARK = "\n"
"""The beginning of the names of crowds, which no client's name has."""
NEW_IDS = f"{MARK}new ids"
NEW_ID = Action.NEW_ID
THREADS = 40
"""Requests that are answered alone concurrently."""
HEALTH = "/healthz"
METRICS = "/metrics"
ADMIN_DATA = "/admin/data"
SLOW = (METRICS, ADMIN_DATA, TOP)
"""The beginnings of paths whose answers read much of the file."""

Reply: TypeAlias = Response | BodyExpected | Callable[[], Response | BodyExpected]
"""A response, the request for a body, or the function that answers on a thread."""


Waiting: TypeAlias = tuple[Read, asyncio.Future[Reply], bool]
"""A request, the future that gets its reply, and whether it waits for a turn of its crowd."""


class CommonCommits:
    """The answers to requests by `route`, several of them in one commit of `in_one_commit`.

    A request whose route comes to the network (`MayWait`) is answered again, alone on a thread: so
    the limits refuse most of them before. So are requests of `SLOW` paths, and
    each request of a failed common commit. `crowds` learns of each turn.
    `on_commit` gets the number of requests that each commit answered, and its time.
    """

    def __init__(
        self,
        route: Callable[[Request], Response],
        in_one_commit: InOneCommit,
        crowds: Crowds,
        on_commit: Callable[[int, Seconds], object] = lambda _, __: None,
        stopwatch: Callable[[], Seconds] = time.perf_counter,
    ) -> None:
        self._route = route
        self._in_one_commit = in_one_commit
        self._crowds = crowds
        self._on_commit = on_commit
        self._stopwatch = stopwatch
        self._waiting: RequestQueue[Waiting] = RequestQueue()
        crowds.must_wait = self._waiting.must_wait
        self._resting: asyncio.TimerHandle | None = None
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="request")

    async def answer(self, client: str, read: Read) -> Response | BodyExpected:
        """Answer a request after its writes are on the disk, or say that its body is expected."""
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[Reply] = loop.create_future()
        is_idle, now = not self._waiting, self._stopwatch()
        self._waiting.add(network_of(client), (read, answered, False), now)
        if self._resting and not self._waiting.wait(now):
            self._resting.cancel()
            is_idle, self._resting = True, None
        if is_idle:
            loop.call_soon(self._commit)
        reply = await answered
        return await loop.run_in_executor(self._threads, reply) if callable(reply) else reply

    def close(self) -> None:
        """Stop without waiting: a request that still runs finds the file closed."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _commit(self) -> None:
        """Answer waiting requests in one commit, or rest if they are all of heavy clients."""
        loop, began = asyncio.get_running_loop(), self._stopwatch()
        wait = self._waiting.wait(began)
        self._resting = loop.call_later(wait, self._commit) if wait else None
        if wait:
            return
        batch: list[Waiting] = []
        replies = self._replies(batch)
        ended = self._stopwatch()
        self._waiting.rest(ended - began, ended)
        if responses := sum([isinstance(reply, Response) for reply in replies]):
            self._on_commit(responses, ended - began)
        for (_, answered, _), reply in zip(batch, replies, strict=True):
            if not answered.done():
                answered.set_result(reply)
        if self._waiting:
            # First the loop sends these responses, and takes the requests that came meanwhile.
            loop.call_soon(loop.call_soon, self._commit)

    def _replies(self, batch: list[Waiting]) -> Sequence[Reply]:
        """Answer requests, and add them to the batch. Each is answered alone if this fails."""
        try:
            return self._in_one_commit(lambda: self._answer_in_turn(batch))
        except Exception as error:  # noqa: BLE001  otherwise no request would be answered after it
            if not isinstance(error, StorageError):
                telemetry.event(logging.ERROR, "common_commit_failed")
            batch.extend(self._waiting.clear())
            return [partial(self._answer_alone, read) for read, _, _ in batch]

    def _answer_in_turn(self, batch: list[Waiting]) -> list[Reply]:
        """Answer requests, and add them to the batch, until the time of a commit is over."""
        replies: list[Reply] = []
        start = now = self._stopwatch()
        waiting = self._waiting.take(now)
        while waiting:
            read, answered, is_again = waiting
            batch.append(waiting)
            self._crowds.begin(is_again=is_again)
            reply = self._reply(read)
            began, now = now, self._stopwatch()
            if reply is None:
                batch.pop()
                again, crowd = (read, answered, True), self._crowds.current
                self._waiting.defer(again, now - began, now, crowd)
            else:
                replies.append(reply)
                self._waiting.charge(now - began, now, self._crowds.current)
            waiting = self._waiting.take(now, start)
        return replies

    def _reply(self, read: Read) -> Reply | None:
        """Answer a request, or return None if it must wait for a turn of its crowd."""
        try:
            request = read()
        except Exception as failure:  # noqa: BLE001  the connection must get an answer
            return errors.to_response(failure)
        if isinstance(request, BodyExpected):
            return request
        if request.path.startswith(SLOW):
            return partial(self._route, request)
        try:
            return self._route(request)
        except MayWait:
            # The limits of its client have counted it already.
            return partial(self._route, request._replace(client=""))
        except DeferredError:
            return None

    def _answer_alone(self, read: Read) -> Response | BodyExpected:
        """Answer a request whose common commit failed."""
        request = read()
        if isinstance(request, BodyExpected):
            return request
        try:
            return self._in_one_commit(partial(self._route, request))
        except StorageError as error:
            if isinstance(error, CorruptFileError) and request.path == HEALTH:
                # The route would answer 200, because reads continue.
                return errors.unavailable("the file is corrupt: see the log")
            # Without a commit around it, the route meets the same error and answers it.
            return self._route(request)


class DeferredError(BaseException):
    """A request came to what a heavy crowd does, and must wait for a turn of the crowd.

    A route comes to it before its first write.
    """


class Crowds:
    """The crowd of the request that has its turn on the thread of the event loop.

    It is the `limits` of the routes, because a request for a new id joins the crowd of new ids
    before its limit. A request is counted once, in its first turn. `must_wait` tells whether a
    request of a crowd must wait for a turn of that.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.current = ""
        self.is_again = False
        self.must_wait: Callable[[str], bool] = lambda _: False

    def begin(self, *, is_again: bool) -> None:
        """Begin the turn of a request, or its second one, after it has waited for its crowd."""
        self.current, self.is_again = "", is_again

    def join(self, crowd: str) -> None:
        """Note the crowd of the current request. Raises `DeferredError`."""
        if is_on_event_loop():
            self.current = crowd
            if self.must_wait(crowd):
                raise DeferredError

    def join_hot(self, badge_id: str) -> None:
        """Note that the current request views a hot badge. Raises `DeferredError`."""
        self.join(MARK + badge_id)

    def wait(self, action: Action, client: str) -> Seconds:
        if action is NEW_ID:
            self.join(NEW_IDS)
        if self.is_again and action is Action.REQUEST and is_on_event_loop():
            return 0.0
        return self._limits.wait(action, client)

    def left(self) -> Mapping[str, int]:
        return self._limits.left()
