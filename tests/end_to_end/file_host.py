"""A host of files on this machine, and the settings of a server that looks there for proofs."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ID = "octocat/hello"


@dataclass
class Host:
    """A host of files by path; `asked` records the paths of its requests."""

    port: int
    files: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    hanging: threading.Event = field(default_factory=threading.Event)


@contextmanager
def hosting(tls: ssl.SSLContext | None = None) -> Iterator[Host]:
    """Run a host; files of `hang` get no answer while it runs, files of `moved` a redirect."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            host.asked.append(self.path)
            if self.path.startswith("/hang/"):
                host.hanging.wait()
            text = host.files.get(self.path)
            missing = 301 if self.path.startswith("/moved/") else 404
            self.send_response(missing if text is None else 200)
            self.send_header("Location", f"/{ID}/.vu-mi")
            self.end_headers()
            self.wfile.write((text or "").encode())

        def log_message(self, *_: object) -> None:
            pass

    class Files(ThreadingHTTPServer):
        daemon_threads = True

    with Files(("127.0.0.1", 0), Handler) as server:
        if tls:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        host = Host(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield host
        finally:
            host.hanging.set()
            server.shutdown()
            thread.join()


def settings(host: Host, scheme: str = "http", **more: str) -> dict[str, str]:
    url = f"{scheme}://127.0.0.1:{host.port}/{{owner}}/{{name}}/.vu-mi"
    own = {"PROOFS": f"{{owner}}/{{name}}={url}", "WEBHOOK_ALLOW": "127.0.0.0/8"}
    return own | {"CLIENT_PROOFS_PER_MINUTE": "0"} | more
