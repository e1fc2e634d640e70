"""The web server: waitress, whose loop answers together what came at once.

What only reads and counts is answered by the thread that reads the sockets: all such requests that
it found in one round, in one commit. No other thread has to be woken for them, so none fights with
another over the interpreter. All else, which may wait for the network, goes to threads, and so does
what the common commit failed for.
"""

from __future__ import annotations

import errno
import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from http import HTTPStatus
from typing import Any

from waitress import wasyncore
from waitress.channel import HTTPChannel
from waitress.server import BaseWSGIServer, create_server
from waitress.task import ErrorTask, ThreadedTaskDispatcher, WSGITask

from chalicelib import telemetry
from chalicelib.storage.errors import StorageError
from vumi.server.gateway import ANSWER, SHARING, Gateway, error_answer

THREADS = 40
"""Requests under way at once beside those that are answered together."""
TOGETHER = 100
"""Requests in one commit: a few milliseconds in which nothing else is answered."""
CONNECTIONS = 1_000
"""Open connections at once; further ones wait to be accepted."""
IDLE_SECONDS = 60
"""A connection that sends nothing for so long is closed."""
POLL_SECONDS = 10.0
"""How long to wait for something to come before idle connections are looked at."""
MAX_BODY_BYTES = 1_048_576
DRAIN_SECONDS = 5.0
"""How long a stop waits for the requests under way."""


class _Refusal(ErrorTask):
    """What waitress refuses itself: a malformed request, or one that is too large."""

    request: Any

    def execute(self) -> None:
        refused = self.request.error
        code = "too_large" if refused.code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE else "bad_request"
        _, headers, body = error_answer(refused.code, code, refused.body)
        self.status = f"{refused.code} {refused.reason}"
        self.response_headers = headers
        self.set_close_on_finish()
        self.content_length = len(body)
        self.write(body)


class _Task(WSGITask):
    """Sends head and body in one piece, and keeps the connection where there is no body.

    Waitress would close it then. Source: RFC 9112, section 6.3: such an answer ends with its head.
    """

    request: Any

    def get_environment(self) -> dict[str, Any]:
        begun: dict[str, Any] | None = getattr(self.request, "environ", None)
        return super().get_environment() if begun is None else begun

    def write(self, data: bytes) -> None:
        if self.wrote_header or not data or not self.has_body:
            super().write(data)
            return
        head = self.build_response_header()
        self.wrote_header = True
        self.content_bytes_written = len(data)
        self.channel.write_soon(head + data)

    def set_close_on_finish(self) -> None:
        asked = self.request.headers.get("CONNECTION", "").lower() == "close"
        if self.has_body or self.version == "1.0" or asked:
            super().set_close_on_finish()


class _Channel(HTTPChannel):
    """A connection."""

    task_class = _Task
    error_task_class = _Refusal
    requests: list[Any]

    def begin(self) -> dict[str, Any]:
        """The `environ` of the next request; `service` answers with what is put into it."""
        [request] = self.requests
        request.environ = environ = _Task(self, request).get_environment()
        return environ


