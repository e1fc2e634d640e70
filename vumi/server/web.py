"""The web server: granian, which has a hardened HTTP parser, in the process of the program."""

from __future__ import annotations

import asyncio
import errno
import gc
import resource
import socket
import sys
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from contextvars import Context, copy_context
from functools import partial
from pathlib import Path
from typing import Any, TypeVarTuple, Unpack

from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server

from chalicelib.units import Seconds
from vumi.server import sockets
from vumi.server.asgi import MAX_HEAD_BYTES, Application
from vumi.server.connections import guard
from vumi.server.service_manager import Notifier, connect, is_answered, watch
from vumi.server.sockets import Endpoint, Peer, UnixSocket

ACCEPTED = 4_000
"""The maximum number of open connections; others wait to be accepted.

The guard closes connections long before, but a client may open thousands between its sweeps.
"""
OTHER_FILES = 512
"""Descriptors for the database, webhooks and the archive."""
BACKLOG = 1_024
"""Connections that wait to be accepted. The client of any other tries again after a second."""
IDLE_SECONDS = 60
"""A connection is closed if no complete head of a request arrives for this long."""
DRAIN_SECONDS = 5.0
"""The time that a stop waits for the current requests."""
SETTLE_SECONDS = 1.0
"""The time in which a stop waits for requests on connections that are open already."""
SWITCH_SECONDS = 0.0005
"""The time after which a thread gives the interpreter to another one. The threads of granian need
it for each request, and wait for the thread of the event loop meanwhile."""
SILENT = Notifier()
POLL_SECONDS = 0.01
"""The interval at which a starting server is asked whether it accepts connections."""

Arguments = TypeVarTuple("Arguments")


class WebServer:
    """The web server, which holds its port from construction on. Raises `OSError` if it can't.

    With a Unix socket, it has neither a host nor a port.
    """

    def __init__(  # noqa: PLR0913  parts of the server
        self,
        application: Application,
        host: str,
        port: int,
        drain_seconds: Seconds = DRAIN_SECONDS,
        *,
        unix_socket: UnixSocket | None = None,
        notifier: Notifier = SILENT,
    ) -> None:
        self._application = application
        self._drain_seconds = drain_seconds
        self._unix_socket = unix_socket
        self._notifier = notifier
        self._held = [] if unix_socket else _hold(host, port)
        self.addresses: list[Peer] = [held.getsockname()[:2] for held in self._held]
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = asyncio.Event()

    @property
    def port(self) -> int:
        """Return the requested port, or the free port that was chosen for 0."""
        return self.addresses[0][1] if self.addresses else 0

    def serve(self, on_ready: Callable[[], None] = lambda: None) -> None:
        """Answer requests until `stop`, then finish the current ones.

        `on_ready` is called when connections are accepted.
        """
        sys.setswitchinterval(SWITCH_SECONDS)
        gc.collect()
        gc.freeze()  # a full collection of what lives as long as the process would take 25 ms
        with asyncio.Runner(loop_factory=SharedWakeLoop) as runner:
            self._loop = runner.get_loop()
            runner.run(self._serve(on_ready))

    def stop(self) -> None:
        """End `serve`; other threads and signal handlers may call it."""
        self._stopping.set()
        if self._loop is not None:
            with suppress(RuntimeError):  # `serve` has ended already
                self._loop.call_soon_threadsafe(self._stopping.set)

    async def _serve(self, on_ready: Callable[[], None]) -> None:
        bound = [self._unix_socket.temporary] if self._unix_socket else self.addresses
        servers = [_server(self._application, endpoint) for endpoint in bound]
        if self._unix_socket:
            servers[0].on_startup(self._unix_socket.hand_over)
        serving = [asyncio.create_task(server.serve()) for server in servers]
        endpoints = [self._unix_socket.name] if self._unix_socket else self.addresses
        for endpoint in endpoints:
            await _until_accepting(endpoint, serving)
        for held in self._held:
            held.close()
        if self._unix_socket:
            self._unix_socket.publish()
        on_ready()
        loops = [asyncio.create_task(loop) for loop in self._loops()]
        stopping = asyncio.create_task(self._stopping.wait())
        await asyncio.wait([stopping, *serving], return_when=asyncio.FIRST_COMPLETED)
        self._notifier.stopping()
        for loop in loops:
            loop.cancel()
        await self._settle(endpoints)
        for server in servers:
            server.stop()  # type: ignore[no-untyped-call]
        _, unfinished = await asyncio.wait(serving, timeout=self._drain_seconds)
        if self._unix_socket:
            self._unix_socket.remove()
        if unfinished:
            # They are cancelled now, and granian reports that as an error.
            asyncio.get_running_loop().set_exception_handler(lambda *_: None)

    async def _settle(self, endpoints: Sequence[Endpoint]) -> None:
        """Accept no connection more, and answer the requests that are on their way.

        granian would close connections whose request it has not read yet.
        """
        self._application.is_stopping = True
        for endpoint in endpoints:
            sockets.stop_accepting(endpoint)
        is_idle = self._application.connections.is_idle
        for _ in range(int(SETTLE_SECONDS / POLL_SECONDS)):
            if all(is_idle(peer) for one in endpoints for peer in sockets.connected(one)):
                return
            await asyncio.sleep(POLL_SECONDS)

    def _loops(self) -> Iterator[Coroutine[None, None, None]]:
        # Its timer also wakes the loop for a signal that arrived just before the loop slept.
        yield guard(self._application.connections, self.addresses)
        if seconds := self._notifier.watchdog_seconds:
            own = self._unix_socket.path if self._unix_socket else self.addresses[0]
            yield watch(partial(is_answered, own), self._notifier.alive, seconds)


