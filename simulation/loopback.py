"""Hosts on this machine, each on a free port of the loopback address."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import BaseRequestHandler
from threading import Thread
from typing import TypeAlias

POLL_SECONDS = 0.01


Answer: TypeAlias = tuple[int, bytes, Mapping[str, str]]
"""The status, the body and the headers of an answer."""


class SilentHandler(BaseHTTPRequestHandler):
    """A handler without a log."""

    def read(self) -> bytes:
        """Return the body of the request."""
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def reply(self, status: int, body: bytes = b"", **headers: str) -> None:
        """Answer with a body and its length; `headers` have underscores for hyphens."""
        self.send_response(status)
        for name, value in {"Content_Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class _Host(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1_024


@contextmanager
def answering(respond: Callable[[SilentHandler], Answer]) -> Iterator[str]:
    """Run a host that answers every request by a function; give its URL without a slash."""

    class Handler(SilentHandler):
        def do_GET(self) -> None:
            status, body, headers = respond(self)
            self.reply(status, body, **headers)

        do_POST = do_PUT = do_GET

    with serving(Handler) as port:
        yield f"http://127.0.0.1:{port}"


@contextmanager
def serving(
    handler: Callable[..., BaseRequestHandler],
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
