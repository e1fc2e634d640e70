"""A host of files on this machine, and the settings of a server that looks there for proofs."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.loopback import SilentHandler, serving

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

    class Handler(SilentHandler):
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

    hanging = threading.Event()
    with serving(Handler, tls, before_end=hanging.set) as port:
        host = Host(port, hanging=hanging)
        yield host


def settings(host: Host, scheme: str = "http", **more: str) -> dict[str, str]:
    url = f"{scheme}://127.0.0.1:{host.port}/{{owner}}/{{name}}/.vu-mi"
    own = {"PROOFS": f"{{owner}}/{{name}}={url}", "WEBHOOK_ALLOW": "127.0.0.0/8"}
    return own | {"CLIENT_PROOFS_PER_MINUTE": "0"} | more
