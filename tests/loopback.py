"""Hosts on this machine, each on a free port of the loopback address."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

POLL_SECONDS = 0.01


class SilentHandler(BaseHTTPRequestHandler):
    """A handler without a log."""

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  its name
        del format, arguments


class _Host(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1_024


@contextmanager
def serving(
    handler: Callable[..., BaseHTTPRequestHandler],
    tls: ssl.SSLContext | None = None,
    before_end: Callable[[], None] = lambda: None,
) -> Iterator[int]:
    """Run a host; give its port. `before_end` releases requests that wait for the end."""
    with _Host(("127.0.0.1", 0), handler) as host:
        if tls:
            host.socket = tls.wrap_socket(host.socket, server_side=True)
        thread = Thread(target=host.serve_forever, args=(POLL_SECONDS,))
        thread.start()
        try:
            yield host.server_port
        finally:
            before_end()
            host.shutdown()
            thread.join()