class _Dispatcher(ThreadedTaskDispatcher):
    """Hands requests to threads, but for those that wait for the next commit in common."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: deque[_Channel] = deque()
        self.set_thread_count(THREADS)

    def add_task(self, task: Any) -> None:
        """Waitress hands over a connection that has a request."""
        [request, *_] = task.requests
        if request.error is None and request.command.upper() in SHARING:
            self.waiting.append(task)
        else:
            self.add_alone(task)

    def add_alone(self, channel: Any) -> None:
        super().add_task(channel)

    def take(self) -> list[_Channel]:
        """The next connections that are answered together.

        One that asks on before it has its answers waits alone: waitress stops a thread that would
        have to keep too many of them for who does not read.
        """
        taken: list[_Channel] = []
        while self.waiting and len(taken) < TOGETHER:
            channel = self.waiting.popleft()
            if len(channel.requests) > 1:
                self.add_alone(channel)
            else:
                taken.append(channel)
        return taken


class WebServer:
    """Binds on construction (`OSError` where it can't) and serves until stopped.

    It takes a `turn` for each commit and the answers behind it, so that other threads that do much
    at once can let it pass.
    """

    def __init__(
        self,
        gateway: Gateway,
        host: str,
        port: int,
        turn: AbstractContextManager[object] | None = None,
    ) -> None:
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)
        self._gateway = gateway
        self._turn = turn or nullcontext()
        self._sockets: dict[int, Any] = {}
        self._dispatcher = _Dispatcher()
        try:
            self._listen(host, port)
        except OSError:
            self._dispatcher.shutdown()
            wasyncore.close_all(self._sockets)
            raise
        except ValueError:  # waitress's word for a name that has no address
            self._dispatcher.shutdown()
            raise OSError(errno.EADDRNOTAVAIL, "no such host") from None
        self._listeners: list[Any] = [
            entry for entry in self._sockets.values() if isinstance(entry, BaseWSGIServer)
        ]
        for listener in self._listeners:
            listener.channel_class = _Channel
            listener.pull_trigger = self._wake
        self._stopping = threading.Event()
        self._thread = 0

    def _listen(self, host: str, port: int) -> None:
        create_server(
            self._gateway,
            map=self._sockets,
            _dispatcher=self._dispatcher,
            host=host,
            port=port,
            connection_limit=CONNECTIONS,
            channel_timeout=IDLE_SECONDS,
            max_request_body_size=MAX_BODY_BYTES,
            asyncore_use_poll=True,
            ident=None,
            clear_untrusted_proxy_headers=False,  # nothing here reads them
        )

    @property
    def port(self) -> int:
        """The port it listens on, also where 0 was asked for."""
        return int(self._listeners[0].effective_port)

    def serve(self) -> None:
        """Answer requests until `stop`, then finish those under way."""
        self._thread = threading.get_ident()
        while not self._stopping.is_set():
            self._serve_for(POLL_SECONDS)
        for listener in self._listeners:
            listener.del_channel()
            listener.socket.close()
        deadline = time.monotonic() + DRAIN_SECONDS
        while self._busy() and time.monotonic() < deadline:
            self._serve_for(0.05)
        self._dispatcher.shutdown()
        wasyncore.close_all(self._sockets)

    def stop(self) -> None:
        """End `serve`; may be called by a signal's handler."""
        self._stopping.set()
        with suppress(OSError):  # `serve` has ended already
            self._listeners[0].trigger.pull_trigger()

    def _wake(self) -> None:
        """Let the loop look again at what it waits for; it does so anyhow after its own work."""
        if threading.get_ident() != self._thread:
            self._listeners[0].trigger.pull_trigger()

    def _serve_for(self, seconds: float) -> None:
        """Wait for so long at most until something comes, then read and answer it."""
        wasyncore.loop(timeout=seconds, use_poll=True, map=self._sockets, count=1)
        while self._dispatcher.waiting:
            with self._turn:
                self._answer(self._dispatcher.take())

    def _answer(self, channels: Sequence[_Channel]) -> None:
        """Answer what the connections asked, in one commit; where that fails, each alone."""
        try:
            requests = [channel.begin() for channel in channels]
            for request, answer in zip(requests, self._gateway.answers(requests), strict=True):
                request[ANSWER] = answer
        except Exception as error:  # noqa: BLE001  nobody would be answered any more
            if not isinstance(error, StorageError):
                telemetry.event(logging.ERROR, "requests failed together")
            for channel in channels:
                self._dispatcher.add_alone(channel)
        else:
            for channel in channels:
                self._finish(channel)

    def _finish(self, channel: _Channel) -> None:
        try:
            channel.service()
        except Exception:  # noqa: BLE001  the same
            telemetry.event(logging.ERROR, "a connection failed")
            channel.handle_close()

    def _busy(self) -> bool:
        return any(
            channel.requests or channel.total_outbufs_len
            for listener in self._listeners
            for channel in listener.active_channels.values()
        )
