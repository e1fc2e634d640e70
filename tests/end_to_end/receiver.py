"""A receiver of webhooks on this machine. It verifies signatures with a receiver's library."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from standardwebhooks.webhooks import Webhook

from tests.loopback import SilentHandler, serving


@dataclass(frozen=True, slots=True)
class Post:
    """A received POST: its time, body and headers."""

    at: float
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def webhook_id(self) -> str:
        return self.headers["webhook-id"]

    def verified(self, secret: str) -> Any:
        """Return the verified body as JSON; raise the library's error for a wrong signature."""
        return Webhook(secret).verify(self.body, self.headers)


@dataclass
class Receiver:
    """The received posts, each of which is answered by 204."""

    port: int
    posts: list[Post] = field(default_factory=list)
    hanging: threading.Event = field(default_factory=threading.Event)

    def url(self, path: str = "/") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def has(self, number: int) -> bool:
        """Return whether this many posts came, or more."""
        return len(self.posts) >= number

    def to(self, path: str) -> list[Post]:
        return [post for post in self.posts if post.path == path]


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Run a receiver on its own port; a post to `/hang` gets no answer while it runs."""

    class Handler(SilentHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.posts.append(Post(time.time(), self.path, headers, body))
            if self.path == "/hang":
                receiver.hanging.wait()
            self.send_response(204)
            self.end_headers()

    hanging = threading.Event()
    with serving(Handler, before_end=hanging.set) as port:
        receiver = Receiver(port, hanging=hanging)
        yield receiver
