"""Sites on another host than the counter, whose pages have its script."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from simulation.loopback import SilentHandler, serving
from tests.processes.programs import Server

ON_THIS_MACHINE = (
    "--host-resolver-rules=MAP *.example 127.0.0.1",  # the script counts nothing on localhost
    "--disable-blink-features=AutomationControlled",  # or in a browser that a program drives
)
POLICY = "default-src 'none'; script-src {0}; connect-src {0}"
COUNTS = "<p><b data-views>?</b> <i data-views=site>?</i></p>"


@dataclass
class Site:
    """A site with pages by their paths, each with a script of the counter."""

    server: Server
    name: str
    pages: dict[str, str] = field(default_factory=dict)
    policy: str = POLICY
    port: int = 0

    @property
    def counter(self) -> str:
        return f"http://views.example:{self.server.port}"

    def script(self, attributes: str = "") -> str:
        return f'<script defer src="{self.counter}/count.js" {attributes}></script>'

    def put(self, path: str, body: str = COUNTS, attributes: str = "") -> None:
        self.pages[path] = f"<!doctype html><title>{path}</title>{self.script(attributes)}{body}"

    def url(self, path: str, host: str = "") -> str:
        return f"http://{host or self.name}:{self.port}{path}"

    def count(self, path: str = "") -> int:
        return self.server.peek(self.name + path)


class Pages(SilentHandler):
    """The pages of a site, with a strict policy."""

    def __init__(self, *arguments: Any, site: Site) -> None:
        self.site = site
        super().__init__(*arguments)

    def do_GET(self) -> None:
        page = self.site.pages.get(urlsplit(self.path).path)
        self.show(200 if page else 404, page or "")

    def show(self, status: int, text: str) -> None:
        self.reply(
            status,
            text.encode(),
            Content_Type="text/html;charset=utf-8",
            Content_Security_Policy=self.site.policy.format(self.site.counter),
        )


@contextmanager
def published(site: Site, handler: type[Pages] = Pages) -> Iterator[None]:
    """Serve the pages of a site."""
    with serving(partial(handler, site=site)) as site.port:
        yield
