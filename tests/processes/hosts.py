"""A host on this machine that has files and receives webhooks; it records its requests."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from standardwebhooks.webhooks import Webhook

from simulation.loopback import SilentHandler, serving
from tests.processes.programs import until

ID = "octocat/hello"


@dataclass(frozen=True, slots=True)
class Post:
    """A received POST: its time, body and headers."""

    at: float
    headers: dict[str, str]
    body: bytes

    @property
    def webhook_id(self) -> str:
        return self.headers["webhook-id"]

    def verified(self, secret: str) -> Any:
        """Return the body as JSON, verified by a receiver's library, which raises its error."""
        return Webhook(secret).verify(self.body, self.headers)


@dataclass
class Host:
    """Files by path, the paths of their requests, and posts, which are answered by 204."""

    port: int = 0
    files: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    posts: list[Post] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    def url(self, path: str = "/") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def wait_for(self, posts: int) -> None:
        until(lambda: len(self.posts) >= posts)

    def proof_settings(self, scheme: str = "http", **more: str) -> dict[str, str]:
        """Return the settings of a server that looks here for proofs."""
        url = f"{scheme}://127.0.0.1:{self.port}/{{owner}}/{{name}}/.vu-mi"
        own = {"PROOFS": f"{{owner}}/{{name}}={url}", "WEBHOOK_ALLOW": "127.0.0.0/8"}
        return own | {"CLIENT_PROOFS_PER_MINUTE": "0"} | more


@contextmanager
def hosting(tls: ssl.SSLContext | None = None) -> Iterator[Host]:
    """Run a host; requests of `/hang…` get no response while it runs."""
    host = Host()

    class Handler(SilentHandler):
        def do_GET(self) -> None:
            host.asked.append(self.path)
            text = host.files.get(self.path)
            if self.path.startswith("/hang"):
                host.ended.wait()
            self.reply(404 if text is None else 200, (text or "").encode())

        def do_POST(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            host.posts.append(Post(time.time(), headers, self.read()))
            self.send_response(204)
            self.end_headers()

    with serving(Handler, tls, before_end=host.ended.set) as host.port:
        yield host