def _hold(host: str, port: int) -> list[socket.socket]:
    """Bind the addresses of a host and don't listen, so that the server can still bind them.

    Alone, the server would share its port with any program that allows it, and could not choose a
    free port for 0.
    """
    try:
        # For a text, Python loads its tables for international names.
        name = host.encode() if host.isascii() else host
        found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise OSError(errno.EADDRNOTAVAIL, "no such host") from None
    held: list[socket.socket] = []
    try:
        for family, _, _, _, address in found:
            held.append(socket.socket(family, socket.SOCK_STREAM))
            held[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            held[-1].bind((address[0], held[0].getsockname()[1] or port))
    except OSError:
        for one in held:
            one.close()
        raise
    return held


def _connections() -> int:
    """Raise the limit of open files, and return the number of connections that it allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ACCEPTED + OTHER_FILES
    allowed = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
    if soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return max(1, allowed - OTHER_FILES)


def _server(application: Application, endpoint: Endpoint) -> Server:
    (host, port), path = (("", 0), endpoint) if isinstance(endpoint, Path) else (endpoint, None)
    return Server(
        application,
        host,
        port,
        uds=path,
        interface=Interfaces.ASGINL,
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(
            header_read_timeout=IDLE_SECONDS * 1000, max_buffer_size=MAX_HEAD_BYTES
        ),
        backlog=BACKLOG,
        backpressure=_connections(),
        websockets=False,
        log_enabled=False,
    )


async def _until_accepting(endpoint: Endpoint, serving: Sequence[asyncio.Task[None]]) -> None:
    """Wait until a server accepts connections. Raises the error that ended one of the servers."""
    while True:
        for ended in serving:
            if ended.done():
                ended.result()
        try:
            _, writer = await connect(endpoint)
        except (ConnectionRefusedError, FileNotFoundError):
            await asyncio.sleep(POLL_SECONDS)
        else:
            writer.close()
            return


class SharedWakeLoop(asyncio.SelectorEventLoop):
    """An event loop whose calls from other threads share a wake until it has come.

    The threads of granian pass each request by `call_soon_threadsafe`. asyncio's own writes a byte
    to a socket for each of them, and each write gives the interpreter to another thread. Without
    it, a request takes a tenth less processor time. From Python 3.12 on, a task also begins when it
    is made, and not one turn of the loop later.
    """

    def __init__(self) -> None:
        super().__init__()
        if sys.version_info >= (3, 12):
            self.set_task_factory(asyncio.eager_task_factory)
        self._calls: deque[tuple[asyncio.Handle, Context, Callable[..., object], Any]] = deque()
        self._is_woken = False

    def call_soon_threadsafe(
        self,
        callback: Callable[[Unpack[Arguments]], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """Call a function in the next turn of the loop; any thread may ask for it.

        Functions must be short: no other call comes between those of one wake.

        Raises `RuntimeError` if the loop is closed.
        """
        context = copy_context() if context is None else context
        handle = asyncio.Handle(callback, args, self, context)
        self._calls.append((handle, context, callback, args))
        if not self._is_woken:
            self._is_woken = True
            super().call_soon_threadsafe(self._take_calls)
        return handle

    def _take_calls(self) -> None:
        self._is_woken = False  # a call that is appended after the last one is taken wakes again
        while self._calls:
            handle, context, callback, args = self._calls.popleft()
            if handle.cancelled():
                continue
            try:
                context.run(callback, *args)
            except Exception as failure:  # noqa: BLE001  the other calls must come
                failed = {"message": "a call failed", "exception": failure, "handle": handle}
                self.call_exception_handler(failed)
